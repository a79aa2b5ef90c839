/**
 * What passwords and keys are called, in the languages people chat in, and what stands after such a name without
 * being one: `password: unknown`. Sources of expressions; compared without regard to case.
 */

/** Also as the end of a longer word: `WLAN-Passwort`, `dbPassword`, `登录密码`. */
export const COMPOUND_PASSWORDS = [
  'pass(?:words?|codes?|phrases?|wort|wörter|ord)',
  'kenn?wort|losungswort',
  'wachtwoord|l(?:ö|o)senord|adgangskode|salasana',
  '密[码碼]|口令|パスワード|暗証番号|비밀번호|รหัสผ่าน',
];

export const PASSWORDS = [
  'contrase(?:ñ|n)as?|mots? de passe|senhas?|parola d.ordine',
  '(?:ş|s)ifre(?:si|niz|m)?|hasło|heslo|jelsz(?:ó|o)',
  'm(?:ậ|a)t kh(?:ẩ|a)u|kata sandi',
  'парол(?:ь|и|я|ем)|κωδικός πρόσβασης',
  'كلمة (?:السر|المرور)|סיסמ[הא]|पासवर्ड',
];

/** Short, or with another meaning: these need `=`, or a value that looks like a password. */
export const SHORT_PASSWORDS = [
  '(?<!(?:boarding|season|day|bus|train|ski|parking|museum|city)[ -])pass|passwd|pwd?|pswd|psk|mdp|clave|parol[aeăęė]|(?:wlan|wi-?fi|wpa2?|network|netzwerk)[ -]?(?:key|schlüssel)',
];

export const KEYS = [
  '(?:api|app|application|access|account|admin|auth|authentication|authorization|bearer|bot|client|consumer|database|db|deploy|deployment|device|encryption|github|gitlab|google|hmac|jwt|licen[cs]e|login|master|oauth2?|openai|anthropic|personal|private|product|refresh|root|secret|security|service|session|shared|signing|ssh|discord|slack|stripe|telegram|totp|2fa|webhook)[ _.-]{0,2}(?:access[ _.-]?)?(?:key|token|secret)s?(?:[_ -]?base)?',
  'session[ _-]?id|sessid',
  'api[ -]?(?:schlüssel|sleutel|nyckel|ключ)|ключ (?:api|доступа)|токен',
  '(?:zugriffs|zugangs|lizenz)[ -]?(?:schlüssel|token)',
  'clave (?:de )?(?:la )?api|clé (?:d.)?api|chave (?:d[ae] )?api|chiave api',
  '密[钥鑰]|令牌|apiキー|アクセストークン|api ?키',
];

/** Anything is called these: only what looks very much like a key, unless `=` stands between. */
export const BARE_KEYS = ['token|secret|bearer|credentials?'];

/** Between a name and what it is for: `password for the wifi: …`. */
export const PREPOSITIONS =
  'for|of|to|on|at|from|für|fürs|von|vom|zum|zur|der|des|de|del|para|pour|du|per|di|do|da|dla|til|till|voor|van|от|для|к';

/** `my password is …`, where a plain word may be the password. */
export const COPULAS = 'is|was';
/** The same where a plain word mostly is not; their adjectives are too many to list. */
export const OTHER_COPULAS =
  'are|ist|war|lautet|heißt|es|era|est|è|é|são|jest|är|er|on|это|to|je|[—–-]{1,2}|->|→';
/** These stand without spaces. */
export const JOINED_COPULAS = '[是为為はが은는]';

/** What stands where a password would, and is none. */
export const NO_VALUES = new Set(
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
