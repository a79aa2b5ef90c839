/** Keys are put together here from a prefix and a random body, so that no scanner of repositories takes them for real. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { secretIn } from '../../src/tools/secrets.js';

const DIGITS = '0123456789';
const HEX = `${DIGITS}abcdef`;
const CAPITALS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ';
const BASE32 = `${CAPITALS}234567`;
const ALNUM = `${CAPITALS}${CAPITALS.toLowerCase()}${DIGITS}`;
const URL64 = `${ALNUM}-_`;

/** So many characters of an alphabet, a letter and a digit among them. */
function body(length: number, alphabet = ALNUM): fc.Arbitrary<string> {
  return fc
    .string({ unit: fc.constantFrom(...alphabet), minLength: length, maxLength: length })
    .map((text) => (alphabet.includes('9') && alphabet.includes('a') ? `9a${text.slice(2)}` : text));
}

const joined = (...parts: (string | fc.Arbitrary<string>)[]): fc.Arbitrary<string> =>
  fc
    .tuple(...parts.map((part) => (typeof part === 'string' ? fc.constant(part) : part)))
    .map((texts) => texts.join(''));

const SHAPES: Record<string, [kind: string, secret: fc.Arbitrary<string>]> = {
  'OpenAI, old': ['an API key', joined('sk-', body(20), 'T3BlbkFJ', body(20))],
  'OpenAI, of a project': ['an API key', joined('sk-proj-', body(48), '_', body(20, URL64))],
  Anthropic: ['an API key', joined('sk-ant-api03-', body(60), '-', body(30, URL64), 'AA')],
  OpenRouter: ['an API key', joined('sk-or-v1-', body(64, HEX))],
  Groq: ['an API key', joined('gsk_', body(52))],
  xAI: ['an API key', joined('xai-', body(80))],
  'Hugging Face': ['a Hugging Face token', joined('hf_', body(34))],
  Telegram: ['a Telegram bot token', joined(body(10, DIGITS), ':AA', body(33, URL64))],
  Discord: ['a Discord token', joined('M', body(23), '.', body(6, URL64), '.', body(38, URL64))],
  'Discord webhook': [
    'a Discord webhook address',
    joined('https://discord.com/api/webhooks/', body(18, DIGITS), '/', body(68, URL64)),
  ],
  Slack: ['a Slack token', joined('xoxb-', body(12, DIGITS), '-', body(12, DIGITS), '-', body(24))],
  'Slack app': ['a Slack token', joined('xapp-1-A', body(10), '-', body(13, DIGITS), '-', body(64, HEX))],
  'Slack webhook': [
    'a Slack webhook address',
    joined('https://hooks.slack.com/services/T', body(8), '/B', body(10), '/', body(24)),
  ],
  GitHub: ['a GitHub token', joined('ghp_', body(36))],
  'GitHub, fine-grained': ['a GitHub token', joined('github_pat_', body(22), '_', body(59))],
  GitLab: ['a GitLab token', joined('glpat-', body(20, URL64))],
  Atlassian: ['an Atlassian token', joined('ATATT3', body(186))],
  npm: ['an npm token', joined('npm_', body(36))],
  PyPI: ['a PyPI token', joined('pypi-AgEIcHlwaS5vcmc', body(120, URL64))],
  Docker: ['a Docker token', joined('dckr_pat_', body(27, URL64))],
  'AWS id': ['an AWS access key', joined('AKIA', body(16, BASE32))],
  'AWS secret': ['a key or token', joined('aws_secret_access_key = ', body(40))],
  Google: ['a Google API key', joined('AIza', body(35, URL64))],
  'Google client secret': ['a Google access token', joined('GOCSPX-', body(28, URL64))],
  'Google access': ['a Google access token', joined('ya29.', body(100, URL64))],
  'Azure storage': ['an Azure key', joined('AccountName=a;AccountKey=', body(86), '==')],
  DigitalOcean: ['a DigitalOcean token', joined('dop_v1_', body(64, HEX))],
  Stripe: ['a Stripe key', joined('sk_live_', body(24))],
  'Stripe, restricted': ['a Stripe key', joined('rk_test_', body(99))],
  'Stripe webhook': ['a Stripe key', joined('whsec_', body(32))],
  Shopify: ['a Shopify token', joined('shpat_', body(32, HEX))],
  SendGrid: ['a SendGrid key', joined('SG.', body(22, URL64), '.', body(43, URL64))],
  Twilio: ['a Twilio key', joined('SK', body(32, HEX))],
  Mailgun: ['a Mailgun key', joined('key-', body(32, HEX))],
  Notion: ['a Notion token', joined('ntn_', body(46))],
  Linear: ['a Linear key', joined('lin_api_', body(40))],
  Figma: ['a Figma token', joined('figd_', body(40, URL64))],
  Grafana: ['a Grafana token', joined('glsa_', body(32), '_', body(8, HEX))],
  Databricks: ['a Databricks token', joined('dapi', body(32, HEX))],
  Tailscale: ['a Tailscale key', joined('tskey-auth-', body(12), '-', body(32))],
  Vault: ['a Vault token', joined('hvs.', body(95, URL64))],
  age: ['an age key', joined('AGE-SECRET-KEY-1', body(58, BASE32))],
  'web token': ['a JSON web token', joined('eyJhbGciOiJIUzI1NiJ9.eyJ', body(20), '.', body(43, URL64))],
  authenticator: ['an authenticator secret', joined('otpauth://totp/x?secret=', body(32, BASE32))],
};

