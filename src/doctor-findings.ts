/** Findings of `coterie doctor`: security, file access, colliding file names, persona files, the route of one message. */
import { readdir, readFile, stat } from 'node:fs/promises';
import { isIP } from 'node:net';
import { dirname, join, resolve } from 'node:path';
import { isLoopback } from './board/guard.js';
import { type Config, modelsOf } from './config.js';
import { entriesBelow, sameNames, within } from './core/beneath.js';
import { Fault } from './core/errors.js';
import { namesIn } from './core/file-access.js';
import { channelOf } from './core/ids.js';
import type { Log } from './core/log.js';
import type { Fate } from './core/memory.js';
import { isPublicAddress } from './core/network.js';
import { isChatId } from './groups/paths.js';
import { personaReader } from './groups/personas.js';
import { PLATFORMS } from './platforms.js';
import { secretsOf } from './secrets.js';
import { hasApprovedOwner, withTraces } from './store/sqlite/inspect.js';
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
  /** Whether an owner has been approved; null if unknown. */
  ownerApproved: boolean | null;
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
  const { config } = facts;
  return [
    ...filesOf(facts),
    ...addressesOf(config),
    ...tokensOf(config),
    ...boardOf(config),
    ...accessOf(facts),
    ...shellOf(facts),
    ...(facts.uid === 0
      ? ['coterie runs as root: whoever takes it over has the whole machine; run it as a user of its own']
      : []),
  ];
}

function filesOf({ config, data, groups, configFile, secretFiles }: SecurityFacts): string[] {
  const chmod = ({ path, bits }: OpenAccess) => `${said(bits)}: chmod ${bits & 0o007 ? 'go' : 'g'}= ${path}`;
  const found = data.map((open) => `${open.path} holds what people said, and ${chmod(open)}`);
  if (configFile?.holdsSecrets && configFile.bits & READABLE) {
    found.push(
      `${configFile.path} holds secrets, and ${chmod(configFile)}, or take them from \${NAME} or \${file:PATH}`,
    );
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
    if (SERVED.test(path))
      found.push(`${key} (${path}) lies where web servers publish files; move it elsewhere`);
  }
  return found;
}

function said(bits: number): string {
  const who = bits & 0o007 ? 'every user' : 'its group';
  return bits & 0o022 ? `can be changed by ${who}` : `can be read by ${who}`;
}

/** Servers that receive messages or secrets over an unencrypted connection, or without a password. */
function addressesOf({ model, transcription, speech, embeddings, channels }: Config): string[] {
  const asked: [key: string, address: string | null | undefined][] = [
    ['model.base_url', model.server?.baseUrl],
    ...model.fallbacks.map(({ baseUrl }, n): [string, string] => [`model.fallbacks.${n}.base_url`, baseUrl]),
    ['transcription.base_url', transcription?.baseUrl],
    ['speech.base_url', speech?.server.baseUrl],
    ['embeddings.base_url', embeddings.baseUrl],
    ...optionsOf(channels).filter(([, value]) => URL.canParse(value)),
  ];
  const found = asked.flatMap(([key, address]) => {
    const url = address ? new URL(address) : null;
    const isOpen = url !== null && /^(http|ws):$/.test(url.protocol) && !isNear(url.hostname);
    return isOpen
      ? [
          `${key} is not encrypted, and ${url.hostname} is not on this network; use ${url.protocol.replace(':', 's:')}//`,
        ]
      : [];
  });
  const redis = embeddings.redisUrl === null ? null : new URL(embeddings.redisUrl);
  if (redis?.protocol === 'redis:' && !isNear(redis.hostname)) {
    found.push('embeddings.redis_url is not encrypted, and leads off this network; use rediss://');
  }
  if (redis && redis.password === '' && !isLoopback(redis.hostname)) {
    found.push(
      'embeddings.redis_url has no password: whoever reaches Redis reads all that is searched; set requirepass there',
    );
  }
  return found;
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
  const chosen: [key: string, token: string | null][] = [
    ['board.token', board.token],
    ...optionsOf(channels).filter(([key]) => key.endsWith('_secret')),
  ];
  return chosen.flatMap(([key, token]) =>
    token !== null && (token.length < FEWEST_CHARACTERS || new Set(token).size < FEWEST_DIFFERENT)
      ? [
          `${key} can be guessed; use ${FEWEST_CHARACTERS} random characters or more, as openssl rand -hex 16 makes`,
        ]
      : [],
  );
}

function boardOf({ board }: Config): string[] {
  return isLoopback(board.host)
    ? []
    : [`board.host (${board.host}) is reached without encryption; put a proxy with TLS in front of it`];
}

