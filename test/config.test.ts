/** The configuration: where it is found, what it becomes, and every fault at once. */
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import * as z from 'zod';
import { loadConfig } from '../src/config.js';
import { configKeys } from '../src/config-keys.js';
import { Fault } from '../src/core/errors.js';
import { createRedactor } from '../src/operating/redact.js';
import { hiddenInLogs, isSecretOption, secretsOf } from '../src/secrets.js';

const BOT = '123456789:AAF-abcdefghijklmnopqrstuvwxyz_0123';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'coterie-config-'));
});
afterEach(() => rm(folder, { recursive: true }));

async function load(yaml: string, environment: Record<string, string> = {}) {
  await writeFile(join(folder, 'config.yaml'), yaml);
  return loadConfig({ environment, workingDirectory: folder });
}

/** The lines of the refusal, without the file's name. */
async function faultsOf(yaml: string, environment: Record<string, string> = {}): Promise<string[]> {
  const fault = await load(yaml, environment).then(
    () => null,
    (error: unknown) => error,
  );
  if (!(fault instanceof Fault)) throw new Error('the configuration was accepted', { cause: fault });
  expect(fault.code).toBe('configuration');
  const [, ...lines] = fault.message.split('\n');
  return lines.map((line) => line.replace(`${join(folder, 'config.yaml')}, `, ''));
}

describe('where the configuration is', () => {
  it('is nowhere: then everything is default', async () => {
    const { config, warnings, file } = await loadConfig({ environment: {}, workingDirectory: folder });
    expect({ warnings, file }).toEqual({ warnings: [], file: null });
    expect(config).toEqual({
      dataDir: join(folder, 'data'),
      groupsDir: join(folder, 'groups'),
      timezone: null,
      store: { url: null, connections: 8, waitMs: 30_000 },
      shutdownSeconds: 20,
      log: { level: 'info', format: 'json' },
      model: {
        server: null,
        fallbacks: [],
        choices: [],
        contextTokens: null,
        maxOutputTokens: 4096,
        timeoutSeconds: 120,
        maxToolRounds: 25,
        images: 'auto',
      },
      tracing: { endpoint: null, headers: {}, sample: 1 },
      transcription: null,
      speech: null,
      tools: {
        allow: ['memory', 'search', 'clipboard', 'schedules', 'reactions', 'send'],
        chats: {},
        channels: {},
        maxOffered: 128,
        reactions: 'groups',
        shell: { sandbox: 'bubblewrap', network: false, env: [], timeoutSeconds: 60, memoryMb: 512 },
        web: { timeoutSeconds: 20, maxBytes: 2_000_000, allowHosts: [] },
      },
      mcp: { servers: [] },
      agents: { roots: [] },
      approvals: { minutes: 30 },
      schedules: { missed: 'once', quietHours: null },
      digests: { every: null, chats: [] },
      redisUrl: null,
      media: { maxBytes: 20_000_000 },
      retention: {
        days: 30,
        mediaBytes: 2_000_000_000,
        mediaBytesPerChat: 500_000_000,
        auditBytes: 500_000_000,
        replayBytes: 200_000_000,
      },
      network: {
        proxies: { plain: null, secure: null, except: [], exceptFrom: 'NO_PROXY' },
        attemptMs: 5000,
      },
      limits: {
        messagesPerMinute: null,
        tokensPerChat: null,
        tokensPerPersona: null,
        tokensPerPerson: null,
        tokensPerDay: null,
        moneyPerChat: null,
        moneyPerPersona: null,
        moneyPerPerson: null,
        moneyPerDay: null,
        answerBytes: 2_000_000,
        callsPerAnswer: 16,
        sendsPerTurn: 5,
        sameCallsPerTurn: 3,
        tierBytes: 64_000,
        personasPerChat: 50,
        tasksWaiting: 5_000,
      },
      conversation: {
        compactAfterMessages: 200,
        keepRecentMessages: 80,
        overheardMessages: 50,
        debounceMs: 400,
      },
      node: {
        name: expect.stringMatching(/^[A-Za-z0-9._-]{1,64}$/),
        leaseMs: 15_000,
        roles: ['channels', 'turns', 'jobs', 'board'],
      },
      personas: { natural: false, buttons: 'used', maxRounds: 3, maxReplies: 8, characterMaxChars: 40_000 },
      lore: { scanDepth: 2, budgetTokens: null },
      delivery: { maxAgeHours: 24 },
      memory: {
        ...{ longTermMaxChars: 12_000, dailyPerDayMaxChars: 4000, dailyFiles: 2, dailyMaxChars: 8000 },
        ...{ consolidate: false, consolidateTokens: 200_000 },
      },
      embeddings: {
        ...{ backend: 'off', baseUrl: null, apiKey: null, model: null, redisUrl: null },
        ...{ queue: 'queue:gpu_heavy', timeoutSeconds: 30, batchSize: 64, batchWindowMs: 5 },
        ...{ queryPrefix: null, documentPrefix: null, dimensions: null },
      },
      channels: {
        telegram: null,
        discord: null,
        whatsapp: null,
        terminal: {
          streaming: 'edit',
          access: {
            direct: 'open',
            groups: 'listed',
            chats: [],
            owners: ['terminal_local'],
            controlChats: [],
            requireMention: true,
          },
        },
        board: {
          streaming: 'edit',
          access: {
            direct: 'open',
            groups: 'listed',
            chats: [],
            owners: ['board_owner'],
            controlChats: [],
            requireMention: true,
          },
        },
      },
      board: { host: '127.0.0.1', port: 8420, token: null, trustedProxies: [], origins: [] },
      secretFiles: [],
      unready: { telegram: null, discord: null, whatsapp: null },
      variables: [],
    });
  });

  it('is what --config says, else COTERIE_CONFIG, else ./config.yaml', async () => {
    await mkdir(join(folder, 'sub'));
    await writeFile(join(folder, 'config.yaml'), 'shutdown_seconds: 1');
    await writeFile(join(folder, 'sub/env.yaml'), 'shutdown_seconds: 2');
    await writeFile(join(folder, 'sub/argument.yaml'), 'shutdown_seconds: 3\ndata_dir: here');
    const environment = { COTERIE_CONFIG: 'sub/env.yaml' };
    const seconds = async (from: { argumentPath?: string; environment: Record<string, string> }) => {
      const loaded = await loadConfig({ ...from, workingDirectory: folder });
      return [loaded.config.shutdownSeconds, loaded.file];
    };
    expect(await seconds({ environment: {} })).toEqual([1, join(folder, 'config.yaml')]);
    expect(await seconds({ environment: { COTERIE_CONFIG: '' } })).toEqual([1, join(folder, 'config.yaml')]);
    expect(await seconds({ environment })).toEqual([2, join(folder, 'sub/env.yaml')]);
    expect(await seconds({ argumentPath: 'sub/argument.yaml', environment })).toEqual([
      3,
      join(folder, 'sub/argument.yaml'),
    ]);
  });

  it('must be there when it is named, and readable', async () => {
    const missing = loadConfig({ argumentPath: 'no.yaml', environment: {}, workingDirectory: folder });
    await expect(missing).rejects.toMatchObject({
      code: 'configuration',
      message: expect.stringContaining(`${join(folder, 'no.yaml')}, which --config names`),
    });
    const named = loadConfig({ environment: { COTERIE_CONFIG: '/no/where.yaml' }, workingDirectory: folder });
    await expect(named).rejects.toThrow('COTERIE_CONFIG');
    const directory = loadConfig({ argumentPath: folder, environment: {}, workingDirectory: folder });
    await expect(directory).rejects.toMatchObject({ code: 'configuration' });
  });
});