describe('keys and tokens with a shape of their own', () => {
  it.each(Object.entries(SHAPES))('%s', (_maker, [kind, secret]) => {
    fc.assert(
      fc.property(secret, (text) => {
        expect(secretIn(`Anna's: ${text}`)).toEqual({ kind, line: 1 });
        for (const wrapped of [
          `- \`${text}\`.`,
          `| for | key |\n|---|---|\n| Anna | ${text} |`,
          `Here it is:\n\n\`\`\`sh\n${text}\n\`\`\`\n`,
          `见：${text}。`,
          `(${text})`,
          `"${text}",`,
        ]) {
          expect(secretIn(wrapped), wrapped).not.toBeNull();
        }
      }),
      { numRuns: 15 },
    );
  });

  it('are found where a line ends in them', () => {
    const wrapped = fc.tuple(
      joined('ghp_', body(36)),
      fc.integer({ min: 5, max: 23 }),
      fc.constantFrom('', '  ', '> '),
    );
    fc.assert(
      fc.property(wrapped, ([token, at, mark]) => {
        const text = `${mark}Of Anna:\n${mark}${token.slice(0, at)}\n${mark}${token.slice(at)} (new)`;
        expect(secretIn(text)).toEqual({ kind: 'a GitHub token', line: 2 });
      }),
    );
  });

  it.each([
    ['https', 'https://anna:hunter2@example.com/path'],
    ['a password with signs', 'https://anna:p@ss!w0rd@example.com'],
    ['Postgres', 'DATABASE_URL=postgres://anna:hunter@localhost:5432/app'],
    ['MongoDB', 'mongodb+srv://anna:hunter@cluster.example.net/app'],
    ['Redis, without a user', 'redis://:hunter@cache:6379'],
    ['in a sentence', 'the queue is at `amqp://anna:hunter@mq.example.com`, as ever'],
  ])('a login in an address: %s', (_name, text) => {
    expect(secretIn(text)).toEqual({ kind: 'a login in an address', line: 1 });
  });

  it.each([
    ['RSA', 'RSA PRIVATE KEY'],
    ['PKCS 8', 'PRIVATE KEY'],
    ['encrypted', 'ENCRYPTED PRIVATE KEY'],
    ['EC', 'EC PRIVATE KEY'],
    ['OpenSSH', 'OPENSSH PRIVATE KEY'],
    ['PGP', 'PGP PRIVATE KEY BLOCK'],
  ])('a private key: %s', (_name, name) => {
    const lines = [
      `-----BEGIN ${name}-----`,
      'MIIEowIBAAKCAQEA'.repeat(4),
      'q3x/'.repeat(16),
      `-----END ${name}-----`,
    ];
    for (const text of [
      lines.join('\n'),
      lines.join('\r\n'),
      lines.map((line) => `> ${line}`).join('\n'),
      lines.map((line) => `    ${line}`).join('\n'),
      JSON.stringify({ text: lines.join('\n') }),
      lines.slice(0, 2).join('\n'),
    ]) {
      expect(secretIn(`The key:\n${text}`), text).toEqual({ kind: 'a private key', line: 2 });
    }
  });

  it('a private key of PuTTY, also where its first line was named before', () => {
    const key = ['PuTTY-User-Key-File-3: ssh-ed25519', 'Encryption: none', 'AAAAC3NzaC1lZDI1NTE5AAAA'];
    expect(secretIn(['The key:', ...key].join('\n'))).toEqual({ kind: 'a private key', line: 2 });
    expect(secretIn(['It begins with PuTTY-User-Key-File-3.', ...key].join('\n'))).toEqual({
      ...{ kind: 'a private key', line: 2 },
    });
    expect(secretIn('It begins with PuTTY-User-Key-File-3.')).toBeNull();
  });
});

