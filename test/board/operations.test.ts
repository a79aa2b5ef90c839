/** The page's routes for operators: secrets in no answer, log lines as they were, what may be decided and how often. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import * as z from 'zod';
import { createApi } from '../../src/board/api.js';
import { adviceOn, channelItem } from '../../src/board/channel-items.js';
import { addOperations, type OperationsParts } from '../../src/board/operations.js';
import type { AuditPage, ConfigKey, LogLines, UsageNow } from '../../src/board/protocol-operations.js';
import { closedWords } from '../../src/channels/discord/failure.js';
import { closingOf, UNLINKED } from '../../src/channels/whatsapp/connection.js';
import { loadConfig } from '../../src/config.js';
import { configKeys } from '../../src/config-keys.js';
import type { ChannelStatus } from '../../src/core/channel.js';
import type { AuditEntry } from '../../src/core/journal.js';
import { createAudit } from '../../src/operating/audit.js';
import { newestEntries } from '../../src/operating/audit-read.js';
import { createLog, createLogTail } from '../../src/operating/log.js';
import { createRedactor } from '../../src/operating/redact.js';
import { shownKeys } from '../../src/page-operations.js';
import { isSecretOption } from '../../src/secrets.js';
import { visible } from '../../web/src/operations/symbols.js';
import { manualClock } from '../fakes/clock.js';
import { quietLog } from '../harness/quiet.js';

const NOW = Date.UTC(2026, 10, 27, 12);
const SECRET = 'hushhush';

/** Only what a test asks for is there. */
function routes(parts: Partial<OperationsParts>) {
  const api = createApi(quietLog);
  const redact = createRedactor([SECRET]);
  addOperations(api, { redact, now: () => NOW, ...parts } as OperationsParts);
  return async <Body>(path: string): Promise<Body> => {
    const response = await api.request(`/api/board/operations/${path}`);
    expect(response.status).toBe(200);
    return (await response.json()) as Body;
  };
}

describe('channels', () => {
  const since = NOW;
  const item = (name: string, status: Partial<ChannelStatus>) =>
    channelItem({ name, label: name }, { connected: false, since, lastError: null, ...status }, null);

  it.each([
    ['telegram', 'Telegram answers 409: Conflict: terminated by other getUpdates request', 'otherReader'],
    ['telegram', "Telegram answers 409: Conflict: can't use getUpdates while webhook is active", 'webhook'],
    ['telegram', 'Telegram answers 401: Unauthorized (is channels.telegram.token the one …)', 'token'],
    ['telegram', 'Telegram answers 404: Not Found: method not found (… needs an update)', 'oldServer'],
    ['telegram', 'Telegram cannot be reached: ECONNREFUSED', 'network'],
    ['telegram', 'could not store updates from Telegram: the disk is full', 'disk'],
    ['telegram', 'Telegram answers 502: Bad Gateway', 'theirs'],
    ['discord', closedWords(4004), 'token'],
    ['discord', closedWords(4014), 'intent'],
    ['discord', closedWords(4011), 'tooManyServers'],
    ['discord', closedWords(4012), 'update'],
    ['discord', 'Discord cannot be reached: getaddrinfo ENOTFOUND', 'network'],
    ['whatsapp', 'not linked yet: scan the QR code with the phone, under Linked devices', 'link'],
    ['whatsapp', UNLINKED.unscanned, 'link'],
    ['whatsapp', UNLINKED.stalled, 'link'],
    ...([
      [401, 'linkAgain'],
      [402, 'refused'],
      [403, 'refused'],
      [405, 'oldClient'],
      [408, 'network'],
      [411, 'multiDevice'],
      [440, 'sameLink'],
      [503, 'theirs'],
    ].map(([code, advice]) => {
      const error = Object.assign(new Error('closed'), { output: { statusCode: code } });
      return ['whatsapp', closingOf(error).reason, advice];
    }) as [string, string, string][]),
    ['whatsapp', 'something new', 'stays'],
  ])('on %s, knows what to do about: %s', (channel, error, advice) => {
    expect(adviceOn(channel, error)).toBe(advice);
  });

  it('are bad only while something has to be done', () => {
    expect(item('telegram', {})).toMatchObject({ level: 'warn', state: 'connecting', advice: null });
    const before = 'Telegram answers 409: Conflict: other';
    expect(item('telegram', { lastError: before })).toMatchObject({ level: 'bad', state: 'failing' });
    const again = item('telegram', { connected: true, lastError: before });
    expect(again).toMatchObject({ level: 'good', state: 'connected', advice: null, lastError: before });
    const held = 'WhatsApp does not let this account write to some people (463)';
    expect(item('whatsapp', { connected: true, lastError: held })).toMatchObject({ level: 'warn' });
  });

  it('at another gateway are named by it, and nothing is said of how they are there', () => {
    const lastError = 'Telegram answers 401: Unauthorized';
    const told = channelItem(
      { name: 'telegram', label: 't' },
      { connected: false, since, lastError },
      'attic',
    );
    const unknown = { lastError: null, advice: null };
    expect(told).toMatchObject({ level: 'good', state: 'elsewhere', heldBy: 'attic', ...unknown });
  });
});

