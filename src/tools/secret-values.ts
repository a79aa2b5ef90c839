/** Whether what stands after a name is a secret: not the word for one, not where one is kept. Pure. */

/** What stands where a password would, and is none: `password: unknown`. */
const NOT_A_VALUE = new Set(
  `unknown none null nil undefined empty blank missing required optional hidden secret private confidential redacted
  removed deleted changed unchanged updated rotated expired reset set unset new old same yes no true false ok okay
  never always here there below above see ask asked later soon today tomorrow tbd todo n/a na wip string text str
  char varchar boolean number int integer field input type value values rules rule policy manager hint hints tips
  forgotten lost wrong correct incorrect invalid valid secure insecure safe unsafe strong weak long short simple easy
  hard complex complicated different public encrypted hashed stored saved kept shared needed pending working broken
  gone fine good great bad tricky ready silly funny lengthy handy weekly monthly yearly daily quarterly important
  sensitive classified case-sensitive vault keychain keepass bitwarden 1password lastpass dashlane keeper
  unbekannt keine keins keines leer fehlt geheim vergessen geändert erneuert abgelaufen falsch richtig sicher
  unsicher stark schwach neu alt gleich siehe ja nein nötig erforderlich später morgen
  desconocida desconocido ninguna ninguno cambiada olvidada secreta segura nueva vacía pendiente
  inconnu aucun changé oublié nouveau vide desconhecida nenhuma alterada esquecida sconosciuta nessuna cambiata
  dimenticata nuova vuota неизвестен неизвестно забыт изменён изменен сменён секрет новый старый
  onbekend geen vergeten gewijzigd`.split(/\s+/),
);
/** Stars and other stand-ins; variables and placeholders of templates; paths and addresses; dates; names of files. */
const NOT_A_VALUE_PATTERNS = [
  /[*•●·]{3}|\.{3}|^(\D)\1*$|^%\w+%$|^\$?[<{[(]|^(?:process\.)?env[.(]|^os\.environ|^(?:~|\.{1,2})?\/|^[A-Za-z]:\\|:\/\/|^www\.|^your[-_]|redacted/i,
  // With its case, which tells it from a password that begins so.
  /^\$(?:[A-Z][A-Z0-9_]+|[a-z_]+)$/,
  /^(?:\d{4}-\d{1,2}(?:-\d{1,2})?(?:t[\d:.]+z?)?|\d{1,2}[./]\d{1,2}[./](?:\d{2}|\d{4})|\d{1,2}:\d{2}(?::\d{2})?(?:am|pm)?)$/i,
  /^[\w.+-]+@[\w-]+(?:\.[\w-]+)+$/,
  /^[\w./-]+\.(?:json|ya?ml|toml|env|ini|txt|md|pem|key|pub|p12|kdbx?|pdf|docx?|js|ts|py|sh|com|org|net|io)$/i,
];
/** Names that have digits in them: of methods, standards, programs; amounts with their unit. */
const NAME_WITH_DIGITS =
  /^(?:(?:1password|2fa|mfa|otp|wpa[23]?|aes|sha|md5|rsa|ed25519|[hr]s|base|utf|oauth|argon2\w{0,2}|pbkdf2|ipv[46]|p12|pkcs|iso|rfc|win|office365|microsoft365|o365|wi-?fi|keepass2?|v|q)(?:-?\d{1,5}|-\w{1,10})?|v\d[\d.]*|\d{1,4}-?(?:st|nd|rd|th|x|h|d|min|[kmgt]b|(?:char|character|digit|word|hour|day|week|month|year|time)s?|zeichen|stellig\w{0,2}))$/i;
/** Words that say how a password is, not what it is. */
const PARTICIPLE = /^[a-z]{2,}(?:ed|ing|able|ible|less|ful|ous|ive|iert|ändert|setzt|lich|bar)$|ть?ся$/i;

/** Visa, Mastercard, Discover, JCB, UnionPay: sixteen digits. American Express: fifteen. Diners: fourteen. */
const CARD_NUMBER =
  /^(?:4\d{15}|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}|6(?:011|5\d\d|4[4-9]\d)\d{12}|35[2-8]\d{13}|62\d{14}|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11})$/;

function isNoValue(value: string): boolean {
  const patterns = [NAME_WITH_DIGITS, ...NOT_A_VALUE_PATTERNS];
  return NOT_A_VALUE.has(value.toLowerCase()) || patterns.some((pattern) => pattern.test(value));
}

/** Its position says already that it is one. */
export function couldBePassword(value: string): boolean {
  return value.length >= 4 && !isNoValue(value) && !PARTICIPLE.test(value);
}

/** No word looks so: letters and digits, or a sign between letters, or six digits and more. */
export function looksLikePassword(value: string): boolean {
  if (value.length < 5 || isNoValue(value)) return false;
  if (/^\d{6,}$/.test(value)) return true;
  return /\p{L}/u.test(value) && (/\d/.test(value) || /[\p{L}\p{N}][!@$%^&?]+[\p{L}\p{N}]/u.test(value));
}

/** Has a run of letters and digits, of this length at least, as no name has it. */
export function looksLikeKey(value: string, shortest: number): boolean {
  if (isNoValue(value) || !/^[A-Za-z0-9][\w.~+/=:-]*$/.test(value)) return false;
  if (/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(value)) return true;
  const runs = value.split(/[-_.:=/+~]/).filter((run) => run.length >= shortest);
  return runs.some((run) => /\d/.test(run) && /[A-Za-z]/.test(run) && !NAME_WITH_DIGITS.test(run));
}

/** The check digit is after Luhn: every second digit from the right counts double. */
export function isCardNumber(digits: string): boolean {
  if (!CARD_NUMBER.test(digits)) return false;
  const sum = [...digits].reverse().reduce((total, digit, n) => {
    const counted = n % 2 === 0 ? Number(digit) : Number(digit) * 2;
    return total + (counted > 9 ? counted - 9 : counted);
  }, 0);
  return sum % 10 === 0;
}