describe('what it becomes', () => {
  it('has paths relative to the file', async () => {
    await mkdir(join(folder, 'sub'));
    await writeFile(join(folder, 'sub/c.yaml'), 'data_dir: ../d\ngroups_dir: /srv/groups');
    const { config } = await loadConfig({
      argumentPath: 'sub/c.yaml',
      environment: {},
      workingDirectory: folder,
    });
    expect([config.dataDir, config.groupsDir]).toEqual([join(folder, 'd'), '/srv/groups']);
  });

  it('knows where what is spoken is written down, and wants both the server and the model', async () => {
    const { config } = await load('transcription: { base_url: "http://x/v1", model: whisper }');
    expect(config.transcription).toEqual({ baseUrl: 'http://x/v1', apiKey: null, model: 'whisper' });
    expect(await faultsOf('transcription: { model: whisper }')).toEqual([
      expect.stringContaining('transcription.base_url: expected the address'),
    ]);
    expect(await faultsOf('transcription: { base_url: "http://x/v1" }')).toEqual([
      expect.stringContaining('transcription.model: expected the name'),
    ]);
  });

  it('knows who speaks, how and when, and wants the server, the model and the voice', async () => {
    const { config } = await load(
      'speech: { base_url: "http://x/v1", model: tts, voice: alloy, api_key: k, when_spoken_to: true }',
    );
    expect(config.speech).toEqual({
      server: { baseUrl: 'http://x/v1', apiKey: 'k', model: 'tts' },
      options: { voice: 'alloy', timeoutSeconds: 20, whenSpokenTo: true, maxCharacters: 1500 },
    });
    expect(secretsOf(config)).toContain('k');
    expect(await faultsOf('speech: { model: tts, voice: alloy }')).toEqual([
      expect.stringContaining('speech.base_url: expected the address'),
    ]);
    expect(await faultsOf('speech: { base_url: "http://x/v1" }')).toEqual([
      expect.stringContaining('speech.model: expected the name'),
      expect.stringContaining('speech.voice: expected the name'),
    ]);
    expect(await faultsOf('speech: { max_characters: 5000, timeout_seconds: 0 }')).toHaveLength(2);
  });

  it('knows where personas may react', async () => {
    expect((await load('tools: { reactions: everywhere }')).config.tools.reactions).toBe('everywhere');
    expect(await faultsOf('tools: { reactions: always }')).toEqual([
      expect.stringContaining('tools.reactions: expected one of off, groups, everywhere'),
    ]);
  });

  it('lets nobody into WhatsApp unless its own rules say so', async () => {
    const { config } = await load(`access: { direct: open, groups: open, chats: [whatsapp_1@g.us] }
channels: { whatsapp: { enabled: true } }`);
    expect(config.channels.whatsapp?.access).toMatchObject({
      ...{ direct: 'closed', groups: 'listed', chats: ['whatsapp_1@g.us'] },
    });
    const opened = await load('channels: { whatsapp: { enabled: true, access: { direct: pairing } } }');
    expect(opened.config.channels.whatsapp?.access.direct).toBe('pairing');
    const { config: off } = await load('channels: { whatsapp: { enabled: false } }');
    expect(off.channels.whatsapp).toBeNull();
  });

  it('lets no platform fetch the links in a reply unless its section says so', async () => {
    const { config } = await load(`channels:
  telegram: { token: "${BOT}" }
  discord: { token: "${BOT}", link_previews: true }
  whatsapp: { enabled: true }`);
    const { telegram, discord, whatsapp } = config.channels;
    expect([telegram, discord, whatsapp].map((each) => each?.linkPreviews)).toEqual([false, true, false]);
  });

  it('shows replies growing as each platform can, and still knows what true and false meant', async () => {
    const { config } = await load(`channels:
  telegram: { token: "${BOT}", streaming: draft }
  discord: { token: "${BOT}", streaming: false }
  whatsapp: { enabled: true }
  terminal: { streaming: true }`);
    const { telegram, discord, whatsapp, terminal } = config.channels;
    const ways = [telegram, discord, whatsapp, terminal].map((each) => each?.streaming);
    expect(ways).toEqual(['draft', 'off', 'edit', 'edit']);
    await expect(load(`channels: { discord: { token: "${BOT}", streaming: draft } }`)).rejects.toThrow(
      'expected one of edit, off',
    );
    const { config: usual } = await load(`channels: { telegram: { token: "${BOT}" } }`);
    expect(usual.channels.telegram?.streaming).toBe('edit');
  });

  it('takes an empty file, and sections without a line, as defaults', async () => {
    for (const yaml of ['', '# nothing\n', '---\n', 'model:\naccess:\n  owners:\nchannels:\n  telegram:\n']) {
      const { config, warnings } = await load(yaml);
      expect([config.channels.telegram, config.model.server, warnings]).toEqual([null, null, []]);
    }
  });

  it('knows the model server, its fallbacks and the channels with their own access', async () => {
    const { config, warnings } = await load(`
model: { base_url: "http://127.0.0.1:9/v1", name: m, fallbacks: [{ base_url: "https://b/v1", api_key: k2, name: n }] }
channels:
  telegram:
    token: "${BOT}"
    api_root: http://127.0.0.1:8081
    persona_tokens: { luna_moon: "1:abc" }
    access: { direct: open, owners: [telegram_1] }
access: { groups: closed, owners: [telegram_2], require_mention: false, control_chats: [telegram_-100123] }
`);
    expect(warnings).toEqual([]);
    expect(config.model.server).toEqual({ baseUrl: 'http://127.0.0.1:9/v1', apiKey: null, name: 'm' });
    expect(config.model.fallbacks).toEqual([{ baseUrl: 'https://b/v1', apiKey: 'k2', name: 'n' }]);
    expect(config.channels.telegram).toMatchObject({
      token: BOT,
      apiRoot: 'http://127.0.0.1:8081',
      mode: 'polling',
      personaTokens: { luna_moon: '1:abc' },
      messagesPerSecond: 30,
      perChatBurst: 20,
      access: {
        direct: 'open',
        groups: 'closed',
        chats: [],
        owners: ['telegram_1'],
        controlChats: ['telegram_-100123'],
        requireMention: false,
      },
    });
    expect(config.channels.terminal.access).toMatchObject({
      direct: 'open',
      owners: ['telegram_2', 'terminal_local'],
    });
    expect(config.channels.board.access).toMatchObject({
      direct: 'open',
      owners: ['telegram_2', 'board_owner'],
    });
  });

  it('knows what requests to each model server hold beside the conversation, and what may be chosen', async () => {
    const { config, warnings } = await load(`
model:
  base_url: http://m/v1
  name: m
  temperature: "0.8"
  extra: { reasoning_effort: low, provider: { order: [a], allow_fallbacks: false }, camel_case: { not_this: 1 } }
  headers: { X-Title: coterie, Authorization: "Bearer abc" }
  choices: [small, { name: large, context_tokens: 400000, input_price: 1.25, output_price: 10 }]
  fallbacks: [{ base_url: http://f/v1, name: n, context_tokens: 4096, temperature: 0, extra: { a_b: 1 }, headers: { X-A: b } }]
`);
    expect(warnings).toEqual([]);
    expect(config.model.server).toEqual({
      baseUrl: 'http://m/v1',
      apiKey: null,
      name: 'm',
      temperature: 0.8,
      extra: {
        reasoning_effort: 'low',
        provider: { order: ['a'], allow_fallbacks: false },
        camel_case: { not_this: 1 },
      },
      headers: { 'X-Title': 'coterie', Authorization: 'Bearer abc' },
    });
    expect(config.model.fallbacks).toEqual([
      {
        ...{ baseUrl: 'http://f/v1', apiKey: null, name: 'n', contextTokens: 4096, temperature: 0 },
        ...{ extra: { a_b: 1 }, headers: { 'X-A': 'b' } },
      },
    ]);
    expect(config.model.choices).toEqual([
      { name: 'small' },
      { name: 'large', contextTokens: 400_000, inputPrice: 1.25, outputPrice: 10 },
    ]);
    // What lets nobody in is no secret: its words may stand anywhere.
    expect(secretsOf(config)).toEqual(['Bearer abc', 'abc']);
    const { config: keyed } = await load(`
model:
  { base_url: "http://m/v1", name: m, extra: { data_sources: [{ authentication: { key: "key-of-the-source" } }], tokenizer: auto } }
`);
    expect(secretsOf(keyed)).toEqual(['key-of-the-source']);
  });

  it.each([
    ['{ compact_after_messages: 20 }', 20, 8],
    ['{ compact_after_messages: 2 }', 2, 0],
    ['{ compact_after_messages: 1000 }', 1000, 80],
    ['{ keep_recent_messages: 300 }', 750, 300],
    ['{ keep_recent_messages: 79 }', 200, 79],
    ['{ keep_recent_messages: 30, compact_after_messages: 40 }', 40, 30],
  ])('has a window of which one default gives way to what is written: %s', async (yaml, most, keep) => {
    const { config } = await load(`conversation: ${yaml}`);
    expect(config.conversation).toMatchObject({ compactAfterMessages: most, keepRecentMessages: keep });
  });

  it('takes a small context window without a word of how long an answer may be', async () => {
    const { config } = await load('model: { base_url: "http://m/v1", name: m, context_tokens: 4000 }');
    expect(config.model).toMatchObject({ contextTokens: 4000, maxOutputTokens: 4096 });
    const written =
      'model: { base_url: "http://m/v1", name: m, context_tokens: 4000, max_output_tokens: 4000 }';
    expect(await faultsOf(written)).toEqual([
      'line 1: model.max_output_tokens: expected fewer tokens than model.context_tokens',
    ]);
  });

  it('logs for people where people read', async () => {
    const loaded = await loadConfig({ environment: {}, workingDirectory: folder, terminal: true });
    expect(loaded.config.log.format).toBe('pretty');
    await writeFile(join(folder, 'config.yaml'), 'log: { format: json, level: debug }');
    const set = await loadConfig({ environment: {}, workingDirectory: folder, terminal: true });
    expect(set.config.log).toEqual({ format: 'json', level: 'debug' });
  });

  it('names every secret, so that none is logged', async () => {
    const { config } = await load(`
model:
  { base_url: "https://u:p%40ss@h/v1", api_key: key-1, name: m, fallbacks: [{ base_url: "http://f", api_key: key-2, name: n }] }
channels: { telegram: { token: "${BOT}", webhook_secret: hook, persona_tokens: { luna: "2:bot" } } }
board: { token: board-token }
`);
    expect(secretsOf(config).sort()).toEqual(
      [BOT, '2:bot', 'board-token', 'hook', 'key-1', 'key-2', 'p%40ss', 'p@ss'].sort(),
    );
    const bare = await loadConfig({ environment: {}, workingDirectory: resolve(folder, 'nowhere') });
    expect(secretsOf(bare.config)).toEqual([]);
  });
});

