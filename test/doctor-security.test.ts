/** What doctor says about security: each way in that a configuration leaves open, with what to do, and no more. */
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { loadConfig } from '../src/config.js';
import { type SecurityFacts, securityFacts, securityFindings } from '../src/doctor-security.js';
import { makeHome, run } from './harness/gateway.js';

const BOT = '123456789:AAF-abcdefghijklmnopqrstuvwxyz_0123';
const LONG = '4f1c9a7be2d08355b6a1';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'coterie-security-'));
});
afterEach(() => rm(folder, { recursive: true }));

async function configOf(keys: object) {
  const file = join(folder, 'config.yaml');
  await writeFile(file, stringify(keys), { mode: 0o600 });
  return (await loadConfig({ environment: {}, workingDirectory: folder })).config;
}

/** Of a configuration alone, with files and user as they should be. */
async function findings(keys: object, facts: Partial<SecurityFacts> = {}): Promise<string[]> {
  return securityFindings({
    ...{ config: await configOf(keys), uid: 1000, ownerApproved: true },
    ...{ data: [], groups: null, configFile: null, secretFiles: [], sandboxFault: null, ...facts },
  });
}

const telegram = (options: object = {}) => ({ channels: { telegram: { token: BOT, ...options } } });
const line = (text: string | RegExp) => [expect.stringMatching(text)];

