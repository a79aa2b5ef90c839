/**
 * The forms and names of secrets, as tables of expressions for `secrets.ts`. A row is a kind, with its
 * article, and an expression. Lengths are the makers' or slightly less, because a secret without its last
 * characters is still one.
 */

/** Recognised by form, at the beginning of a word. RANDOM: letters and digits, some of each. */
export const SHAPES = String.raw`
an API key: sk-[\w-]{0,40}?RANDOM{16,}[\w-]*
an API key: (?:gsk_|xai-|pplx-|tgp_v1_|nvapi-)RANDOM{24,}[\w-]*
a Hugging Face token: (?:hf|api_org)_[A-Za-z0-9]{30,}
a Replicate token: r8_[A-Za-z0-9]{30,}
a Telegram bot token: \d{6,12}:(?:AA[\w-]{20,}|(?=[\w-]{0,36}\d)(?=[\w-]{0,36}[a-z])(?=[\w-]{0,36}[A-Z])[\w-]{33,37}(?![\w-]))
a Discord token: [MNO](?=[\w-]{0,27}\d)[\w-]{22,28}\.[\w-]{6,7}\.[\w-]{27,}|mfa\.[\w-]{40,}
a Discord webhook address: discord(?:app)?\.com/api/(?:v\d+/)?webhooks/\d+/[\w-]{30,}
a Slack token: xox[a-z]-(?:\d-)?[\w-]{20,}|xapp-\d-[\w-]{20,}|xoxe\.xox[bp]-\d-[\w-]{20,}
a Slack webhook address: hooks\.slack\.com/(?:services|workflows|triggers)/[\w/+-]{20,}
a Teams webhook address: webhook\.office\.com/webhookb2/[\w@-]{36,}/[\w/-]{20,}
a Facebook token: EAA[A-Za-z0-9]{60,}
a GitHub token: gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{22,}
a GitLab token: gl(?:pat|dt|rt|cbt|ptt|ft|soat|agent|imt|oas|ffct)-(?:t\d_|\w{1,5}_)?[\w.-]{20,}
an Atlassian token: ATATT3[\w=-]{40,}|ATCTT3[\w=-]{40,}|ATBB[A-Za-z0-9]{28,}
an npm token: npm_[A-Za-z0-9]{30,}
a PyPI token: pypi-Ag[\w-]{40,}
a RubyGems key: rubygems_[a-f0-9]{40,}
a crates.io token: cio(?=[A-Za-z]{0,31}\d)[A-Za-z0-9]{32}(?![A-Za-z0-9])
a Docker token: dckr_(?:pat|oat)_[\w-]{24,}
an AWS access key: (?:AKIA|ABIA|ACCA|ASIA(?=[A-Z]{0,15}\d))[A-Z0-9]{16}(?![A-Za-z0-9])
an AWS key: ABSK[A-Za-z0-9+/]{60,}={0,2}
a Google API key: AIza[\w-]{30,}
a Google access token: GOCSPX-[\w-]{20,}|ya29\.[\w-]{20,}|1//0[\w-]{30,}
an Azure key: [A-Za-z0-9_~.]{3}\dQ~[\w~.-]{31,34}|(?:AccountKey|SharedAccessKey)=[A-Za-z0-9+/]{40,}={0,2}
a DigitalOcean token: do[opr]_v1_[a-f0-9]{40,}
a Cloudflare key: v1\.0-[a-f0-9]{24}-[a-f0-9]{100,}
a Fly.io token: fm[12]r?_[\w+/=-]{60,}|fo1_[\w-]{40,}
a Heroku key: HRKU-[\w-]{36,}
a Vercel token: vc[piark]_[A-Za-z0-9]{20,}
a Supabase key: sb[ps]_[a-f0-9]{40}|sb_secret_[\w-]{20,}
a Stripe key: (?:sk|rk)_(?:live|test|prod)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9+/]{24,}
a Square token: sq0(?:atp|csp)-[\w-]{22,}|EAAA[\w-]{56,}
a Shopify token: shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}
a PayPal token: access_token\$(?:production|sandbox)\$[a-z0-9]{16}\$[a-f0-9]{32}
a SendGrid key: SG\.[\w-]{16,}\.[\w-]{16,}
a Twilio key: SK[a-f0-9]{32}(?![A-Za-z0-9])
a Mailgun key: key-[a-f0-9]{32}(?![A-Za-z0-9])
a Mailchimp key: [a-f0-9]{32}-us\d{1,2}(?![A-Za-z0-9])
a Brevo key: xkeysib-[a-f0-9]{64}-[A-Za-z0-9]{16}
a Notion token: ntn_[A-Za-z0-9]{40,}|secret_(?=[A-Za-z]*\d)[A-Za-z0-9]{43}(?![A-Za-z0-9])
a Linear key: lin_(?:api|oauth)_[A-Za-z0-9]{32,}
an Airtable token: pat[A-Za-z0-9]{14}\.[a-f0-9]{64}
a Figma token: figd_[\w-]{36,}
a Postman key: PMAK-[a-f0-9]{24}-[a-f0-9]{34}
a Grafana token: glsa_[A-Za-z0-9]{32}_[a-fA-F0-9]{8}|glc_[A-Za-z0-9+/]{32,}
a Sentry token: sntr(?:yu_[a-f0-9]{64}|ys_[\w+/=-]{60,})
a New Relic key: NRAK-[A-Z0-9]{27}|NRJS-[a-f0-9]{19}
a Databricks token: dapi[a-f0-9]{32}
a Tailscale key: tskey-(?:[a-z]+-)?[A-Za-z0-9]{8,}-[A-Za-z0-9]{16,}
a Vault token: hv[sbr]\.[\w-]{24,}
a Pulumi token: pul-[a-f0-9]{40}
a Doppler token: dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[\w-]+\.)?[A-Za-z0-9]{40,}
a 1Password key: ops_eyJ[A-Za-z0-9+/]{60,}|A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}
an age key: AGE-SECRET-KEY-1[A-Z0-9]{50,}
a wallet key: [xyz]prv[1-9A-HJ-NP-Za-km-z]{100,}
a JSON web token: (?<!eyJ[\w-]{1,100})eyJ[\w-]{8,4000}\.[\w-]{8,}[\w.-]*
a login in an address: [a-z][a-z0-9+.-]{1,30}://[^\s/:@?#"'\x60<>|]{0,200}:[^\s/?#"'\x60<>|]{1,200}@[^\s/@:]
an authenticator secret: otpauth(?:-migration)?://[^\s]{0,300}?(?:secret|data)=[\w%=-]{16,}
`;