describe('values from the environment', () => {
  it('are put in everywhere, also as numbers, and can be escaped', async () => {
    const { config } = await load(
      `data_dir: "\${HOME_DIR}/x-\${NAME}"\nboard: { port: "\${PORT}", token: "$\${literal}" }\n`,
      { HOME_DIR: '/srv', NAME: 'n', PORT: '9000' },
    );
    expect(config.dataDir).toBe('/srv/x-n');
    expect(config.board).toMatchObject({ port: 9000, token: `\${literal}` });
  });

  it('of a proxy are secrets where they are the only word of its login', async () => {
    const { config } = await load('network: { proxy: "http://key%21-4711@proxy.lan:3128" }\n', {});
    expect(secretsOf(config)).toEqual(expect.arrayContaining(['key!-4711', 'key%21-4711']));
    const other = await load('network: { proxy: "http://anna:hush@proxy.lan:3128" }\n', {});
    expect(secretsOf(other.config)).not.toContain('anna');
  });

  it('are hidden in logs, addresses also in the form in which they are shown', async () => {
    const { config } = await load(`model: { base_url: "\${URL}", name: "\${NAME}" }\n`, {
      ...{ URL: 'HTTP://Models.Example:80/v1/', NAME: 'a-model' },
    });
    expect(hiddenInLogs(config)).toEqual(expect.arrayContaining(['http://models.example/v1', 'a-model']));
  });

  it('are faults when they are not set or not named, each with its line, beside all others', async () => {
    const faults = await faultsOf(`log:
  level: loud
model:
  base_url: http://m
  name: m
  api_key: \${NO_KEY}
  fallbacks:
    - base_url: \${NO_URL}
      name: x
board:
  port: \${NO_PORT}
  token: "\${ spaced }"
`);
    expect(faults).toEqual([
      'line 6: model.api_key: expected the environment variable NO_KEY, but it is not set',
      'line 8: model.fallbacks.0.base_url: expected the environment variable NO_URL, but it is not set',
      'line 11: board.port: expected the environment variable NO_PORT, but it is not set',
      `line 12: board.token: expected the name of an environment variable between \${ and }; a literal \${ is written $\${`,
      'line 2: log.level: expected one of debug, info, warn, error, silent',
    ]);
  });
});

