/**
 * Looking for secrets takes as long as a text is long, whatever somebody writes to make it longer: 40 kB for each
 * expression of the tables, of what it begins with and almost goes on with. One that goes back over what it has read takes
 * seconds for the worst of these, or for ever.
 */
import { expect, it } from 'vitest';
import { secretIn } from '../../src/tools/secrets.js';

const LENGTH = 40_000;
/** Mostly it is a few hundredths of a second. */
const MOST_MS = 3_000;

/** Repeated as they are. */
const PIECES = [
  ...[
    'a',
    '1',
    'a1',
    ' ',
    '\n',
    '-',
    '_',
    '.',
    ':',
    '/',
    '@',
    '=',
    ';',
    '|',
    '"',
    '`',
    '*',
    '#',
    '密',
    '\\n',
  ],
  ...['sk-a1', 'gsk_', 'hf_', '123456:', '123456:AA', 'mfa.', 'discord.com/api/webhooks/1/', 'xoxb-1-'],
  ...[
    'hooks.slack.com/services/',
    'EAA',
    'ghp_',
    'glpat-a_',
    'ATATT3=',
    'AIza',
    'ya29.',
    '1//0',
    'AccountKey=',
  ],
  ...[
    'abc1Q~',
    'fm1_',
    'sk_live_',
    'SG.',
    'secret_',
    'tskey-a-',
    'hvs.',
    'dp.pt.',
    'ops_eyJ',
    'xprv',
    'eyJa-',
  ],
  ...[
    'http://a:',
    'a+',
    'otpauth://',
    '-----BEGIN PRIVATE KEY-----',
    'PuTTY-User-Key-File-2',
    '1111 ',
    '1111-',
  ],
  ...['WIFI:T:a;', 'PIN ', 'CVV: ', 'abcde is the ', 'password', 'password: ', 'password for ', 'password ('],
  ...[
    '-u ',
    '-ua',
    'login: ',
    'logins:é',
    'authorization: basic ',
    'backup code ',
    'seed phrase ',
    'abandon ',
  ],
  ...[
    'api key',
    'token ',
    'api_key="',
    '## Passwords\n',
    '- router: ',
    '| a | b |\n|---|\n',
    '“',
    '```\n',
    '口令',
  ],
];
/** The second repeated behind the first. */
const BEGUN: [string, string][] = [
  ['-----BEGIN PRIVATE KEY-----', '\\n'],
  ['-u a', 'é'],
  ['login: ', 'a'],
  ['credentials: é', '1'],
  ['eyJaaaaaaaa', '-eyJ'],
  ['- ', ' '],
  ['* a', ' : '],
  ['# password ', ' '],
  ['password', ' '],
  ['my password is ', 'is '],
  ['otpauth://secret=', ';'],
  ['WIFI:P:', '/'],
  ['seed phrase ', 'abandon, '],
];

it.each([...PIECES.map((piece): [string, string] => ['', piece]), ...BEGUN])(
  'takes no longer for %j and much of %j',
  (begun, piece) => {
    const text = begun + piece.repeat(LENGTH / piece.length);
    const begin = performance.now();
    secretIn(text);
    expect(performance.now() - begin).toBeLessThan(MOST_MS);
  },
  2 * MOST_MS,
);