/** Recognised by their context. The group's name says how its text must look. */
export const POSITIONS = String.raw`
a private key: (?:-{4,5} ?BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)? ?-{4,5}|PuTTY-User-Key-File-\d)(?:(?!----|PuTTY-User)(?:\\n|(?!\\n)[\s\S])){0,400}?(?<anything>[A-Za-z0-9+/]{12,}={0,2})
a card number: (?<![\p{L}\p{N}+_]|\d[.,-]|\d{4} |[A-Z]{2}\d{2} (?:[A-Z]{4} )?)(?<card>\d{4}([ .-]?)\d{4}\2\d{4}\2\d{4}|\d{4}([ .-]?)\d{6}\3\d{4,5})(?![\p{L}\p{N}_]|[.-]\d)
a password: WIFI:(?:[A-Z]:[^;\n]{0,64};){0,4}P:(?<anything>[^;\n]{4,64});
a PIN: BEGINSPIN(?:NUMBER)(?<anything>\d{4})(?![\d\p{L}]|[-\/.:]\d)
a PUK: BEGINSPUK2?NUMBER(?<anything>\d{8})ENDS
a card code: BEGINS(?:CVV2?|CVC2?)NUMBER(?<anything>\d{3,4})ENDS
`;
/** The same, ignoring case. */
export const POSITIONS_IN_ANY_CASE = String.raw`
a password: BEGINS(?<password>\S{5,80}) (?:is|ist|es|est|è|é) (?:\p{L}+[ \-]){1,3}?PASSWORD_NAME
a password: (?:^|\s)(?:-u|--user|(?:logins?|credentials|zugangsdaten|zugang)\s?[:=])\s{0,8}(?=[^\s:/]{0,64}\p{L})[^\s:/]{1,128}(?:\s[:/|]\s|:(?!\/))(?<password>\S{5,80})
a key or token: \bauthorization["']?\s*[:=]\s*["']?(?:basic|bearer|token)\s+(?<login>[\w.~+/=\-]{8,})
a backup code: (?:backup|recovery|emergency|one-time)[ \-]codes?NUMBER(?<code>[a-z0-9]{4,8}[\- ]?[a-z0-9]{4,8})ENDS
a recovery phrase: (?:(?:seed|recovery|mnemonic|backup|wallet|secret) ?(?:phrase|words)|mnemonic seed|wiederherstellungs(?:phrase|wörter)|frase (?:semilla|de recuperación)|phrase de récupération|(?:сид|мнемоническая)[ \-]?фраза|助[記记][词詞])[\s\S]{0,100}?(?<![a-z])(?<anything>PHRASE_WORD(?:PHRASE_GAPPHRASE_WORD){11,23})(?![a-z])
`;
/** Between the name of a number and the number. */
export const NUMBER = String.raw`["*\x60]{0,2}(?:\s?(?:code|number))?(?: (?:is|are|ist|lautet|es|est))?\s?[:=]?\s{0,2}[\-*\x60"]{0,3}\s?`;
/** Words of the English wallet list have three to eight letters, and do not include these. */
export const PHRASE_WORD =
  '(?!(?:the|and|for|are|was|but|not|has|had|his|her|its|our|who)(?![a-z]))[a-z]{3,8}';