describe('a variable that is set to nothing', () => {
  const NOTHING = { NONE: '', NEITHER: '' };

  it('leaves its key out, as docker compose hands on what nobody set', async () => {
    const { config, warnings } = await load(
      `timezone: \${NONE}
model: { base_url: "http://m/v1", name: m, api_key: "\${NONE}", max_tool_rounds: "\${NONE}\${NEITHER}", headers: { X-A: "\${NONE}" } }
tools: { allow: "\${NONE}" }
channels: { discord: "\${NONE}", telegram: { token: "1:a", webhook_secret: "\${NONE}", access: { direct: "\${NONE}" } } }
mcp: { servers: { s: { command: x, args: [-a, "\${NONE}", "x\${NONE}"] } } }
access: { direct: closed, require_mention: "\${NONE}" }
`,
      NOTHING,
    );
    expect(warnings).toEqual([]);
    expect(config.timezone).toBeNull();
    expect(config.model).toMatchObject({ server: { apiKey: null, headers: {} }, maxToolRounds: 25 });
    expect(config.tools.allow).toContain('memory');
    expect(config.channels).toMatchObject({
      discord: null,
      telegram: { webhookSecret: null, access: { direct: 'closed', requireMention: true } },
    });
    // An item of a list has its place.
    expect(config.mcp.servers).toMatchObject([{ args: ['-a', '', 'x'] }]);
  });

  it('is a fault where there must be a value, and where the text is written empty', async () => {
    expect(
      await faultsOf(
        `channels: { telegram: { token: "\${NONE}" } }
model: { name: m, base_url: "\${NONE}", api_key: "" }
access: { owners: ["\${NONE}"] }
board: { host: 0.0.0.0, token: "\${NONE}" }`,
        NOTHING,
      ),
    ).toEqual([
      'line 2: model.api_key: expected a key',
      'line 2: model.base_url: expected the address of the server that has model.name, like https://api.openai.com/v1',
      'line 4: board.token: expected a token, because board.host can be reached from other machines',
      'line 3: access.owners.0: expected ids like telegram_-1001234567890',
    ]);
  });
});

describe('values from files', () => {
  const KEY = 'sk-from-a-file-0123456789';

  it('are put in, relative to the configuration, without the line end, and count as secrets wherever they stand', async () => {
    await mkdir(join(folder, 'secrets'));
    await writeFile(join(folder, 'secrets/key'), `\ufeff${KEY}\r\n`);
    await writeFile(join(folder, 'secrets/name'), `a: \${b} # c\n`);
    await writeFile(join(folder, 'plain'), 'Europe/Berlin');
    const { config } = await load(`
timezone: "\${file:${join(folder, 'plain')}}"
model: { base_url: "http://m/\${file:secrets/key}/v1", name: "\${file:secrets/name}", api_key: "x-\${file: secrets/key }" }
board: { token: "$\${file:secrets/key}" }
`);
    expect(config.timezone).toBe('Europe/Berlin');
    expect(config.model.server).toMatchObject({
      baseUrl: `http://m/${KEY}/v1`,
      name: `a: \${b} # c`,
      apiKey: `x-${KEY}`,
    });
    expect(config.board.token).toBe(`\${file:secrets/key}`);
    expect(secretsOf(config)).toEqual(expect.arrayContaining([KEY, `a: \${b} # c`, 'Europe/Berlin']));
    const clean = createRedactor(secretsOf(config));
    expect(clean(`asked http://m/${KEY}/v1`)).toBe('asked http://m/[redacted]/v1');
  });

  it('are faults where there is no such file, a folder, a device, too much, nothing or no text in it', async () => {
    await mkdir(join(folder, 'folder'));
    await writeFile(join(folder, 'large'), KEY.repeat(10_000));
    await writeFile(join(folder, 'empty'), '\n');
    await writeFile(join(folder, 'binary'), Buffer.from([0xff, 0xfe, 0x41]));
    const names = ['nowhere', 'folder', '/dev/null', 'large', 'empty', 'binary', 'large/x', ''];
    const faults = await faultsOf(
      `model:\n  extra:\n${names.map((name, n) => `    k${n}: "\${file:${name}}"`).join('\n')}\n`,
    );
    const at = (name: string) => join(folder, name);
    expect(faults).toEqual([
      `line 3: model.extra.k0: expected a file at ${at('nowhere')} that can be read (it is not there)`,
      `line 4: model.extra.k1: expected a file at ${at('folder')}, but it is none`,
      `line 5: model.extra.k2: expected a file at /dev/null, but it is none`,
      `line 6: model.extra.k3: expected at most 64 kB in the file ${at('large')}`,
      `line 7: model.extra.k4: expected a value in the file ${at('empty')}, but it is empty`,
      `line 8: model.extra.k5: expected text in the file ${at('binary')}`,
      `line 9: model.extra.k6: expected a file at ${at('large/x')} that can be read (it is not there)`,
      'line 10: model.extra.k7: expected a path behind file:',
    ]);
  });

  it('are not quoted where they are wrong', async () => {
    await writeFile(join(folder, 'key'), KEY);
    const [fault] = await faultsOf(`board: { port: "\${file:key}" }`);
    expect(fault).toMatch(/^line 1: board.port: expected a whole number/);
    expect(fault).not.toContain(KEY);
  });
});