describe('passwords by their name', () => {
  it.each([
    'password: hunter2',
    'Password = hunter2',
    'password=hunter2',
    'password:hunter2',
    'PASSWORD: HUNTER2',
    'password: swordfish',
    'password: 12345678',
    'password: P&ssw0rd!',
    'password: 1234abcd',
    'password: $ecret-1',
    'password: correct-horse-battery-staple',
    'passphrase: "correct horse battery staple"',
    'passcode: 123456',
    'pw: hunter2',
    'pw hunter2',
    'pwd=swordfish',
    'my password is hunter2',
    'My password is swordfish.',
    'The wifi password is swordfish',
    'The password is `swordfish`, tell nobody',
    'The wifi password is 12345678',
    'password hunter2',
    'password - hunter2',
    'hunter2 is my password',
    'hunter2 is the wifi password.',
    'password for the router: hunter2',
    'Password (guest wifi): swordfish',
    'user: anna, password: swordfish, host: example.com',
    'login: anna / hunter2',
    'Login: anna@example.com / hunter2',
    'curl -u anna:hunter2 https://example.com',
    'mysql -u anna --password=hunter2',
    'WLAN-Passwort: Blumentopf',
    'Passwort: Sommer2024',
    'Passwort: „Blumentopf“',
    'Mein Passwort ist Sommer2024!',
    'Das Kennwort lautet Sommer2024',
    'Netzwerkschlüssel: 8372918374',
    'contraseña: verano2024',
    'contraseña verano2024',
    'mi contraseña es verano2024',
    'mot de passe : été2024',
    'senha: verao2024',
    'wachtwoord: zomer2024',
    'hasło: lato2024',
    'пароль: leto2024',
    'пароль leto2024',
    'мой пароль — leto2024',
    'пароль от wifi: лето2024',
    '密码：xiatian2024',
    '密码是xiatian2024',
    '密码xiatian2024，别告诉别人',
    '我的密码: qwerty',
    'パスワード：natsu2024',
    '비밀번호: yeoreum2024',
    'ｐａｓｓｗｏｒｄ：ｈｕｎｔｅｒ２',
    'pass\u200Bword: hunter2',
    'WIFI:T:WPA;S:home;P:hunter2hunter;;',
    'PIN: 4711',
    'The PUK is 12345678',
    'CVV: 123',
  ])('%s', (text) => {
    expect(secretIn(text)).toEqual({ kind: expect.stringMatching(/password|PIN|PUK|card code/), line: 1 });
  });

  it.each([
    ['bold', '**Password:** hunter2', 1],
    ['bold name', '- **Password**: `hunter2`', 1],
    ['on the next line', 'Password:\n\n  hunter2', 3],
    ['in a fence', 'Password:\n```text\nswordfish\n```', 3],
    ['under a heading', '# Wifi\n\n## Password\n\nhunter2', 5],
    ['in a list under a heading', '## Passwords\n\n- router: hunter2\n- nas: apfel42', 3],
    ['under a column', '| user | password |\n|------|----------|\n| anna | swordfish |', 3],
    ['right of its name', '| Name | Value |\n| :- | -: |\n| Password | swordfish |', 3],
    ['in a row of no table', 'Anna\n| password | hunter2 |', 2],
    ['in JSON', '{\n  "user": "anna",\n  "password": "swordfish"\n}', 3],
    ['in YAML', 'db:\n  password: swordfish', 2],
    ['in XML', '<login>\n<password>swordfish</password>', 2],
    ['in a connection string', 'Server=db;User Id=sa;Password=Hunter;Database=app', 1],
    ['in an address of JDBC', 'jdbc:postgresql://db/app?user=anna&password=hunter&ssl=true', 1],
    ['in an .env', 'PORT=8080\nDB_PASSWORD=swordfish', 2],
    ['in an .env, quoted', 'export SMTP_PASS="swordfish"', 1],
    ['in code', 'const dbPassword = "swordfish";', 1],
    ['in the middle', 'Tea.\r\nRain.\r\npassword: hunter2\r\nSnow.', 3],
  ])('%s', (_place, text, line) => {
    expect(secretIn(text)).toEqual({ kind: 'a password', line });
  });
});