describe('doctor warns of', () => {
  it('nothing where nothing is open', async () => {
    expect(await findings({})).toEqual([]);
    expect(
      await findings({
        ...telegram({ access: { direct: 'open', owners: ['telegram_1'] } }),
        model: { base_url: 'https://m/v1', name: 'm', api_key: 'k' },
        limits: { tokens_per_day: 1000 },
        board: { token: `${LONG}${LONG}` },
      }),
    ).toEqual([]);
  });

  it.each([
    'http://model.example.org/v1',
    'http://8.8.8.8/v1',
    'http://[2001:4860::8888]/v1',
    'http://172.32.0.1/',
  ])('a server at %s', async (base_url) => {
    const said = line(/^model\.base_url is not encrypted, and .* is not on this network; use https:\/\/$/);
    expect(await findings({ model: { base_url, name: 'm' } })).toEqual(said);
  });

  it.each([
    ...[
      'https://model.example.org/v1',
      'http://127.0.0.1:8080/v1',
      'http://localhost/v1',
      'http://gpu:8080/v1',
    ],
    ...[
      'http://192.168.1.5/v1',
      'http://10.1.2.3/',
      'http://172.31.0.1/',
      'http://100.100.1.1/',
      'http://[::1]/',
    ],
    ...[
      'http://[fd00::1]/',
      'http://nas.local/',
      'http://host.docker.internal:11434/v1',
      'http://[fe80::1]/',
    ],
  ])('no server at %s', async (base_url) => {
    expect(await findings({ model: { base_url, name: 'm' } })).toEqual([]);
  });

  it('each server that is asked without encryption', async () => {
    const far = 'http://far.example.org';
    const said = await findings({
      model: { base_url: 'https://m', name: 'm', fallbacks: [{ base_url: far, name: 'n' }] },
      transcription: { base_url: far, model: 'm' },
      speech: { base_url: far, model: 'm', voice: 'v' },
      embeddings: { base_url: far, model: 'm', backend: 'http' },
      channels: {
        telegram: { token: BOT, api_root: far },
        discord: { token: 'x', api_root: `${far}/api` },
        whatsapp: { enabled: true, web_socket_url: 'ws://far.example.org/' },
      },
    });
    expect(said.map((text) => text.split(' ')[0])).toEqual([
      ...['model.fallbacks.0.base_url', 'transcription.base_url', 'speech.base_url', 'embeddings.base_url'],
      ...['channels.telegram.api_root', 'channels.discord.api_root', 'channels.whatsapp.web_socket_url'],
    ]);
    expect(said.at(-1)).toContain('use wss://');
  });

  it('Redis without encryption or password', async () => {
    const redis = (redis_url: string) =>
      findings({ embeddings: { redis_url, model: 'm', backend: 'redis' } });
    expect(await redis('redis://:pw@127.0.0.1')).toEqual([]);
    expect(await redis('redis://127.0.0.1')).toEqual([]);
    expect(await redis('redis://:pw@gpu')).toEqual([]);
    expect(await redis('redis://gpu')).toEqual(line(/redis_url has no password/));
    expect(await redis('redis://:pw@far.example.org')).toEqual(line(/redis_url is not encrypted/));
    expect(await redis('rediss://:pw@far.example.org')).toEqual([]);
  });

  it('PostgreSQL without encryption', async () => {
    const store = (address: string) => findings({ store: { url: `postgres://me:${LONG}@${address}` } });
    for (const near of [
      'localhost/x',
      'db.lan:5433/x',
      '10.0.0.7/x',
      'far.example.org/x?host=/run/postgresql',
    ]) {
      expect(await store(near)).toEqual([]);
    }
    for (const far of ['far.example.org/x', '8.8.8.8/x?sslmode=disable', 'localhost/x?host=far.example.org'])
      expect(await store(far)).toEqual(line(/^store\.url is not encrypted, and \S+ is not on this network/));
    expect(await store('far.example.org/x?sslmode=verify-full')).toEqual([]);
  });

  it('tokens that can be guessed', async () => {
    const board = (token: string) => findings({ board: { token } });
    expect(await board('short')).toEqual(line(/^board\.token can be guessed/));
    expect(await board('ab'.repeat(20))).toEqual(line(/^board\.token can be guessed/));
    const hook = { mode: 'webhook', webhook_url: 'https://x.org/', webhook_secret: 'hook' };
    expect(await findings(telegram(hook))).toEqual(
      line(/^channels\.telegram\.webhook_secret can be guessed/),
    );
  });

  it('a board that other machines reach', async () => {
    const board = { host: '0.0.0.0', token: `${LONG}${LONG}` };
    expect(await findings({ board })).toEqual(line(/^board\.host \(0\.0\.0\.0\) .* a proxy with TLS/));
  });

  it('open channels without a limit, and with control chats', async () => {
    const open = telegram({ access: { groups: 'open', owners: ['telegram_1'] } });
    expect(await findings(open)).toEqual(line(/^anybody may talk on telegram \(groups: open\), as much as/));
    const limits = { messages_per_minute: 5 };
    expect(await findings({ ...open, limits })).toEqual([]);
    expect(await findings({ ...open, limits: { tokens_per_chat: 5 } })).toHaveLength(1);
    const access = { groups: 'open', control_chats: ['telegram_-5', 'discord_6'] };
    expect(await findings({ ...telegram({ access }), limits })).toEqual(
      line(/telegram_-5 there is a control chat, .*; close telegram/),
    );
  });

  it('nobody who is an owner', async () => {
    const alone = { ownerApproved: false };
    expect(await findings(telegram(), alone)).toEqual(line(/^nobody is an owner.*access\.owners/));
    expect(await findings({ ...telegram(), access: { owners: ['telegram_1'] } }, alone)).toEqual([]);
    expect(await findings({}, alone)).toEqual([]);
  });

  it('commands without a sandbox, or with the network', async () => {
    const allow = ['memory', 'shell'];
    const said = (tools: object, sandboxFault: string | null = null) => findings({ tools }, { sandboxFault });
    expect(await said({ shell: { sandbox: 'none', network: true } }, 'it is not installed')).toEqual([]);
    expect(await said({ allow })).toEqual([]);
    const missing = line(/^shell is allowed, and bubblewrap does not work here \(it is not installed\)/);
    expect(await said({ allow }, 'it is not installed')).toEqual(missing);
    expect(await said({ chats: { telegram_1: { allow } } }, 'it is not installed')).toEqual(missing);
    expect(await said({ channels: { terminal: { allow } } }, 'it is not installed')).toEqual(missing);
    const open = line(/^tools\.shell\.sandbox is none: .* use bubblewrap$/);
    expect(await said({ allow, shell: { sandbox: 'none' } }, 'it is not installed')).toEqual(open);
    expect(await said({ allow, shell: { network: true } })).toEqual(line(/^tools\.shell\.network is true/));
  });

  it('root, and folders that web servers publish', async () => {
    expect(await findings({}, { uid: 0 })).toEqual(line(/^coterie runs as root/));
    expect(await findings({ groups_dir: '/var/www/groups' })).toEqual(line(/^groups_dir .* web servers/));
    expect(await findings({ data_dir: '/home/me/public_html/data' })).toEqual(
      line(/^data_dir .* web servers/),
    );
  });
});