describe('what is wrong with it', () => {
  it('is all told at once, with file, line, key and what was expected, and without the values', async () => {
    const faults = await faultsOf(`timezone: Mars/Olympus
shutdown_seconds: soon
log: { level: 3 }
model:
  name: m
  context_tokens: 2000
  max_output_tokens: 4000
  timeout_seconds: 0
  fallbacks: [{ name: x }]
conversation:
  { debounce_ms: -1,
  keep_recent_messages: 500, compact_after_messages: 200 }
memory: nothing
channels:
  telegram: { mode: secret-in-the-wrong-place }
board:
  host: 0.0.0.0
  port: 70000
access:
  direct: everybody
  owners: [12345]
  chats: telegram_1
  requir_mention: true
`);
    expect(faults).toEqual([
      'line 23: access.requir_mention: unknown key; did you mean access.require_mention?',
      'line 1: timezone: expected an IANA time zone, like Europe/Berlin',
      'line 2: shutdown_seconds: expected a number of seconds',
      'line 3: log.level: expected one of debug, info, warn, error, silent',
      'line 8: model.timeout_seconds: expected a number of seconds above 0',
      'line 9: model.fallbacks.0.base_url: expected an address that begins with http:// or https://, but it is missing',
      'line 5: model.base_url: expected the address of the server that has model.name, like https://api.openai.com/v1',
      'line 7: model.max_output_tokens: expected fewer tokens than model.context_tokens',
      'line 11: conversation.debounce_ms: expected a whole number of 0 or more',
      'line 12: conversation.keep_recent_messages: expected fewer messages than conversation.compact_after_messages',
      'line 13: memory: expected keys and values',
      'line 15: channels.telegram.mode: expected one of polling, webhook',
      'line 18: board.port: expected a whole number from 0 to 65535',
      'line 17: board.token: expected a token, because board.host can be reached from other machines',
      'line 20: access.direct: expected one of pairing, open, closed',
      'line 22: access.chats: expected a list of ids',
      'line 21: access.owners.0: expected ids like telegram_-1001234567890',
    ]);
  });

  it('is said of what a request may hold, and of what may be chosen', async () => {
    const faults = await faultsOf(`model:
  temperature: 2.5
  extra: { messages: [], stream: false, top_p: 1 }
  headers: { "X A": b, X-B: "two\\nlines", Host: elsewhere }
  choices: [small, 7, { context_tokens: 400000 }, { name: a, input_price: -1 }]
  fallbacks:
    - { base_url: http://f, name: n, temperature: hot, context_tokens: 5, extra: [], headers: { Content-Length: "1" } }
`);
    const fields =
      'expected fields of the request and their values, and none that the gateway sets itself (model, messages, input, tools, stream)';
    const headers = 'expected names of headers with a value of one line each';
    expect(faults.map((fault) => fault.replace(/^line \d+: /, '')).sort()).toEqual(
      [
        'model.temperature: expected a number from 0 to 2',
        `model.extra.messages: ${fields}`,
        `model.extra.stream: ${fields}`,
        `model.headers.X A: ${headers}`,
        `model.headers.X-B: ${headers}`,
        `model.headers.Host: ${headers}`,
        'model.choices.1: expected the name of a model, or name, context_tokens, input_price and output_price',
        'model.choices.2.name: expected the name of a model, but it is missing',
        'model.choices.3.input_price: expected a price per million tokens, 0 or more',
        'model.fallbacks.0.temperature: expected a number from 0 to 2',
        'model.fallbacks.0.context_tokens: expected a whole number of 1000 or more',
        'model.fallbacks.0.extra: expected fields of the request and their values',
        `model.fallbacks.0.headers.Content-Length: ${headers}`,
      ].sort(),
    );
    expect(await faultsOf('model: { headers: { X-C: 3 } }')).toEqual([
      `line 1: model.headers.X-C: ${headers}`,
    ]);
    const { warnings } = await load('model: { choices: [{ name: a, contxt_tokens: 5 }] }');
    expect(warnings.map((warning) => warning.slice(warning.indexOf('line ')))).toEqual([
      'line 1: model.choices.0.contxt_tokens: unknown key; did you mean model.choices.0.context_tokens?',
    ]);
  });

  it('names the file in every line', async () => {
    await writeFile(join(folder, 'config.yaml'), 'board: { port: x }\nlog: 3');
    const refused = loadConfig({ environment: {}, workingDirectory: folder });
    const lines = await refused.catch((error: Error) => error.message.split('\n').slice(1));
    expect(lines).toHaveLength(2);
    for (const line of lines as string[]) expect(line).toContain(`${join(folder, 'config.yaml')}, line `);
  });

  const TAG =
    'a tag (!) is not known, or does not fit its value; text that begins with such a sign must stand in quotes';
  const NO_ANCHOR =
    'an alias (*) stands for no anchor (&) above it; text that begins with such a sign must stand in quotes';
  const MISSING =
    'something is missing: a closing quote, a bracket, a comma, a space, or the colon behind a key';
  const NOT_HERE =
    'something stands where it cannot; text with brackets, commas or quotes in it must stand in quotes';
  const NOT_ONE_LINE =
    'a key is not on one line with its colon; a value of several lines must stand in quotes';

  it.each([
    ['board: { token: *S3CRET }', [`line 1: board.token: ${NO_ANCHOR}`]],
    ['model:\n  api_key: !S3CRET\n', [`line 2: model.api_key: ${TAG}`]],
    [
      'model:\n  fallbacks:\n    - base_url: http://x\n      api_key: !S3CRET x',
      [`line 4: model.fallbacks.0.api_key: ${TAG}`],
    ],
    ['board:\n  token: !<S3CRET', [`line 2: board.token: ${TAG}`]],
    ['board:\n  token: "S3CRET\naccess:\n  direct: open\n', [`line 2: board.token: ${MISSING}`]],
    [
      'board:\n  token: "\\S3CRET"',
      [expect.stringMatching(/^line 2: board\.token: a backslash in double quotes/)],
    ],
    [
      'board:\n  token: @S3CRET',
      [expect.stringMatching(/^line 2: board\.token: a value cannot begin with @/)],
    ],
    [
      'board:\n  token: S3CRET: x',
      [expect.stringMatching(/^line 2: board\.token: a second key stands on one line/)],
    ],
    [
      'board:\n  token: a\n  token: S3CRET',
      ['line 3: board.token: the key stands there twice; take one of them away'],
    ],
    ['board:\n  token: a\n  S3CRET\n  port: 3', [`line 3: board: ${NOT_ONE_LINE}`]],
    ['board:\n  token: "a"S3CRET', [`line 2: board.token: ${NOT_HERE}`]],
    [`board: { port: \${S3CRET} }`, [`line 1: board.port: ${NOT_HERE}`]],
    ['board:\n\ttoken: S3CRET', ['line 2: a tab stands in the indentation; expected spaces']],
    ['model:\n  name: x\n S3CRET: x', [expect.stringMatching(/^line 3: the indentation does not fit/)]],
    ['%S3CRET x\n---\n', [expect.stringMatching(/^line 1: a line that begins with % is no directive/)]],
    [
      'board:\n  token: &S3CRET &S3CRET x',
      [expect.stringMatching(/^line 2: board\.token: a value has two anchors/)],
    ],
    [
      'board:\n  token: !S3CRET *S3CRET',
      [expect.stringMatching(/^line 2: board\.token: an alias \(\*\) can have no tag/)],
    ],
    [
      'board:\n  token: *S3CRET:\n',
      [expect.stringMatching(/^line 2: board\.token: an anchor \(&\) or an alias \(\*\) has no name/)],
    ],
    ['board:\n  token: a\n---\ntoken: S3CRET', [expect.stringMatching(/^line 3: a second document begins/)]],
    [
      '? { token: S3CRET }\n: x\n',
      ['line 1: a key must be a text, and no alias (*), list or keys of its own'],
    ],
    [
      'board: { <<: S3CRET }',
      [expect.stringMatching(/^line 1: board: what is merged with << must be keys and values/)],
    ],
    [
      'S3CRET: &S3CRET\n  x: *S3CRET',
      ['line 2: an alias (*) stands within what it stands for; write the value out'],
    ],
    [
      `a: &a [${'S3CRET,'.repeat(10)}]\nb: &b [${'*a,'.repeat(10)}]\nc: &c [${'*b,'.repeat(10)}]\nd: [${'*c,'.repeat(10)}]`,
      [
        expect.stringMatching(
          /: its anchors \(&\) and aliases \(\*\) cannot be resolved; write the values out$/,
        ),
      ],
    ],
    ['- S3CRET\n- b\n', ['line 1: expected keys and values, like `timezone: Europe/Berlin`']],
    [
      'board: S3CRET\nmodel: S3CRET',
      ['line 1: board: expected keys and values', 'line 2: model: expected keys and values'],
    ],
  ])('is told where it is no YAML, with line and key, without quoting it: %j', async (yaml, told) => {
    const faults = await faultsOf(yaml);
    expect(faults.join()).not.toContain('S3CRET');
    expect(faults.sort()).toEqual(told);
  });

  it('may have keys that are numbers, and values that stand there by an alias', async () => {
    const { config, warnings } = await load(
      'tools: { chats: { 7: { allow: &some [memory] }, telegram_1: { allow: *some } } }\nboard: { <<: { port: 3 } }',
    );
    expect(config.tools.chats).toEqual({ 7: { allow: ['memory'] }, telegram_1: { allow: ['memory'] } });
    expect([config.board.port, warnings]).toEqual([3, []]);
  });

  it('is a token that is missing, for other machines only', async () => {
    for (const host of ['localhost', '127.0.0.2', '"::1"', '"[::1]"']) {
      expect((await load(`board: { host: ${host} }`)).warnings).toEqual([]);
    }
    for (const host of ['0.0.0.0', '"::"', 'example.org', '127.0.0.1.example.org']) {
      expect(await faultsOf(`board: { host: ${host} }`)).toHaveLength(1);
      await load(`board: { host: ${host}, token: short }`);
    }
  });

  it('is a proxy that is no address, or an origin that has a path', async () => {
    const good =
      'trusted_proxies: [127.0.0.1, 10.0.0.0/8, "::1", "fd00::/8", 0.0.0.0/0], origins: [https://home.example, "http://pi.local:8420/"]';
    const { config } = await load(`board: { ${good} }`);
    expect(config.board.trustedProxies).toHaveLength(5);
    for (const proxy of [
      'proxy.lan',
      '10.0.0.0/33',
      '10.0.0.0/8/8',
      '10.0.0.0/x',
      '"fd00::/129"',
      '""',
      'true',
    ]) {
      const [fault] = await faultsOf(`board: { trusted_proxies: [${proxy}] }`);
      expect(fault, proxy).toMatch(
        /^line 1: board\.trusted_proxies\.0: expected a list of addresses and networks/,
      );
    }
    for (const origin of [
      'home.example',
      'https://home.example/coterie/',
      'https://home.example/?a',
      'ftp://home.example',
      'https://me:x@home.example',
      '"*"',
    ]) {
      const [fault] = await faultsOf(`board: { origins: [${origin}] }`);
      expect(fault, origin).toMatch(/^line 1: board\.origins\.0: expected a list of origins/);
    }
  });

  it.each(['+01:00', 'Berlin', 'GMT+1'])('is a zone that is no IANA zone: %s', async (zone) => {
    expect(await faultsOf(`timezone: "${zone}"`)).toHaveLength(1);
  });
});