describe('keys by their name', () => {
  it.each([
    'api key: §',
    'API-Key: `§`',
    'API_KEY=§',
    'apiKey: "§"',
    'my API key is §',
    'api key §',
    '| API key | § |',
    'access token: §',
    'accessToken=§',
    'client secret: §',
    'SECRET_KEY_BASE=§',
    'BOT_TOKEN=§',
    'token: §',
    'secret = §',
    'Authorization: Bearer §',
    'curl -H "Authorization: Bearer §"',
    'Bearer §',
    'https://example.com/reset?access_token=§',
    'private key: 0x§§',
    'API-Schlüssel: §',
    'clave de API: §',
    'ключ API: §',
    'токен: §',
    '密钥：§',
    '## API key\n\n§',
  ])('%s', (text) => {
    const key = body(32, HEX);
    fc.assert(
      fc.property(key, (value) => {
        expect(secretIn(text.replaceAll('§', value))?.kind).toBe('a key or token');
      }),
      { numRuns: 15 },
    );
  });

  it('are found as a UUID, too, and as what a header of logins carries', () => {
    fc.assert(
      fc.property(fc.uuid(), (id) => {
        expect(secretIn(`api key: ${id}`)).not.toBeNull();
      }),
    );
    expect(secretIn('Authorization: Basic YW5uYTpodW50ZXIy')?.kind).toBe('a key or token');
  });
});

describe('bank cards and recovery phrases', () => {
  it.each([
    '4111111111111111',
    '4111 1111 1111 1111',
    '5500-0055-5555-5559',
    '2221 0000 0000 0009',
    '3782 822463 10005',
    '378282246310005',
    '6011 1111 1111 1117',
    '3530 1113 3330 0000',
    'card,4111111111111111,12/27',
    'Visa 4111 1111 1111 1111 12/27',
  ])('%s', (text) => {
    expect(secretIn(text)).toEqual({ kind: 'a card number', line: 1 });
    expect(secretIn(`| card | ${text} |`)?.kind).toBe('a card number');
  });

  it('a card with one digit changed is none', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 15 }), fc.integer({ min: 1, max: 9 }), (at, by) => {
        const digits = [...'4111111111111111'];
        digits[at] = String((Number(digits[at]) + by) % 10);
        expect(secretIn(digits.join(''))).toBeNull();
      }),
    );
  });

  const words = 'abandon ability able about above absent absorb abstract absurd abuse access accident'.split(
    ' ',
  );
  it.each([
    ['in a line', `seed phrase: ${words.join(' ')}`],
    ['numbered', `Recovery phrase:\n${words.map((word, at) => `${at + 1}. ${word}`).join('\n')}`],
    ['with commas', `Wallet. My mnemonic phrase is ${words.join(', ')}.`],
    ['in a fence', `Seed words\n\`\`\`\n${words.join(' ')}\n\`\`\``],
  ])('a recovery phrase, %s', (_place, text) => {
    expect(secretIn(text)).toEqual({ kind: 'a recovery phrase', line: 1 });
  });
});

