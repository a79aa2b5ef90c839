/** The security findings of `coterie doctor`: each way in that a configuration leaves open. Read-only. */
import { readdir, readFile, stat } from 'node:fs/promises';
import { isIP } from 'node:net';
import { dirname, join, resolve } from 'node:path';
import { isLoopback } from './board/guard.js';
import type { Config } from './config.js';
import { channelOf } from './core/ids.js';
import { decoded, isPublicAddress } from './core/network.js';
import { PLATFORMS } from './platforms.js';
import { secretsOf } from './secrets.js';
import { bubblewrapFault } from './tools/shell/bubblewrap.js';

/** A path that users other than its owner can access; `bits`: their permission bits, as in chmod. */
interface OpenAccess {
  path: string;
  bits: number;
}

export interface SecurityFacts {
  config: Config;
  /** The current user's ID; null where the system has none. */
  uid: number | null;
  /** Whether an owner has been approved; undefined if unknown. */
  ownerApproved: boolean | undefined;
  /** data_dir itself and its entries. */
  data: OpenAccess[];
  groups: OpenAccess | null;
  /** The configuration file, if others can read it; `holdsSecrets`: it contains secrets in plain text. */
  configFile: (OpenAccess & { holdsSecrets: boolean }) | null;
  secretFiles: OpenAccess[];
  /** Why the command sandbox does not work; null if it does. */
  sandboxFault: string | null;
}

const READABLE = 0o044;
const WRITABLE_BY_ALL = 0o002;
const READABLE_BY_ALL = 0o004;
/** Minimum length of a token; `openssl rand -hex 16` prints 32 characters. */
const FEWEST_CHARACTERS = 24;
const FEWEST_DIFFERENT = 8;
const SERVED = /(^|[/\\])(public_html|htdocs|wwwroot)([/\\]|$)|^\/(var\/www|srv\/(www|http))(\/|$)/;

export function securityFindings(facts: SecurityFacts): string[] {
  const { config, uid } = facts;
  return [
    ...filesOf(facts),
    ...addressesOf(config),
    ...tokensOf(config),
    ...(isLoopback(config.board.host)
      ? []
      : [
          `board.host (${config.board.host}) is reached without encryption; put a proxy with TLS in front of it`,
        ]),
    ...accessOf(facts),
    ...shellOf(facts),
    ...(uid === 0
      ? ['coterie runs as root: whoever takes it over has the whole machine; run it as a user of its own']
      : []),
  ];
}

function filesOf({ config, data, groups, configFile, secretFiles }: SecurityFacts): string[] {
  const chmod = ({ path, bits }: OpenAccess) => `${said(bits)}: chmod ${bits & 0o007 ? 'go' : 'g'}= ${path}`;
  const found = data.map((open) => `${open.path} holds what people said, and ${chmod(open)}`);
  if (configFile?.holdsSecrets && configFile.bits & READABLE) {
    const advice = `or take them from \${NAME} or \${file:PATH}`;
    found.push(`${configFile.path} holds secrets, and ${chmod(configFile)}, ${advice}`);
  }
  for (const open of secretFiles) found.push(`${open.path} is a secret, and ${chmod(open)}`);
  if (groups && groups.bits & WRITABLE_BY_ALL) {
    found.push(
      `groups_dir (${groups.path}) can be written by every user: whoever can, says what personas do; chmod -R o-w it`,
    );
  }
  if (groups && groups.bits & READABLE_BY_ALL) {
    found.push(`groups_dir (${groups.path}) can be read by every user; chmod -R o= it`);
  }
  for (const [key, path] of [
    ['groups_dir', config.groupsDir],
    ['data_dir', config.dataDir],
  ] as const) {
    if (SERVED.test(path)) {
      found.push(`${key} (${path}) lies where web servers publish files; move it elsewhere`);
    }
  }
  return found;
}

function said(bits: number): string {
  const who = bits & 0o007 ? 'every user' : 'its group';
  return bits & 0o022 ? `can be changed by ${who}` : `can be read by ${who}`;
}