describe('a gateway among several', () => {
  it('has a name, a lease and roles', async () => {
    const { config } = await load('node: { name: _Attic-2.lan, lease_seconds: 2.5, roles: [jobs] }');
    expect(config.node).toEqual({ name: '_Attic-2.lan', leaseMs: 2500, roles: ['jobs'] });
  });

  // `..` would put its files among those of all gateways.
  const name = 'expected at most 64 letters, digits, dots, hyphens and underscores, not dots alone';
  const lease = 'expected a number of seconds from 2 to 300';
  it.each([
    ['name: ..', name],
    ['name: .', name],
    ['name: küche', name],
    ['name: a/b', name],
    [`name: ${'a'.repeat(65)}`, name],
    ['lease_seconds: 1.9', lease],
    ['lease_seconds: 301', lease],
    ['roles: [cook]', 'expected one of channels, turns, jobs, board'],
    ['roles: [channels]', /^expected turns beside channels/],
  ])('is refused with %s', async (node, words) => {
    const [fault, ...others] = await faultsOf(`node: { ${node} }`);
    expect(others).toEqual([]);
    expect(fault?.replace(/^line 1: node\.[\w.]+: /, '')).toEqual(
      typeof words === 'string' ? words : expect.stringMatching(words),
    );
  });
});

describe('the store', () => {
  it.each([
    'postgres://coterie:hush@localhost:5432/coterie?sslmode=verify-full',
    'postgresql://coterie@[::1]/coterie',
    'postgres://coterie:h%40sh%2F@db.lan',
    'postgres://coterie@localhost/coterie?host=/run/postgresql',
    'postgres://%2Frun%2Fpostgresql/coterie',
  ])('may be at %s', async (url) => {
    const { config } = await load(`store: { url: "${url}", connections: 4, wait_seconds: 2.5 }`);
    expect(config.store).toEqual({ url, connections: 4, waitMs: 2500 });
  });

  const what = 'expected an address like postgres://user:password@host:5432/database';
  const sqlite = `${what}; without one, the store is an SQLite file in data_dir`;
  const encoded = `${what}, in which the password is percent-encoded`;
  it.each([
    ['file:///srv/hush.db', sqlite],
    ['/srv/hush.db', sqlite],
    ['./data/hush.db', sqlite],
    ['sqlite:hush.db', sqlite],
    ['mysql://me:hush@db.lan/x', sqlite],
    ['postgres:', encoded],
    ['postgres://me:12/hush@db.lan/x', encoded],
    ['postgres://me:12#hush@db.lan/x', encoded],
    ['postgres://me:12?hush@db.lan/x', encoded],
    ['postgres://me:hu@sh@db.lan/x', encoded],
    ['postgres://me:hush@db.lan:port/x', encoded],
    ['postgres://me:hush@db.lan/x?sslmode=full', /^expected sslmode to be one of disable, .*, no-verify$/],
  ])('is not at %s, which no message quotes', async (url, words) => {
    const [fault, ...others] = await faultsOf(`store: { url: "${url}" }`);
    expect(others).toEqual([]);
    expect(fault?.replace('line 1: store.url: ', '')).toEqual(
      typeof words === 'string' ? words : expect.stringMatching(words),
    );
    expect(fault).not.toContain('hush');
  });

  it('takes its password from the environment, and keeps it out of the log', async () => {
    const yaml = `store: { url: "postgres://me:\${PASSWORD}@db.lan/x", wait_seconds: "\${WAIT}" }`;
    const { config } = await load(yaml, { PASSWORD: 'h%C3%BCsh%21', WAIT: '5' });
    expect(config.store).toMatchObject({ url: 'postgres://me:h%C3%BCsh%21@db.lan/x', waitMs: 5000 });
    expect(secretsOf(config)).toEqual(expect.arrayContaining(['h%C3%BCsh%21', 'hüsh!']));
    const clean = createRedactor(hiddenInLogs(config));
    for (const text of ['h%C3%BCsh%21', 'hüsh!']) expect(clean(`tried ${text}.`)).toBe('tried [redacted].');
    expect(secretsOf((await load('store: { url: "postgres://h/x?password=of-a-query" }')).config)).toContain(
      'of-a-query',
    );
  });

  it.each(['connections: 2', 'connections: some', 'wait_seconds: -1', 'wait_seconds: long'])(
    'has no %s',
    async (yaml) => {
      expect(await faultsOf(`store: { ${yaml} }`)).toHaveLength(1);
    },
  );
});

describe('embeddings', () => {
  it.each([
    ['http', 'base_url', 'expected the address of the embedding server, like http://gpu:8080/v1'],
    ['redis', 'redis_url', 'expected the address of Redis, like redis://gpu:6379'],
  ])('by %s demand %s and a model', async (backend, key, words) => {
    expect(await faultsOf(`embeddings: { backend: ${backend} }`)).toEqual([
      'line 1: embeddings.model: expected the name of the embedding model: vectors of different models are never compared',
      `line 1: embeddings.${key}: ${words}`,
    ]);
    const address = backend === 'http' ? 'http://gpu/v1' : 'redis://gpu:6379';
    const { config } = await load(`embeddings: { backend: ${backend}, model: m, ${key}: "${address}" }`);
    expect(config.embeddings).toMatchObject({ backend, model: 'm' });
  });

  it('keep their secrets out of the log', async () => {
    const { config } = await load(
      'embeddings: { api_key: k1, base_url: "http://u:p1@h/v1", redis_url: "redis://u:p2@h" }',
    );
    expect(secretsOf(config)).toEqual(expect.arrayContaining(['k1', 'p1', 'p2']));
  });
});