describe('what only looks like one passes', () => {
  it.each([
    'the password is changed every month',
    'remember to reset my password',
    'I forgot my password again',
    'The password is case sensitive and was changed.',
    'The password is stored in 1Password',
    'the password is 12 characters long',
    'the password field is required',
    'password: unknown',
    'password: in the safe',
    'password: ask Ben',
    'password: see 1Password',
    'password: ********',
    'password: <your password>',
    'password: required',
    'password: 12 characters minimum',
    `PASSWORD=$\{DB_PASSWORD}`,
    'PASSWORD_MIN_LENGTH=12',
    'password policy: 12 characters, one digit',
    'password last changed: 2024-05-01',
    'Password changed 2024-05-01',
    'password rotation: 90d',
    'password manager: KeePassXC',
    'wifi password WPA2',
    'fields: user: string, password: string',
    '| user | password | note |',
    '| user | password |\n|---|---|\n| anna | in the safe |',
    'Passwords:\n- rotate them\n- never share them',
    '## Passwords\n\nAnna likes tea',
    'uses bcrypt for password hashing',
    'https://example.com/password-reset-2024',
    'Passwort vergessen',
    'Das Passwort ist kompliziert.',
    'Das Passwort steht im Tresor.',
    'Passwort: siehe Tresor',
    'Passwort ändern am 01.12.2025',
    'la contraseña se cambia cada mes',
    'contraseña: en la caja fuerte',
    'mot de passe oublié',
    'пароль меняется каждый месяц',
    'пароль: меняется',
    '密码：每月更换',
    '密码在保险箱里',
    'パスワード：毎月変更',
    'La clave es practicar',
    'boarding pass: LH1234',
    'pass 3 of 5',
    'PIN code 560001',
    'compass: 42',
    'token ring',
    'Token: ring',
    'tokens: 128000',
    'MAX_TOKENS=4096',
    'Access token expires after 3600s',
    'bearer of good news 2024',
    'The secret ingredient is cinnamon',
    'Secret Santa: Anna draws Ben',
    'Anna needs an API key for the weather service',
    'API key: in .env',
    'API key: OPENAI_API_KEY',
    'key: C major',
    'primary key: user_id2',
    'public key: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ',
    '-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOC\n-----END PUBLIC KEY-----',
    'The file begins with -----BEGIN PRIVATE KEY-----',
    'backup codes: printed, in the drawer',
    'The seed phrase should never be written down.',
    'seed words: kept in the safe at home',
    'seeds: carrot, radish, lettuce, spinach, tomato, basil, thyme, onion, pepper, squash, cucumber, pumpkin',
    'Recipe 4711-0815: soup of the day',
    'order 302-1234567-1234567',
    'order number 12345678901234',
    'invoice 2024-11-22/4711',
    'Donaudampfschifffahrtsgesellschaftskapitänspatent',
    'Rechtsschutzversicherungsgesellschaften, Arbeiterunfallversicherungsgesetz',
    'IBAN DE89 3704 0044 0532 0130 00',
    'IBAN GB29 NWBK 6016 1331 9268 19',
    'IBAN FR14 2004 1010 0505 0001 3M02 606',
    'tracking number 1Z999AA10123456784',
    'IMEI 490154203237518',
    '3.14159265358979323846',
    'https://example.com/a/b?c=d#e',
    'https://example.com:8080/@anna',
    'http://localhost:3000/?mail=a@b.c',
    'https://shop.example/sk-winter-jacket-2024-blue-xl',
    'mailto:anna85@example.com',
    'E-Mail: anna85@example.com',
    'git@github.com:anna/tea.git',
    'ssh://git@example.com:22/tea.git',
    'dGVhIGFuZCByYWlu',
    'Discord server 889912345678901234, chat telegram_-1001234567890',
    '1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Ba4 Nf6 5. O-O Be7',
    'flight LH1234, seat 22A, gate B42',
    'pk_live_is_the_public_one',
  ])('%s', (text) => {
    expect(secretIn(text)).toBeNull();
  });

  const number = (length: number) =>
    fc.string({ unit: fc.constantFrom(...DIGITS), minLength: length, maxLength: length });
  const hash = fc
    .constantFrom(7, 12, 32, 40, 64)
    .chain((length) => fc.string({ unit: fc.constantFrom(...HEX), minLength: length, maxLength: length }));
  const isbn = number(9).map((digits) => {
    const twelve = `978${digits}`;
    const sum = [...twelve].reduce((total, digit, at) => total + Number(digit) * (at % 2 === 0 ? 1 : 3), 0);
    return `978-${digits.slice(0, 1)}-${digits.slice(1, 5)}-${digits.slice(5)}-${(10 - (sum % 10)) % 10}`;
  });
  const phone = fc
    .tuple(fc.integer({ min: 1, max: 999 }), number(3), number(7), fc.constantFrom(' ', '-', '', '/'))
    .map(([country, area, rest, gap]) => `+${country}${gap}${area}${gap}${rest}`);
  const place = fc
    .tuple(fc.float({ min: -90, max: 90, noNaN: true }), fc.float({ min: -180, max: 180, noNaN: true }))
    .map(([north, east]) => `${north}, ${east}`);
  const time = fc.date({ noInvalidDate: true }).map((date) => date.toISOString());
  const shortId = fc.string({ unit: fc.constantFrom(...URL64), minLength: 4, maxLength: 12 });

  it.each([
    ['a UUID', fc.uuid()],
    ['a hash', hash],
    ['an ISBN', isbn],
    ['a phone number', phone],
    ['coordinates', place],
    ['a time', time],
    ['a short id', shortId],
    [
      'a number of 14 digits or less that is no card of Diners',
      fc.integer({ min: 1, max: 13 }).chain(number),
    ],
  ] as [string, fc.Arbitrary<string>][])('%s', (_name, arbitrary) => {
    const frame = fc.constantFrom(
      'X',
      'See X.',
      '- `X`',
      '| Anna | X |',
      'commit X',
      'recipe no. X',
      '订单：X',
    );
    fc.assert(
      fc.property(arbitrary, frame, (text, around) => {
        expect(secretIn(around.replace('X', () => text))).toBeNull();
      }),
      { numRuns: 300 },
    );
  });
});