/** Servers that receive messages or secrets over an unencrypted connection, or without a password. */
function addressesOf({ model, transcription, speech, embeddings, channels, store }: Config): string[] {
  const asked: [key: string, address: string | null | undefined][] = [
    ['model.base_url', model.server?.baseUrl],
    ...model.fallbacks.map(({ baseUrl }, n): [string, string] => [`model.fallbacks.${n}.base_url`, baseUrl]),
    ['transcription.base_url', transcription?.baseUrl],
    ['speech.base_url', speech?.server.baseUrl],
    ['embeddings.base_url', embeddings.baseUrl],
    ...optionsOf(channels).filter(([, value]) => URL.canParse(value)),
  ];
  const found: string[] = [];
  for (const [key, address] of asked) {
    const url = address ? new URL(address) : null;
    if (url === null || !/^(http|ws):$/.test(url.protocol) || isNear(url.hostname)) continue;
    const better = `${url.protocol.replace(':', 's:')}//`;
    found.push(`${key} is not encrypted, and ${url.hostname} is not on this network; use ${better}`);
  }
  const redis = embeddings.redisUrl === null ? null : new URL(embeddings.redisUrl);
  if (redis?.protocol === 'redis:' && !isNear(redis.hostname)) {
    found.push('embeddings.redis_url is not encrypted, and leads off this network; use rediss://');
  }
  if (redis && redis.password === '' && !isLoopback(redis.hostname)) {
    found.push(
      'embeddings.redis_url has no password: whoever reaches Redis reads all that is searched; set requirepass there',
    );
  }
  if (store.url !== null) found.push(...storeAddressOf(new URL(store.url)));
  return found;
}

/** The library insists on encryption in all of these. */
const ENCRYPTED = ['prefer', 'require', 'verify-ca', 'verify-full', 'no-verify'];

function storeAddressOf({ hostname, searchParams }: URL): string[] {
  const host = searchParams.get('host') ?? decoded(hostname);
  const isSocket = host === '' || host.startsWith('/');
  if (isSocket || isNear(host) || ENCRYPTED.includes(searchParams.get('sslmode') ?? '')) return [];
  return [`store.url is not encrypted, and ${host} is not on this network; add sslmode=verify-full`];
}

/** The channels' string options, by key. */
function optionsOf(channels: Config['channels']): [key: string, value: string][] {
  return PLATFORMS.flatMap((name) =>
    Object.entries(channels[name] ?? {}).flatMap(([key, value]): [string, string][] =>
      typeof value === 'string'
        ? [[`channels.${name}.${key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)}`, value]]
        : [],
    ),
  );
}

/** Whether a host is this machine or on its network, judged by its name alone (no DNS look-up). */
function isNear(host: string): boolean {
  const name = host.toLowerCase().replace(/^\[|\]$|\.$/g, '');
  if (isLoopback(name)) return true;
  if (isIP(name) !== 0) return !isPublicAddress(name);
  return !name.includes('.') || /\.(local|internal|lan|home|home\.arpa|localdomain)$/.test(name);
}

function tokensOf({ board, channels }: Config): string[] {
  const chosen = optionsOf(channels).filter(([key]) => key.endsWith('_secret'));
  if (board.token !== null) chosen.unshift(['board.token', board.token]);
  const advice = `use ${FEWEST_CHARACTERS} random characters or more, as openssl rand -hex 16 makes`;
  return chosen
    .filter(([, token]) => token.length < FEWEST_CHARACTERS || new Set(token).size < FEWEST_DIFFERENT)
    .map(([key]) => `${key} can be guessed; ${advice}`);
}