describe('unknown keys', () => {
  it('are warnings that name the nearest known key', async () => {
    const { config, warnings } = await load(`tmezone: UTC
debounce_ms: 3
conversation: { debounce-ms: 5, colour: blue }
channels: { telegramm: { token: x }, telegram: { token: "1:a", acess: { direct: open } } }
model: { fallbacks: [{ base_url: "http://b", name: n, apikey: k }] }
`);
    expect(config.conversation.debounceMs).toBe(400);
    expect(warnings.map((warning) => warning.slice(warning.indexOf('line ')))).toEqual([
      'line 1: tmezone: unknown key; did you mean timezone?',
      'line 2: debounce_ms: unknown key; did you mean conversation.debounce_ms?',
      'line 3: conversation.debounce-ms: unknown key; did you mean conversation.debounce_ms?',
      'line 3: conversation.colour: unknown key; the nearest known key is conversation.debounce_ms; known here: compact_after_messages, keep_recent_messages, overheard_messages, debounce_ms',
      'line 4: channels.telegramm: unknown key; did you mean channels.telegram?',
      'line 4: channels.telegram.acess: unknown key; did you mean channels.telegram.access?',
      'line 5: model.fallbacks.0.apikey: unknown key; did you mean model.fallbacks.0.api_key?',
    ]);
  });

  it('stop the start under access, also under that of a channel', async () => {
    expect(
      await faultsOf(`access: { direkt: closed }
channels: { telegram: { token: "1:a", access: { owner: [telegram_1] } } }`),
    ).toEqual([
      'line 1: access.direkt: unknown key; did you mean access.direct?',
      'line 2: channels.telegram.access.owner: unknown key; did you mean channels.telegram.access.owners?',
    ]);
  });

  it.each([
    ['embeddings: { url: x }', 'did you mean embeddings.base_url?'],
    ['owners: []', 'did you mean access.owners?'],
    ['require-mention: false', 'did you mean access.require_mention?'],
    ['token: x', 'did you mean board.token?'],
    ['telegram: { token: x }', 'did you mean channels.telegram?'],
    ['model: { model: x }', 'did you mean transcription.model?'],
    ['model: { modelName: x }', 'did you mean model.name?'],
    ['model: { apiKey: x }', 'did you mean model.api_key?'],
    ['conversation: { keep_messages: 5 }', 'did you mean conversation.keep_recent_messages?'],
    ['limits: { max_bytes: 5 }', 'did you mean media.max_bytes?'],
    ['persona_token: x', 'did you mean channels.telegram.persona_tokens?'],
    [
      'channels: { slack: { token: x } }',
      'the nearest known key is channels.discord; known here: telegram, discord, whatsapp, terminal',
    ],
    ['foo: 1', expect.stringMatching(/^the nearest known key is log; known here: data_dir, .*, access$/)],
  ])('%s: the nearest is a sibling first, then what is nested least', async (yaml, hint) => {
    const { warnings } = await load(yaml);
    expect(warnings.map((warning) => warning.replace(/^.*: unknown key; /, ''))).toEqual([hint]);
  });

  it('are unknown without a value, too', async () => {
    const { warnings } = await load(
      `foo:
model: { fallbacks: [{ base_url: "http://b", name: n, apikey: }], colour: "\${NONE}" }
channels: { slack: , telegram: { token: "1:a", tokn: } }
`,
      { NONE: '' },
    );
    const keys = warnings.map((warning) => /line \d+: \S+: unknown key/.exec(warning)?.[0]);
    expect(keys).toEqual([
      'line 1: foo: unknown key',
      'line 2: model.fallbacks.0.apikey: unknown key',
      'line 2: model.colour: unknown key',
      'line 3: channels.slack: unknown key',
      'line 3: channels.telegram.tokn: unknown key',
    ]);
    expect(
      await faultsOf(`access:
  ownrs:
  direct: open
channels:
  telegram:
    token: "1:a"
    access:
      drect:
`),
    ).toEqual([
      'line 2: access.ownrs: unknown key; did you mean access.owners?',
      'line 8: channels.telegram.access.drect: unknown key; did you mean channels.telegram.access.direct?',
    ]);
  });

  it('say that money cannot be counted without a price', async () => {
    const limits = 'limits: { money_per_day: 5 }\n';
    const { warnings } = await load(limits);
    expect(warnings.map((warning) => warning.slice(warning.indexOf('line ')))).toEqual([
      'line 1: limits.money_per_day: has no effect without model.input_price and model.output_price',
    ]);
    const choices = `${limits}model: { choices: [{ name: a, output_price: 5 }] }`;
    expect((await load(choices)).warnings).toEqual([]);
  });

  it('say that the offline model answers where only its server is set', async () => {
    const { warnings } = await load('model: { base_url: "http://x/v1" }');
    expect(warnings.join()).toContain('there is no model.name');
  });
});

describe('servers of tools', () => {
  const servers = async (yaml: string) => (await load(`mcp: { servers: { s: ${yaml} } }`)).config.mcp.servers;

  it('are processes, relative to the configuration file, or addresses, with their defaults', async () => {
    expect(await servers('{ command: node, args: [a.js] }')).toEqual([
      {
        ...{ name: 's', command: 'node', args: ['a.js'], env: {}, cwd: folder },
        ...{ tools: undefined, safe: [], timeoutMs: 60_000 },
      },
    ]);
    expect(await servers('{ command: ./bin/s, cwd: deep, timeout_seconds: 0.5 }')).toMatchObject([
      { command: join(folder, 'bin/s'), cwd: join(folder, 'deep'), timeoutMs: 500 },
    ]);
    expect(await servers('{ url: "https://x.example/mcp", tools: [a], safe: [a] }')).toEqual([
      {
        ...{ name: 's', url: 'https://x.example/mcp', headers: {}, oauth: undefined },
        ...{ tools: ['a'], safe: ['a'], timeoutMs: 60_000 },
      },
    ]);
  });

  const either = 'expected either command, with args, env and cwd, or url, with headers and oauth';
  it.each([
    ['{}', `mcp.servers.s: ${either}`],
    ['{ command: x, url: "https://x.example" }', `mcp.servers.s: ${either}`],
    ['{ url: "https://x.example", env: { A: b } }', `mcp.servers.s: ${either}`],
    ['{ command: x, headers: { A: b } }', `mcp.servers.s: ${either}`],
    ['{ command: x, env: { A: 7 } }', 'mcp.servers.s.env.A: expected a text'],
    [
      '{ url: "ftp://x.example" }',
      'mcp.servers.s.url: expected an address that begins with http:// or https://',
    ],
    ['{ command: x, safe: yes }', 'mcp.servers.s.safe: expected a list of names of tools'],
  ])('that are %s are refused', async (yaml, fault) => {
    expect(await faultsOf(`mcp: { servers: { s: ${yaml} } }`)).toEqual([`line 1: ${fault}`]);
  });

  it('with a key that nobody knows are used, with a warning', async () => {
    const { warnings } = await load('mcp: { servers: { s: { command: x, arg: [y] } } }');
    expect(warnings).toEqual([expect.stringMatching(/mcp\.servers\.s\.arg: unknown key.*args/)]);
  });

  it('have secrets that are known: of variables and headers by name, of a login, of an address', async () => {
    const { config } = await load(`
mcp:
  servers:
    a: { command: x, env: { API_KEY: of-a-variable, LANG: de_DE } }
    b: { url: "https://me:of-an-address@x.example/mcp?token=of-a-query", headers: { Authorization: Bearer of-a-header, X-Team: blue } }
    c:
      url: https://y.example
      oauth: { issuer: "https://z.example", client_id: coterie, client_secret: of-a-login }
`);
    const secrets = secretsOf(config);
    const known = [
      'of-a-variable',
      'of-an-address',
      'of-a-query',
      'Bearer of-a-header',
      'of-a-header',
      'of-a-login',
    ];
    expect(secrets).toEqual(expect.arrayContaining(known));
    for (const plain of ['de_DE', 'blue', 'coterie']) expect(secrets).not.toContain(plain);
    const above = ['mcp', 'servers', 'a'];
    expect(isSecretOption('API_KEY', [...above, 'env'])).toBe(true);
    expect(isSecretOption('client_secret', [...above, 'oauth'])).toBe(true);
    expect(isSecretOption('LANG', [...above, 'env'])).toBe(false);
  });
});

