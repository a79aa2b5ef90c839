/** `coterie doctor`: checks everything the configuration names. One line each: ok, warning or failed, with advice. */
import { randomUUID } from 'node:crypto';
import { stat, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { type Config, processConfig } from './config.js';
import { refusalKey } from './conversation/receive/commands.js';
import { systemClock } from './core/clock.js';
import { printableLine, sizeInWords } from './core/cut.js';
import { describe } from './core/errors.js';
import { type Store, settingOf } from './core/store.js';
import { nameFindings, personaFindings, whereItWent } from './doctor-files.js';
import { editFindings, mountsOf } from './doctor-mounts.js';
import { securityFacts, securityFindings } from './doctor-security.js';
import { createPersonas } from './groups/personas.js';
import type { ServerSettings } from './mcp/settings.js';
import { mediaBytes } from './media/files.js';
import { createOutward } from './network/outward.js';
import { type NamedProxy, shownProxy } from './network/rules.js';
import { takeLock } from './operating/lock.js';
import { createLog } from './operating/log.js';
import { createRedactor } from './operating/redact.js';
import { isHalfRestored } from './operating/restore-plan.js';
import { openFile, openStore } from './parts.js';
import { foldersOf, storeOf } from './paths.js';
import { createPlatform, PLATFORMS } from './platforms.js';
import { databaseProblem, folderProblems, picturesProblem } from './premises.js';
import { secretsOf } from './secrets.js';
import { createEmbedder, createModel, createReachOf, createSpeechOf } from './servers.js';
import { createSkills, systemHost } from './skills/skills.js';
import { type Inspected, inspectStore, withReads } from './store/inspect.js';
import { leftOutOf } from './tool-groups.js';
import { tracingProblems } from './tracing.js';

interface Finding {
  state: 'ok' | 'warning' | 'failed';
  text: string;
}

/** Silent: the findings are the output. */
const log = createLog({ level: 'silent', format: 'json', secrets: [] });
/** After this time a check counts as failed. */
const PATIENCE_MS = 60_000;
/** Free disk space below which a warning is given. */
const SCARCE_BYTES = 1_000_000_000;
const SCARCE_SHARE = 0.05;
/** How long a database server is waited for. */
const STORE_WAIT_MS = 5_000;
/** Times are judged by this machine's clock, and soon by the database's. */
const MOST_APART_MS = 2_000;

type Check = (what: string, look: () => Finding[] | Promise<Finding[]>) => Promise<void>;
type Server = NonNullable<Inspected['server']>;
/** The store, opened once; null if there is none yet. */
type Stored = () => Promise<Inspected | null>;

export interface DoctorOptions {
  /** Also show the route of one message: `telegram_123/45`. */
  message?: string;
  /** Only show what the configuration leaves open. */
  security?: boolean;
}

export async function doctor(configFile: string | undefined, wishes: DoctorOptions): Promise<void> {
  const { message, security } = wishes;
  const { config, warnings, file } = await processConfig(configFile);
  const clean = createRedactor(secretsOf(config));
  const check: Check = async (what, look) => {
    const findings = await Promise.resolve()
      .then(look)
      .catch((error) => failures([describe(error)]));
    for (const { state, text } of findings) {
      if (state === 'failed') process.exitCode = 1;
      // A server's message may contain line breaks and imitate the lines of other checks.
      process.stdout.write(`${printableLine(clean(`${state.padEnd(7)} ${what}: ${text}`))}\n`);
    }
  };

  let inspecting: Promise<Inspected | null> | undefined;
  const stored: Stored = () => {
    inspecting ??= inspectStore({ ...storeOf(config), waitMs: STORE_WAIT_MS }, systemClock);
    return inspecting;
  };
  const checkOpen = () => check('security', () => checkSecurity(config, file, stored));
  try {
    if (security) return await checkOpen();
    await check('configuration', () => [ok(file ?? 'no file, everything is default'), ...cautions(warnings)]);
    await check('native modules', checkNative);
    // No other check works without the database module.
    if (databaseProblem() !== null) return;
    await check('proxy', () => checkProxy(config));
    await check('folders', () => checkFolders(config));
    await check('mounts', async () => cautions(await mountsOf(config)));
    await check('names', () => checkNames(config));
    await check('restore', () => checkRestore(config));
    await check('database', () => checkDatabase(config, stored));
    await check('shared folder', async () =>
      editFindings(await stored().catch(() => null), config.groupsDir),
    );
    await check('disk', () => checkDisk(config, stored));
    await checkOpen();
    await check('memory', () => checkMemory(stored));
    await check('personas', () => checkPersonas(config));
    await check('skills', () => checkSkills(config));
    await check('agents', () => checkAgents(config));
    if (message !== undefined) await check('message', () => checkMessage(config, message));
    await checkServers(config, stored, check);
  } finally {
    await inspecting?.then(
      (found) => found?.close(),
      () => {},
    );
  }
}

/** The checks of everything that is reached over a network. */
async function checkServers(config: Config, stored: Stored, check: Check): Promise<void> {
  const store = await storeFor(config, stored);
  try {
    for (const name of PLATFORMS) await check(name, () => checkPlatform(name, config, store));
    await check('model', () => checkModel(config, store));
    await check('speech', () => checkSpeech(config));
    await check('embeddings', () => checkEmbeddings(config));
    const spans = config.tracing.endpoint === null ? 'off: no spans are sent' : 'spans are taken';
    await check('tracing', async () => orOk(await tracingProblems(config), spans));
    const offered: string[] = [];
    for (const server of config.mcp.servers) {
      await check(`mcp ${server.name}`, () => checkMcp(server, config, offered));
    }
    await check('tools', () => checkOffered(config, offered));
  } finally {
    await store.close();
  }
}

/**
 * Logins and models are tested with the stored state. While a gateway runs, only what is learnt of model servers is
 * stored, since it reads that again; it knows everything else better.
 */
async function storeFor(config: Config, stored: Stored): Promise<Store> {
  const reads = async () => (await stored())?.reads;
  /** null: nothing was written. */
  async function write<T>(change: (store: Store) => Promise<T>, whileRunning: boolean): Promise<T | null> {
    if (!(await reads())) return null;
    const lock = await takeLock(join(config.dataDir, 'gateway.lock'));
    if (lock === null && !whileRunning) return null;
    try {
      const store = await openStore(config, log);
      return await change(store).finally(store.close);
    } finally {
      lock?.release();
    }
  }
  return {
    ...(await openFile(config, log, ':memory:')),
    values: async (scope, names) => (await reads())?.values(scope, names) ?? new Map(),
    async setValues(scope, values) {
      // States that the check of a channel would store are not kept.
      if (scope === 'settings') await write((store) => store.setValues(scope, values), false);
    },
    replaceSetting: async (...given) =>
      (await write((store) => store.replaceSetting(...given), true)) ?? true,
  };
}

async function checkSecurity(config: Config, file: string | null, stored: Stored): Promise<Finding[]> {
  const found = await stored();
  const owners = found === null ? [] : (await found.reads?.owners([]))?.ids;
  const findings = securityFindings(await securityFacts(config, file, owners && owners.length > 0));
  return orOk(findings, 'nothing is open that could be closed');
}

/** Reports only problems. */
async function checkNative(): Promise<Finding[]> {
  return failures([databaseProblem(), await picturesProblem()].filter((text) => text !== null));
}

/** Does not test the connection: the checks of the servers behind the proxy do. */
function checkProxy({ network }: Config): Finding[] {
  const { plain, secure, except, exceptFrom } = network.proxies;
  const saidOf = (proxy: NamedProxy | null) =>
    proxy === null ? 'none' : `${shownProxy(proxy)} (${proxy.source})`;
  const [first, second] = [saidOf(secure), saidOf(plain)];
  if (plain === null && secure === null) return [ok('none: servers are connected to straight')];
  const without = except.length === 0 ? '' : `; without it ${except.join(', ')} (${exceptFrom})`;
  if (first === second) return [ok(`${first} for all${without}`)];
  return [ok(`${first} for https and wss, ${second} for http and ws${without}`)];
}

async function checkFolders(config: Config): Promise<Finding[]> {
  const problems = await folderProblems(config);
  const fine = [config.dataDir, config.groupsDir].filter(
    (folder) => !problems.some((text) => text.includes(`(${folder})`)),
  );
  const principles = join(config.groupsDir, 'AGENTS.md');
  const isThere = (await stat(principles).catch(() => null))?.isFile() === true;
  const missing = isThere ? [] : [`${principles} is not there: personas have no principles`];
  return [...failures(problems), ...fine.map(ok), ...cautions(missing)];
}

/** Reports only problems: such names arise only when files move between systems. */
async function checkNames(config: Config): Promise<Finding[]> {
  const { skills, workspace, agents, work, media } = foldersOf(config);
  return cautions(await nameFindings([config.groupsDir, skills, workspace, agents, work, media]));
}

/** Reports only an interrupted restore. */
async function checkRestore({ dataDir }: Config): Promise<Finding[]> {
  if (!(await isHalfRestored(dataDir))) return [];
  return failures([
    'a restore was broken off, or is at work; if none is, coterie start brings it to its end, as all other commands do',
  ]);
}

async function checkDatabase(config: Config, stored: Stored): Promise<Finding[]> {
  const found = await stored();
  if (found === null) return [ok(`${storeOf(config).file} is made at the first start`)];
  const { name, place, pending, newer, parked, server } = found;
  const lock = await takeLock(join(config.dataDir, 'gateway.lock'));
  lock?.release();
  const running = lock ? 'no gateway runs on it' : 'a gateway runs on it';
  const copied = server ? '' : ', after a copy';
  const due =
    pending > 0 ? `${pending} migrations run at the next start${copied}` : 'no migrations are pending';
  const more =
    parked > 0 && `${parked} replies or turns are parked; the log says why, and nothing is sent again`;
  return [
    ok(`${name}, ${place}, ${running}; ${due}`),
    ...(server ? serverFindings(server, lock ? config.store.connections + 1 : 0) : []),
    ...cautions(
      newer ? ['a newer coterie migrated it; this version works beside that one, until it is upgraded'] : [],
    ),
    ...cautions(more ? [more] : []),
  ];
}

/** `needed`: the connections that a gateway would open. */
export function serverFindings({ aheadMs, free }: Server, needed: number): Finding[] {
  const apart = Math.abs(aheadMs);
  const cautious: string[] = [];
  if (apart > MOST_APART_MS) {
    const way = aheadMs > 0 ? 'ahead of' : 'behind';
    cautious.push(
      `its clock is ${(apart / 1000).toFixed(1)} s ${way} this machine's; let both follow a time server`,
    );
  }
  if (free < needed) {
    cautious.push(
      `it has ${free} connections left, and a gateway opens ${needed}; raise max_connections there, or lower store.connections`,
    );
  }
  return [ok(`its clock differs by ${apart} ms, and it has ${free} connections left`), ...cautions(cautious)];
}

/** The size of the stored data, and the free disk space. */
async function checkDisk(config: Config, stored: Stored): Promise<Finding[]> {
  const found = await stored().catch(() => null);
  const media = await mediaBytes(foldersOf(config).media);
  const { bavail, blocks, bsize } = await statfs(config.dataDir);
  const free = bavail * bsize;
  const text = `${sizeInWords(found?.bytes ?? 0)} in the database, ${sizeInWords(media)} of files that came with messages, ${sizeInWords(free)} free`;
  const isScarce = free < SCARCE_BYTES || bavail < blocks * SCARCE_SHARE;
  if (!isScarce) return [ok(text)];
  return cautions([`${text}; make room, or lower retention.days and retention.media_bytes`]);
}

/** Checks that no message is lost to memory: each is in the window, was flushed, or is due for a flush. */
async function checkMemory(stored: Stored): Promise<Finding[]> {
  const reads = (await stored())?.reads;
  if (!reads) return [];
  const { window, flushed, archived } = await reads.whereabouts(null, null);
  const said = `of what was said to personas, ${window} messages are in their windows, ${flushed} were put away after a memory flush`;
  if (archived === 0) return [ok(said)];
  return cautions([
    `${said}, ${archived} stand in archives and are owed a flush; it is made when the model answers`,
  ]);
}

async function checkMessage(config: Config, message: string): Promise<Finding[]> {
  const lines = await withReads(storeOf(config), systemClock, (reads) => whereItWent(reads, message));
  return lines?.map(ok) ?? failures(['nothing was ever stored']);
}

async function checkPersonas(config: Config): Promise<Finding[]> {
  const { personas, findings } = await personaFindings(config, log);
  return orOk(findings, `${personas} in chats, and all of their files can be used`);
}

async function checkSkills(config: Config): Promise<Finding[]> {
  const folder = foldersOf(config).skills;
  const { skills, problems, remarks } = await createSkills({ folder, ...systemHost(), log }).list();
  return [
    ok(skills.map(({ name }) => name).join(', ') || 'there are none'),
    ...cautions(problems.map(({ name, why }) => `${name} is not offered: ${why}`)),
    ...cautions(remarks.map(({ name, why }) => `${name}: ${why}`)),
  ];
}

/** Agent files are read per task, so a fault would otherwise show only when the agent is used. */
async function checkAgents(config: Config): Promise<Finding[]> {
  const { agentFindings } = await import('./workspace/agent-file.js');
  const { ids, findings } = await agentFindings(foldersOf(config).agents);
  return orOk(findings, ids.join(', '));
}

async function checkPlatform(
  name: (typeof PLATFORMS)[number],
  config: Config,
  store: Store,
): Promise<Finding[]> {
  if (!config.channels[name]) return [ok('not configured')];
  const personas = createPersonas({ groupsDir: config.groupsDir, clock: systemClock, log });
  const audit = { note: async () => {} };
  const channel = await createPlatform(name, config, { store, personas, audit, log, show: () => {} });
  if (!channel?.check) return [ok('cannot be checked')];
  try {
    const { identity, warnings } = await channel.check();
    const refusal = await settingOf(store, refusalKey(name));
    const menu = refusal ? [`the menu of chat commands could not be set: ${refusal}`] : [];
    return [ok(identity), ...cautions([...warnings, ...menu])];
  } finally {
    await channel.stop();
  }
}

async function checkModel(config: Config, store: Store): Promise<Finding[]> {
  if (!config.model.server) {
    return cautions(['the built-in offline model answers; set model.base_url and model.name']);
  }
  const model = await createModel(config, store, log);
  const { identity, warnings } = await model.check(AbortSignal.timeout(PATIENCE_MS));
  return [ok(`${identity}, with a context window of ${model.contextTokens()} tokens`), ...cautions(warnings)];
}

/** Speaks one word in the default voice. */
async function checkSpeech(config: Config): Promise<Finding[]> {
  const speech = await createSpeechOf(config, log);
  if (!speech || !config.speech) return [ok('not configured: replies are not spoken')];
  const key = `doctor ${randomUUID()}`;
  const signal = AbortSignal.timeout(PATIENCE_MS);
  try {
    await speech.make({ key, text: 'Hello.', voice: speech.voice, signal });
    return [ok(`${config.speech.server.model} speaks with the voice ${speech.voice}`)];
  } finally {
    await speech.discard(key);
  }
}

async function checkEmbeddings(config: Config): Promise<Finding[]> {
  const embedder = await createEmbedder(config, { count() {}, observe() {} }, log);
  if (!embedder) return [ok('off: memory is searched by keywords')];
  try {
    const signal = AbortSignal.timeout(PATIENCE_MS);
    await embedder.embed(['Is anybody there?'], { purpose: 'query', signal });
    const { backend, model } = config.embeddings;
    return [ok(`${backend}, model ${model}, vectors of ${embedder.dimensions()} numbers`)];
  } finally {
    await embedder.close();
  }
}

/** Reports only problems. */
function checkOffered({ tools }: Config, names: readonly string[]): Finding[] {
  const leftOut = leftOutOf(tools, names);
  if (leftOut.length === 0) return [];
  return cautions([
    `one request offers ${tools.maxOffered} (tools.max_offered), so ${leftOut.length} are left out: ${leftOut.join(', ')}; ` +
      'list under mcp.servers.NAME.tools those that are needed',
  ]);
}

/** `offered`: the tool names of all servers; this server's are added. */
async function checkMcp(server: ServerSettings, config: Config, offered: string[]): Promise<Finding[]> {
  const { checkServer } = await import('./mcp/connection.js');
  const checked = await checkServer(server, {
    version: 'doctor',
    outward: createOutward(config.network.proxies),
    reach: await createReachOf(config),
    clock: systemClock,
    log,
    redact: createRedactor(secretsOf(config)),
  });
  if (checked.state === 'failed') return [checked];
  offered.push(...checked.tools);
  const { tools } = config;
  const allowances = [tools, ...Object.values(tools.chats), ...Object.values(tools.channels)];
  const isAllowed = allowances.some(({ allow }) => allow.includes('mcp'));
  const unused = isAllowed ? [] : ['no chat has its tools: add mcp to tools.allow, or to that of a chat'];
  return [ok(checked.text), ...cautions([...checked.remarks, ...unused])];
}

function ok(text: string): Finding {
  return { state: 'ok', text };
}

function cautions(texts: readonly string[]): Finding[] {
  return texts.map((text) => ({ state: 'warning', text }));
}

function failures(texts: readonly string[]): Finding[] {
  return texts.map((text) => ({ state: 'failed', text }));
}

function orOk(findings: readonly string[], text: string): Finding[] {
  return findings.length === 0 ? [ok(text)] : cautions(findings);
}