describe('doctor looks at files', () => {
  async function filesOf(keys: object): Promise<string[]> {
    const config = await configOf(keys);
    const facts = await securityFacts(config, join(folder, 'config.yaml'), true);
    return securityFindings({ ...facts, uid: 1000 });
  }

  async function put(name: string, text: string, mode: number): Promise<void> {
    await writeFile(join(folder, name), text);
    await chmod(join(folder, name), mode);
  }

  beforeEach(async () => {
    for (const name of ['data', 'groups']) await mkdir(join(folder, name), { mode: 0o700 });
    // What temporary folders are made with would hide all that is in them.
    await chmod(folder, 0o755);
  });

  it('and says nothing where they are private', async () => {
    await put('data/coterie.db-wal', '', 0o600);
    expect(await filesOf({ board: { token: `${LONG}${LONG}` } })).toEqual([]);
  });

  it('of data: folder, database, credentials, copies, backups', async () => {
    await chmod(join(folder, 'data'), 0o755);
    await put('data/recall.db', '', 0o644);
    await put('data/mine.tar.gz', '', 0o640);
    await put('data/coterie.db.before-3', '', 0o666);
    await put('data/other', '', 0o644);
    const data = join(folder, 'data');
    expect(await filesOf({})).toEqual([
      `${data} holds what people said, and can be read by every user: chmod go= ${data}`,
      `${data}/coterie.db.before-3 holds what people said, and can be changed by every user: chmod go= ${data}/coterie.db.before-3`,
      `${data}/mine.tar.gz holds what people said, and can be read by its group: chmod g= ${data}/mine.tar.gz`,
      `${data}/recall.db holds what people said, and can be read by every user: chmod go= ${data}/recall.db`,
    ]);
    await chmod(folder, 0o700);
    expect(await filesOf({})).toEqual([]);
  });

  it('of the configuration, where secrets stand in it as they are', async () => {
    const config = join(folder, 'config.yaml');
    const token = `${LONG}${LONG}`;
    await filesOf({ board: { token } });
    await chmod(config, 0o644);
    const said = line(
      /config\.yaml holds secrets, and can be read by every user: chmod go= .*\$\{file:PATH\}$/,
    );
    const facts = async () => {
      const loaded = await loadConfig({ environment: {}, workingDirectory: folder });
      return securityFindings({ ...(await securityFacts(loaded.config, config, true)), uid: 1 });
    };
    expect(await facts()).toEqual(said);
    await put('token', token, 0o600);
    await writeFile(config, 'board: { token: "$' + '{file:token}" }');
    expect(await facts()).toEqual([]);
    await chmod(join(folder, 'token'), 0o640);
    expect(await facts()).toEqual(line(/token is a secret, and can be read by its group: chmod g= /));
  });

  it('of groups', async () => {
    await chmod(join(folder, 'groups'), 0o755);
    expect(await filesOf({})).toEqual(line(/^groups_dir .* can be read by every user/));
    await chmod(join(folder, 'groups'), 0o777);
    expect(await filesOf({})).toHaveLength(2);
    await chmod(join(folder, 'groups'), 0o770);
    expect(await filesOf({})).toEqual([]);
  });
});

it('is printed by doctor, alone with --security, as warnings', async () => {
  const home = await makeHome({ board: { token: 'short' } });
  const alone = run(home, ['doctor', '--security']);
  expect(await alone.exited).toBe(0);
  expect(
    alone
      .out()
      .split('\n')
      .filter((each) => !/^(warning|ok {5}) security: /.test(each)),
  ).toEqual(['']);
  expect(alone.out()).toMatch(/^warning security: board\.token can be guessed/m);
  const whole = run(home, ['doctor']);
  expect(await whole.exited).toBe(0);
  expect(whole.out()).toMatch(/^warning security: board\.token can be guessed/m);
  expect(whole.out()).toMatch(/^ok +database: /m);
  await home.remove();
});