function accessOf({ config, ownerApproved }: SecurityFacts): string[] {
  const served = PLATFORMS.flatMap((name) => {
    const rules = config.channels[name]?.access;
    return rules ? [{ name, rules }] : [];
  });
  const found: string[] = [];
  for (const { name, rules } of served) {
    const open = (['direct', 'groups'] as const).filter((key) => rules[key] === 'open');
    if (open.length === 0) continue;
    const keys = open.map((key) => `${key}: open`).join(', ');
    if (!isLimited(config)) {
      found.push(
        `anybody may talk on ${name} (${keys}), as much as they like; set limits.messages_per_minute, limits.tokens_per_person or limits.tokens_per_day`,
      );
    }
    for (const chat of rules.controlChats.filter((id) => channelOf(id) === name)) {
      found.push(
        `anybody may talk on ${name} (${keys}), and ${chat} there is a control chat, whose personas act on every chat; close ${name}, or take the chat from access.control_chats`,
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
  return network
    ? [
        'tools.shell.network is true: a command of a persona reaches what this machine reaches, its own services and its network, too; set it to false',
      ]
    : [];
}

/** Whether usage is limited, per person or in total. */
function isLimited({ limits }: Config): boolean {
  const { messagesPerMinute, tokensPerPerson, tokensPerDay, moneyPerPerson, moneyPerDay } = limits;
  return [messagesPerMinute, tokensPerPerson, tokensPerDay, moneyPerPerson, moneyPerDay].some(
    (limit) => limit !== null,
  );
}

// The facts for `securityFindings`: who can access which file, and which user runs this. Read-only.

/** In data_dir: our files, copies of them, and backups left there. */
const HELD =
  /^(coterie\.db|recall\.db|terminal-history|audit|media$|speech$|work$)|\.(tar\.gz|tgz|age)$|\.before-/;
/** Secrets mounted into a container are readable by all its users, but it has only one. */
const HANDED = /^\/(var\/)?run\//;

export async function securityFacts(
  config: Config,
  file: string | null,
  migrations: URL,
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
    ownerApproved: await hasApprovedOwner(join(dataDir, 'coterie.db'), migrations),
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

// File names that look the same but differ in bytes (Unicode composition): only one of the files is found by its name.

const MOST_ENTRIES = 50_000;
const MOST_NAMES_TOLD = 20;

/** One sentence per collision below the folders. */
export async function nameFindings(folders: readonly string[]): Promise<string[]> {
  const findings: string[] = [];
  for (const folder of folders) {
    // Other checks report missing and unreadable folders.
    for (const [one = '', ...others] of await pairsBelow(folder).catch(() => [])) {
      findings.push(
        `${folder}: ${one} stands there ${others.length + 1} times, in letters that look the same (composed and ` +
          'decomposed Unicode); under its usual name, the composed one, only one of them is found; rename the other',
      );
    }
  }
  return findings.slice(0, MOST_NAMES_TOLD);
}

async function pairsBelow(root: string): Promise<string[][]> {
  const names = new Map<string, string[]>();
  await within(root, [], async (folder) => {
    let looked = 0;
    for await (const { path } of entriesBelow(folder)) {
      if (++looked > MOST_ENTRIES) break;
      const at = dirname(path);
      const there = names.get(at);
      if (there === undefined) names.set(at, [path]);
      else there.push(path);
    }
  });
  return [...names.values()].flatMap(sameNames);
}

// Unusable entries in persona files, of the library and of every chat.

const MOST_TOLD = 50;

/** One sentence per fault, after its file's name; `personas`: the number of personas. */
export async function personaFindings(
  config: Config,
  log: Log,
): Promise<{ personas: number; findings: string[] }> {
  const { groupsDir } = config;
  const reader = personaReader(groupsDir, log, modelsOf(config));
  const faults = new Set<string>();
  let personas = 0;
  const chats = (await namesIn(join(groupsDir))).filter(isChatId).sort();
  for (const chat of chats) {
    for (const persona of await reader.list(chat)) {
      personas++;
      for (const fault of persona.faults ?? []) faults.add(fault);
    }
  }
  for (const id of await reader.library()) {
    for (const fault of (await reader.asInLibrary(id)).faults ?? []) faults.add(fault);
  }
  const findings = [...faults].sort();
  const more = findings.length - MOST_TOLD;
  return {
    personas,
    findings: [...findings.slice(0, MOST_TOLD), ...(more > 0 ? [`… and ${more} more`] : [])],
  };
}

// `coterie doctor --message`: the route of one message, for each persona that received it.

/** `wanted`: `telegram_123/45`, a chat ID and the platform's message ID. Returns lines; throws Fault if there is none. */
export async function whereItWent(database: string, wanted: string): Promise<string[]> {
  const slash = wanted.indexOf('/');
  if (slash < 0) {
    throw new Fault('configuration', `${wanted} should be CHAT_ID/MESSAGE_ID, like telegram_123/45`);
  }
  const ask = {
    chatId: wanted.slice(0, slash),
    wanted: { platformMessageId: wanted.slice(slash + 1) },
    most: 10,
  };
  const traces = await withTraces(database, (open) => open.trace(ask));
  if (traces.length === 0) {
    throw new Fault('configuration', `${wanted} is not in the store: it never came in, or was not let in`);
  }
  return traces.map(({ message, personaId, fate }) => {
    const at = new Date(message.sentAt).toISOString();
    const whose = personaId === '' ? 'nobody' : personaId;
    return `${wanted} of ${at}, for ${whose}: ${wordsFor(fate)}`;
  });
}

function wordsFor(fate: Fate): string {
  switch (fate.kind) {
    case 'waiting':
      return 'waits to be answered';
    case 'window':
      return `in the window${fate.flushed ? ', seen by a memory flush' : ''}`;
    case 'flushed':
      return 'behind the window, after a memory flush had seen it';
    case 'archived':
      return `behind the window, in the archive ${fate.file}; a memory flush of it is owed`;
    case 'overheard':
      return 'overheard: said to somebody else';
    case 'reset':
      return 'forgotten by /reset, or never shown';
  }
}