describe('what stood there before', () => {
  it('does not count; what came to it does', () => {
    const before = 'password: hunter2\n\n## Cards\n4111 1111 1111 1111';
    expect(secretIn(before, before)).toBeNull();
    expect(secretIn('Tea.\n\nPassword is `hunter2`\ncard 4111111111111111', before)).toBeNull();
    expect(secretIn(`${before}\napi key: a1b2c3d4e5f6a7b8`, before)).toEqual({
      kind: 'a key or token',
      line: 5,
    });
    expect(secretIn('password: hunter22', before)).not.toBeNull();
  });
});

describe('a long text', () => {
  it('is read through in a moment, whatever it repeats', () => {
    const parts = [
      'a',
      ' ',
      '\n',
      '-',
      '_-',
      '|',
      '| a ',
      'sk-',
      'password ',
      'password: ',
      'ghp_',
      'a://b:',
      '1:',
      'key-',
    ];
    const texts = [...parts.map((part) => part.repeat(100_000 / part.length)), `a${' '.repeat(100_000)}b`];
    for (const text of texts) {
      const start = performance.now();
      secretIn(text);
      // A tenth of a second where it is right, ten seconds and more where an expression goes back over what it has read.
      expect(performance.now() - start, JSON.stringify(text.slice(0, 20))).toBeLessThan(5_000);
    }
  });
});
