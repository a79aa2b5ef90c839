/** Whether what stands after a name is a value: not the word for one, not a place where one is kept. */
import { NO_VALUES } from './words.js';

/** Stars, dots and other stand-ins; variables and placeholders of templates; a path; an address. */
const STAND_IN =
  /[*•●·]{3}|\.{3}|^(\D)\1*$|^%\w+%$|^\$?[<{[(]|^(?:process\.)?env[.(]|^os\.environ|^(?:~|\.{1,2})?\/|^[A-Za-z]:\\|:\/\/|^www\.|^your[-_]|redacted/i;
/** Case tells it from a password that begins so. */
const VARIABLE = /^\$(?:[A-Z][A-Z0-9_]+|[a-z_]+)$/;
const DATE_OR_TIME =
  /^(?:\d{4}-\d{1,2}(?:-\d{1,2})?(?:t[\d:.]+z?)?|\d{1,2}[./]\d{1,2}[./](?:\d{2}|\d{4})|\d{1,2}:\d{2}(?::\d{2})?(?:am|pm)?)$/i;
const MAIL = /^[\w.+-]+@[\w-]+(?:\.[\w-]+)+$/;
const FILE =
  /^[\w./-]+\.(?:json|ya?ml|toml|env|ini|txt|md|pem|key|pub|p12|kdbx?|pdf|docx?|js|ts|py|sh|com|org|net|io)$/i;
/** Names that have digits in them: of methods, standards, programs; amounts with their unit. */
const NAME_WITH_DIGITS =
  /^(?:(?:1password|2fa|mfa|otp|wpa[23]?|aes|sha|md5|rsa|ed25519|[hr]s|base|utf|oauth|argon2\w{0,2}|pbkdf2|ipv[46]|p12|pkcs|iso|rfc|win|office365|microsoft365|o365|wi-?fi|keepass2?|v|q)(?:-?\d{1,5}|-\w{1,10})?|v\d[\d.]*|\d{1,4}-?(?:st|nd|rd|th|x|h|d|min|[kmgt]b|(?:char|character|digit|word|hour|day|week|month|year|time)s?|zeichen|stellig\w{0,2}))$/i;
/** Words that say how a password is, not what it is. */
const PARTICIPLE = /^[a-z]{2,}(?:ed|ing|able|ible|less|ful|ous|ive|iert|ändert|setzt|lich|bar)$|ть?ся$/i;

function isNoValue(value: string): boolean {
  return (
    NO_VALUES.has(value.toLowerCase()) ||
    [STAND_IN, VARIABLE, DATE_OR_TIME, MAIL, FILE, NAME_WITH_DIGITS].some((other) => other.test(value))
  );
}

/** Where it stands says already that it is one. */
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
  return value
    .split(/[-_.:=/+~]/)
    .some(
      (run) =>
        run.length >= shortest && /\d/.test(run) && /[A-Za-z]/.test(run) && !NAME_WITH_DIGITS.test(run),
    );
}