describe('config.example.yaml', () => {
  const example = resolve(import.meta.dirname, '../config.example.yaml');
  const uncommented = async () =>
    (await readFile(example, 'utf8'))
      .split('\n')
      .filter((line) => line.startsWith('#') && !/^# \S|^#$/.test(line))
      .map((line) => line.slice(1))
      .join('\n');

  it('is valid as it stands, and then is the defaults', async () => {
    const copied = await load(await readFile(example, 'utf8'));
    expect(copied.warnings).toEqual([]);
    await rm(join(folder, 'config.yaml'));
    const none = await loadConfig({ environment: {}, workingDirectory: folder });
    expect(copied.config).toEqual(none.config);
  });

  /** With every line taken in, and what its variables hold. */
  const wholly = async (): Promise<[yaml: string, environment: Record<string, string>]> => {
    const yaml = await uncommented();
    const names = [...yaml.matchAll(/\$\{(\w+)\}/g)].map((found) => found[1] ?? '');
    const given = names.map((name, at) => [name, name.endsWith('_TOKEN') ? `${at + 1}:secret` : 'secret']);
    return [yaml, Object.fromEntries(given)];
  };

  it('is valid with every line taken in, and names every key there is', async () => {
    const [yaml, environment] = await wholly();
    const { warnings } = await load(yaml, environment);
    expect(warnings).toEqual([]);
    const given = parse(yaml.replaceAll('${', '$').replaceAll('}', ''));
    const left = keysOf(configKeys).filter((path) => !has(given, path.split('.')));
    expect(left.filter((path) => !/^channels\.\w+\.access\./.test(path))).toEqual([]);
  });

  it('has no truth, number or word that cannot come from the environment', async () => {
    const { keys } = await load(...(await wholly()));
    const environment: Record<string, string> = {};
    const moved = (value: unknown): unknown => {
      if (Array.isArray(value)) return value.map(moved);
      if (typeof value === 'object' && value !== null) {
        return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, moved(inner)]));
      }
      if (value === null || value === undefined) return value;
      const name = `V${Object.keys(environment).length}`;
      environment[name] = String(value);
      return `\${${name}}`;
    };
    const yaml = stringify(moved(keys));
    expect(Object.keys(environment).length).toBeGreaterThan(150);
    expect((await load(yaml, environment)).keys).toEqual(keys);
  });

  it('shows the defaults as they are', async () => {
    const yaml = (await uncommented()).split('\n').filter((line) => !line.includes('# example'));
    const bare = yaml.filter(
      (line) =>
        !/^ {4,}|^ +(telegram|discord|whatsapp|terminal|fallbacks|chats|channels|shell|web|servers):|^(channels|mcp):/.test(
          line,
        ),
    );
    const shown = await load(bare.join('\n'));
    await rm(join(folder, 'config.yaml'));
    const none = await loadConfig({ environment: {}, workingDirectory: folder });
    expect(shown.config).toEqual(none.config);
  });
});

/** Every key of a schema, as a path. */
function keysOf(schema: unknown, path = ''): string[] {
  let inner = schema;
  while (inner instanceof z.ZodType && 'unwrap' in inner && typeof inner.unwrap === 'function')
    inner = inner.unwrap();
  if (!(inner instanceof z.ZodObject)) return [path];
  return Object.entries(inner.shape).flatMap(([key, value]) =>
    keysOf(value, path === '' ? key : `${path}.${key}`),
  );
}

function has(data: unknown, [first, ...rest]: string[]): boolean {
  if (first === undefined) return true;
  if (Array.isArray(data)) return has(data[0], [first, ...rest]);
  return (
    typeof data === 'object' &&
    data !== null &&
    first in data &&
    has((data as Record<string, unknown>)[first], rest)
  );
}

describe('retention', () => {
  it('is days or never, and bytes', async () => {
    const { config } = await load('retention: { days: never, media_bytes: 5 }');
    expect(config.retention).toEqual({
      ...{ days: 'never', mediaBytes: 5, mediaBytesPerChat: 500_000_000 },
      ...{ auditBytes: 500_000_000, replayBytes: 200_000_000 },
    });
    const given = await load(`retention: { days: "\${DAYS}" }`, { DAYS: '7' });
    expect(given.config.retention.days).toBe(7);
  });

  it.each(['0', '-1', '1.5', 'always', '[]'])('of %s is refused', async (value) => {
    expect(await faultsOf(`retention: { days: ${value}, media_bytes: ${value} }`)).toEqual([
      'line 1: retention.days: expected a whole number of 1 or more, or never',
      'line 1: retention.media_bytes: expected a whole number of 1 or more',
    ]);
  });
});

describe('a channel whose section lacks only its token', () => {
  it('is not set up yet: a warning, with its other keys kept for later', async () => {
    const { config, warnings, keys } = await load(
      'channels:\n  telegram: { api_root: "http://nas:8081/" }\n  discord:\n    token: # later\n',
    );
    expect(config.channels.telegram).toBeNull();
    expect(config.unready.telegram?.apiRoot).toBe('http://nas:8081');
    expect(config.unready.discord?.apiRoot).toBe('https://discord.com/api');
    expect(keys.channels.telegram).toBeUndefined();
    const said = warnings.map((warning) => warning.replace(`${join(folder, 'config.yaml')}, `, ''));
    expect(said).toEqual([
      expect.stringMatching(/^line 2: channels\.telegram: has no token, so this channel is not set up yet/),
      expect.stringMatching(/^line 4: channels\.discord: has no token, so this channel is not set up yet/),
    ]);
  });

  it('has its other faults told, and is none with an empty token or a wrong one', async () => {
    expect(await faultsOf('channels: { telegram: { mode: ring } }')).toEqual([
      'line 1: channels.telegram.mode: expected one of polling, webhook',
    ]);
    expect(await faultsOf('channels: { telegram: { token: "" } }')).toEqual([
      "line 1: channels.telegram.token: expected a bot's token, as @BotFather gave it",
    ]);
    expect(await faultsOf('channels: { telegram: [] }')).toEqual([
      'line 1: channels.telegram: expected keys and values',
    ]);
  });
});