/** The words may be in a row, numbered, listed or in a table. */
export const PHRASE_GAP = String.raw`(?:[\s,>|*\x60"'\-]|\d{1,2}[.):])+`;

/** Words for passwords, also at the end of a longer one: `WLAN-Passwort`, `dbPassword`, `登录密码`. */
export const PASSWORD_SUFFIXES =
  'pass(?:words?|codes?|phrases?|wort|wörter|ord)|kenn?wort|losungswort|wachtwoord|l(?:ö|o)senord|adgangskode|salasana|密[码碼]|口令|パスワード|暗証番号|비밀번호|รหัสผ่าน';
/** The same, as words of their own. */
export const PASSWORDS =
  'contrase(?:ñ|n)as?|mots? de passe|senhas?|parola d.ordine|(?:ş|s)ifre(?:si|niz|m)?|hasło|heslo|jelsz(?:ó|o)|m(?:ậ|a)t kh(?:ẩ|a)u|kata sandi|парол(?:ь|и|я|ем)|κωδικός πρόσβασης|كلمة (?:السر|المرور)|סיסמ[הא]|पासवर्ड';
/** Short or ambiguous: these need `=`, or a value that looks like a password. */
export const AMBIGUOUS_PASSWORDS =
  '(?<!(?:boarding|season|day|bus|train|ski|parking|museum|city)[ -])pass|passwd|pwd?|pswd|psk|mdp|clave|parol[aeăęė]|(?:wlan|wi-?fi|wpa2?|network|netzwerk)[ -]?(?:key|schlüssel)';
export const KEYS =
  '(?:api|app|application|access|account|admin|auth|authentication|authorization|bearer|bot|client|consumer|database|db|deploy|deployment|device|encryption|github|gitlab|google|hmac|jwt|licen[cs]e|login|master|oauth2?|openai|anthropic|personal|private|product|refresh|root|secret|security|service|session|shared|signing|ssh|discord|slack|stripe|telegram|totp|2fa|webhook)[ _.-]{0,2}(?:access[ _.-]?)?(?:key|token|secret)s?(?:[_ -]?base)?|session[ _-]?id|sessid|api[ -]?(?:schlüssel|sleutel|nyckel|ключ)|ключ (?:api|доступа)|токен|(?:zugriffs|zugangs|lizenz)[ -]?(?:schlüssel|token)|clave (?:de )?(?:la )?api|clé (?:d.)?api|chave (?:d[ae] )?api|chiave api|密[钥鑰]|令牌|apiキー|アクセストークン|api ?키';
/** Overused names: only values that look very much like a key count, unless `=` is in between. */
export const AMBIGUOUS_KEYS = 'token|secret|bearer|credentials?';

/** Between a name and its purpose: `password for the wifi: …`. */
export const PREPOSITIONS =
  'for|of|to|on|at|from|für|fürs|von|vom|zum|zur|der|des|de|del|para|pour|du|per|di|do|da|dla|til|till|voor|van|от|для|к';
/** `my password is …`, where a plain word may be the password. */
export const COPULAS = 'is|was';
/** The same, but a plain word after these rarely is one; the adjectives are too many to list. */
export const OTHER_COPULAS =
  'are|ist|war|lautet|heißt|es|era|est|è|é|são|jest|är|er|on|это|to|je|[—–-]{1,2}|->|→';
/** These need no spaces. */
export const UNSPACED_COPULAS = '[是为為はが은는]';