describe('the log', () => {
  const written = (most?: number) => {
    const tail = createLogTail(most);
    const secrets = createRedactor([SECRET]);
    const log = createLog({
      ...{ level: 'info', format: 'json', secrets, tail, destination: { write: () => {} } },
    });
    const ask = routes({ log: { ...tail, level: 'info' } });
    return { log, read: (after = 0) => ask<LogLines>(`log?after=${after}`) };
  };

  it('keeps markup and terminal codes as they are, and secrets out', async () => {
    const { log, read } = written();
    log.debug({}, 'below the level');
    log.warn({ name: '</pre><script>alert(1)</script>', key: SECRET }, '\u001b[2J\u202e<b>bold</b>');
    log.error({ err: new Error(`no\n${SECRET}`) }, 'failed');
    const { lines, newest } = await read();
    expect(lines).toMatchObject([
      { n: 1, level: 'warn', text: '\u001b[2J\u202e<b>bold</b>' },
      { n: 2, level: 'error', text: 'failed' },
    ]);
    expect(lines[0]?.more).toBe('name: </pre><script>alert(1)</script>\nkey: [redacted]');
    expect(lines[1]?.more).toMatch(/^err: Error: no\n\[redacted\]\n {4}at /);
    expect(JSON.stringify(lines)).not.toContain(SECRET);
    expect(await read(newest)).toMatchObject({ lines: [], newest: 2 });
    log.info({}, 'more');
    expect((await read(newest)).lines).toMatchObject([{ n: 3, text: 'more' }]);
    expect((await read(99)).lines, 'of a process before this').toHaveLength(3);
  });

  it('keeps the newest lines only, and of each no more than it can hold', async () => {
    const { log, read } = written(3);
    for (let n = 1; n <= 7; n++) log.info({ long: 'x'.repeat(100_000) }, `line ${n} ${'y'.repeat(9_000)}`);
    const { lines } = await read();
    expect(lines.map(({ n, text }) => [n, text.slice(0, 6)])).toEqual([
      [5, 'line 5'],
      [6, 'line 6'],
      [7, 'line 7'],
    ]);
    expect(JSON.stringify(lines).length).toBeLessThan(3 * 5_000);
  });

  it('is shown without anything that nobody would see', () => {
    expect(visible('\u001b[31mred\u0000\u007f\u009b\u202e\u200b', true)).toBe('␛[31mred␀␡‹009B›‹202E›‹200B›');
    expect(visible('one\r\ntwo\rthree\n\tfour')).toBe('one\ntwo␍three\n\tfour');
    expect(visible('one\n\ttwo', true)).toBe('one␊␉two');
    expect(visible('👩‍🚀 <b>&amp;</b>')).toBe('👩‍🚀 <b>&amp;</b>');
  });
});

describe('the configuration', () => {
  const from = (name: string) => `\${${name}}`;
  const NOTHING = { variables: [], secretFiles: [] };
  const textOf = (keys: ConfigKey[]): string =>
    keys.map(({ key, value, inner }) => `${key}: ${value ?? ''}\n${textOf(inner ?? [])}`).join('');

  interface Schema {
    type?: string;
    properties?: Record<string, Schema>;
    additionalProperties?: Schema | boolean;
    items?: Schema;
    anyOf?: Schema[];
  }

  /** A value for every key: each text is an address with a login and a key, or a secret. */
  function filled(schema: Schema, path: string[], secrets: string[], isSecret = false): unknown {
    const { type, properties, additionalProperties: more, items, anyOf } = schema;
    const inside = (inner: Schema, name: string) =>
      filled(inner, [...path, name], secrets, isSecret || isSecretOption(name, path));
    if (properties !== undefined)
      return Object.fromEntries(Object.entries(properties).map(([name, each]) => [name, inside(each, name)]));
    if (anyOf !== undefined) return filled(anyOf[0] ?? {}, path, secrets, isSecret);
    if (items !== undefined) return [inside(items, '0')];
    if (type === 'object' || typeof more === 'object') {
      const inner = typeof more === 'object' ? more : { type: 'string' };
      return { Authorization: inside(inner, 'Authorization'), named: inside(inner, 'named') };
    }
    if (type !== 'string' && type !== undefined) return 7;
    const word = `s${secrets.push(`s${secrets.length}s`) - 1}s`;
    return isSecret ? word : `https://me:${word}@host/v1?api_key=${word}`;
  }

  it('shows none of the secrets that its keys can hold, whatever they are', () => {
    const schema = z.toJSONSchema(configKeys, { io: 'input', unrepresentable: 'any' }) as Schema;
    const secrets: string[] = [];
    const keys = filled(schema, [], secrets) as object;
    expect(secrets.length).toBeGreaterThan(60);
    // Even if nothing is known of any secret.
    const shown = textOf(shownKeys(keys, NOTHING, (text) => text));
    expect(shown).toMatch(/token: ••••/);
    expect(secrets.filter((secret) => shown.includes(secret))).toEqual([]);
  });

  it('names the sources of what stands elsewhere, and hides it', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'coterie-keys-'));
    try {
      await writeFile(join(folder, 'token'), '123:fromfile\n');
      await writeFile(
        join(folder, 'config.yaml'),
        [
          `timezone: ${from('ZONE')}`,
          `model: { base_url: "http://${from('HOST')}/v1", name: m, api_key: typed }`,
          `channels: { telegram: { token: "${from('file:token')}" } }`,
          'mcp: { servers: { x: { command: run, args: [--api-key, abc, --token=def, --fast, on] } } }',
        ].join('\n'),
      );
      const environment = { ZONE: 'Europe/Berlin', HOST: 'inner.lan' };
      const { keys, config } = await loadConfig({ environment, workingDirectory: folder });
      const shown = shownKeys(keys, config);
      const at = (...path: string[]) =>
        path.reduce<ConfigKey | undefined>(
          (found, name) => (found?.inner ?? shown).find(({ key }) => key === name),
          undefined,
        );
      expect(at('timezone')).toEqual({
        key: 'timezone',
        isSet: true,
        value: '••••',
        sources: [from('ZONE')],
      });
      expect(at('model', 'base_url')).toMatchObject({ value: '••••', sources: [from('HOST')] });
      expect(at('model', 'api_key')).toMatchObject({ value: '••••', isSet: true });
      expect(at('model', 'timeout_seconds')).toEqual({ key: 'timeout_seconds', isSet: false, value: '120' });
      expect(at('channels', 'telegram', 'token')).toMatchObject({
        ...{ value: '••••', sources: [from(`file:${join(folder, 'token')}`)] },
      });
      expect(at('mcp', 'servers', 'x', 'args')?.value).toBe('--api-key •••• --token=•••• --fast on');
      expect(textOf(shown)).not.toMatch(/Berlin|inner|typed|fromfile|abc|def\b/);
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});