function accessOf({ config, ownerApproved }: SecurityFacts): string[] {
  const served = PLATFORMS.flatMap((name) => {
    const rules = config.channels[name]?.access;
    return rules ? [{ name, rules }] : [];
  });
  const limits = [
    'messagesPerMinute',
    'tokensPerPerson',
    'tokensPerDay',
    'moneyPerPerson',
    'moneyPerDay',
  ] as const;
  const isLimited = limits.some((name) => config.limits[name] !== null);
  const found: string[] = [];
  for (const { name, rules } of served) {
    const open = (['direct', 'groups'] as const).filter((key) => rules[key] === 'open');
    if (open.length === 0) continue;
    const anybody = `anybody may talk on ${name} (${open.map((key) => `${key}: open`).join(', ')})`;
    if (!isLimited) {
      found.push(
        `${anybody}, as much as they like; set limits.messages_per_minute, limits.tokens_per_person or limits.tokens_per_day`,
      );
    }
    for (const chat of rules.controlChats.filter((id) => channelOf(id) === name)) {
      found.push(
        `${anybody}, and ${chat} there is a control chat, whose personas act on every chat; close ${name}, or take the chat from access.control_chats`,
      );
    }
  }
  const hasOwner = ownerApproved !== false || served.some(({ rules }) => rules.owners.length > 0);
  if (served.length > 0 && !hasOwner) {
    found.push(
      'nobody is an owner: nobody can approve what a persona wants to do, or hears of trouble; name one in access.owners',
    );
  }
  return found;
}

/** Where personas may run commands, each after an owner's approval. */
function shellOf({ config: { tools }, sandboxFault }: SecurityFacts): string[] {
  const where = [tools, ...Object.values(tools.chats), ...Object.values(tools.channels)];
  if (!where.some(({ allow }) => allow.includes('shell'))) return [];
  const { sandbox, network } = tools.shell;
  if (sandbox === 'none') {
    return [
      'tools.shell.sandbox is none: a command of a persona may do all that coterie itself may, read every conversation, and every secret; use bubblewrap',
    ];
  }
  if (sandboxFault !== null) {
    return [
      `shell is allowed, and bubblewrap does not work here (${sandboxFault}): every command is refused; see docs/tools.md`,
    ];
  }
  if (!network) return [];
  return [
    'tools.shell.network is true: a command of a persona reaches what this machine reaches, its own services and its network, too; set it to false',
  ];
}

/** In data_dir: our files, copies of them, and backups left there. */
const HELD =
  /^(coterie\.db|recall\.db|terminal-history|audit|media$|speech$|work$)|\.(tar\.gz|tgz|age)$|\.before-/;
/** Secrets mounted into a container are readable by all its users, but it has only one. */
const HANDED = /^\/(var\/)?run\//;

export async function securityFacts(
  config: Config,
  file: string | null,
  ownerApproved: boolean | undefined,
): Promise<SecurityFacts> {
  const { dataDir, groupsDir, secretFiles } = config;
  const names = (await readdir(dataDir).catch(() => [])).filter((name) => HELD.test(name)).sort();
  const configFile = file === null ? null : await openTo(file);
  const source = configFile && (await readFile(configFile.path, 'utf8'));
  // Shorter secrets would match ordinary words.
  const plain = secretsOf(config).filter((secret) => secret.length >= 4);
  return {
    config,
    uid: process.getuid?.() ?? null,
    ownerApproved,
    data: await opened([dataDir, ...names.map((name) => join(dataDir, name))]),
    groups: await openTo(groupsDir),
    configFile: configFile && {
      ...configFile,
      holdsSecrets: plain.some((secret) => source?.includes(secret)),
    },
    sandboxFault: await bubblewrapFault(),
    secretFiles: await opened(secretFiles.map(({ path }) => path).filter((path) => !HANDED.test(path))),
  };
}

async function opened(paths: string[]): Promise<OpenAccess[]> {
  const found = await Promise.all(paths.map(openTo));
  return found.filter((each) => each !== null);
}

/** null if only the owner has access, by the path's own mode or by that of a folder above it. */
async function openTo(path: string): Promise<OpenAccess | null> {
  const found = await stat(path).catch(() => null);
  let bits = (found?.mode ?? 0) & 0o077;
  for (let above = dirname(resolve(path)); bits !== 0; above = dirname(above)) {
    const mode = (await stat(above).catch(() => null))?.mode ?? 0;
    // Without execute permission on the folder, nothing below it can be reached.
    if ((mode & 0o001) === 0) bits &= ~0o007;
    if ((mode & 0o011) === 0) bits &= ~0o070;
    if (above === dirname(above)) break;
  }
  return bits === 0 ? null : { path, bits };
}