describe('the audit log', () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'coterie-audit-page-'));
  });
  afterAll(() => rm(folder, { recursive: true }));

  it('is read a page at a time, over several files, and never twice', async () => {
    const audit = createAudit({
      ...{ folder, keepBytes: 1e9, fileBytes: 20_000, redact: (text) => text },
      ...{ clock: manualClock(NOW), log: quietLog },
    });
    const entry: AuditEntry = { kind: 'command', who: 'a', where: null, what: '', word: null };
    for (let n = 1; n <= 95; n++)
      await audit.record({ ...entry, what: `${n} <b> ${SECRET}`, details: { n: SECRET } });
    const read = routes({
      auditEntries: (before, most) => newestEntries(folder, () => true, most, undefined, before),
    });
    const numbers: number[] = [];
    for (let before = 96, isEnd = false; !isEnd; ) {
      const page = await read<AuditPage>(`audit?before=${before}`);
      numbers.push(...page.entries.map(({ n }) => n));
      expect(page.strange).toBe(0);
      expect(JSON.stringify(page)).not.toContain(SECRET);
      expect(page.entries[0]?.what).toMatch(/^\d+ <b> \[redacted\]$/);
      before = numbers.at(-1) ?? 0;
      isEnd = page.isEnd;
    }
    expect(numbers).toEqual(Array.from({ length: 95 }, (_, n) => 95 - n));
  });
});

describe('usage', () => {
  it('has every day, and of each limit the account that is nearest to it', async () => {
    const amount = { turns: 1, tokens: 100, cost: 5 };
    const today = {
      personas: [
        { chatId: 'a_1', personaId: 'luna', tokens: 60, cost: 1 },
        { chatId: 'a_1', personaId: 'sol', tokens: 30, cost: 1 },
        { chatId: 'a_2', personaId: 'luna', tokens: 70, cost: 9 },
      ],
      people: [{ personId: 'a_7', tokens: 20, cost: 3 }],
    };
    const days = [{ day: Date.UTC(2026, 10, 26), ...amount }];
    const read = routes({
      feed: {
        letIn: async () => [],
        openJobs: async () => [],
        spending: async () => ({ days, chats: [], personas: [], today }),
      },
      usage: {
        zone: { date: () => '2026-11-27' },
        limits: {
          tokens_per_day: 200,
          tokens_per_chat: 80,
          tokens_per_persona: 80,
          money_per_person: 10,
          answer_bytes: 1,
        },
        hasMoney: false,
      },
    });
    const found = await read<UsageNow>('usage');
    expect(found.days).toHaveLength(30);
    expect(found.days.at(-2)).toEqual({ day: '2026-11-26', ...amount });
    expect(found.days.at(-1)).toEqual({ day: '2026-11-27', turns: 0, tokens: 0, cost: 0 });
    expect(found.hasMoney).toBe(true);
    expect(found.budgets).toEqual([
      { key: 'tokens_per_day', unit: 'tokens', most: 200, used: 160, of: null },
      { key: 'tokens_per_chat', unit: 'tokens', most: 80, used: 90, of: 'a_1' },
      { key: 'tokens_per_persona', unit: 'tokens', most: 80, used: 70, of: 'a_2/luna' },
      { key: 'money_per_person', unit: 'money', most: 10, used: 3, of: 'a_7' },
    ]);
  });
});
