/**
 * Creates the parts of a gateway in dependency order: store, files, servers, channels. Unused parts are not loaded, so
 * that a gateway can answer its first message half a second after its start.
 */

import { randomInt, randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { createArtifacts } from './artifacts/artifacts.js';
import type { BoardOptions } from './board/listener.js';
import { isCardFile, readCardFile } from './cards/read.js';
import { plainPng, writeCard } from './cards/write.js';
import { createExports } from './chat-export/export.js';
import { type Config, type From, type LoadedConfig, modelsOf } from './config.js';
import { createPatterns } from './conversation/lore/patterns.js';
import { createScanner } from './conversation/lore/scan.js';
import { createJobAccess } from './conversation/rights.js';
import { BOARD } from './core/board.js';
import type { Cards, SentCards } from './core/cards.js';
import type { Channel } from './core/channel.js';
import type { Archives } from './core/chat-record.js';
import { systemClock } from './core/clock.js';
import type { Exclusive } from './core/concurrency.js';
import { createZone, type Zone } from './core/dates.js';
import type { Fault } from './core/errors.js';
import { made } from './core/file-access.js';
import { uniqueId } from './core/ids.js';
import type { Audit } from './core/journal.js';
import type { Log } from './core/log.js';
import { channelLease, type Leases, soleLeases, type Wish } from './core/node.js';
import type { Portraits } from './core/persona.js';
import type { Embedder } from './core/recall.js';
import type { Store } from './core/store.js';
import { createCollector } from './core/v8.js';
import { createArchives } from './groups/archives.js';
import { createCards } from './groups/cards.js';
import { createChatFiles } from './groups/chat-files.js';
import { createClipboard } from './groups/clipboard.js';
import { createLorebooks } from './groups/lorebooks.js';
import { createMemory } from './groups/memory.js';
import { createPersonas } from './groups/personas.js';
import { createPortraits } from './groups/portraits.js';
import { createRecallFiles } from './groups/recall-files.js';
import { createAlarm } from './jobs/clock.js';
import { createJobs } from './jobs/jobs.js';
import { createJournal } from './journal/journal.js';
import { createMediaFiles, mediaBytes } from './media/files.js';
import { createImageDecoder, createImages, toFace, toPng } from './media/images.js';
import { createMedia } from './media/media.js';
import { secretsIn } from './models/redact.js';
import { takeLock } from './operating/lock.js';
import type { LogTail } from './operating/log.js';
import { type createMetrics, createSizes, minutely } from './operating/metrics.js';
import { guarded, type Node, type TermEnd } from './operating/node.js';
import { createPulse } from './operating/pulse.js';
import { createRedactor } from './operating/redact.js';
import { fileLocksOf, foldersOf, nodeFolderOf, SQLITE_MIGRATIONS, storeOf } from './paths.js';
import { createBoard, createLinks, createPlatforms, PLATFORMS } from './platforms.js';
import { createRecall } from './recall/recall.js';
import { Records } from './replay/records.js';
import { secretsOf } from './secrets.js';
import {
  createEmbedder,
  createMcp,
  createModel,
  createSpeechOf,
  createStream,
  createTranscriberOf,
} from './servers.js';
import { channelSettingsOf, settingsOf } from './settings.js';
import { createSkills, systemHost } from './skills/skills.js';
import { openSqliteStore, openStoreAt } from './store/open.js';
import type { StoreReports } from './store/outage.js';
import { createTracing } from './tracing.js';
import { createAgents } from './workspace/agents.js';
import { withWorkspace } from './workspace/recall-files.js';
import { createPromptFiles } from './workspace/shown.js';
import { createWorkspace } from './workspace/workspace.js';

const clock = systemClock;
const CODE_LETTERS = 'ABCDEFGHJKLMNPQRSTUVWXYZ';

export interface GatewayOptions {
  config: Config;
  /** Where the configuration is read from. */
  from: From;
  /** The configuration file's path; null: all defaults. */
  configFile: string | null;
  /** For the page that shows it. */
  keys: LoadedConfig['keys'];
  warnings: string[];
  /** The newest lines of the log. */
  tail: LogTail;
  audit: Audit;
  log: Log;
  told: StoreReports & { metrics: ReturnType<typeof createMetrics> };
  version: string;
  /** null: no terminal chat. */
  terminal: Channel | null;
  /** Prints to the terminal, for example a QR code. */
  show(picture: string): void;
  /** Answers on the HTTP listener. Resolves to the function that ends this. */
  serve(board: BoardOptions): Promise<() => Promise<void>>;
  /** Takes in the configuration file, which was changed: another gateway takes the place of this one. */
  takeIn(): void;
  /** True: the configured platforms and the HTTP listener; false: only the terminal chat. */
  platforms: boolean;
  /** Among other gateways of the store; null: there are none. */
  node: Node | null;
  /** The gateway's term among the others is over: its work has to end. */
  onTermOver(end: TermEnd): void;
  /** The lease owner in the store. It belongs to this process's lock, so no other living process has it. */
  owner: string;
  /** The database is lost: its file was moved away, or its server is away for too long. The run has to end. */
  onLost(fault: Fault): void;
}

export type Parts = Awaited<ReturnType<typeof createParts>>;

export function openStore(
  config: Config,
  log: Log,
  more?: { told: StoreReports; onLost(fault: Fault): void },
): Promise<Store> {
  return openStoreAt(storeOf(config), { ...storeOptions(config, log), ...more });
}

/** A SQLite file, whatever the configuration says. */
export function openFile(config: Config, log: Log, file: string): Promise<Store> {
  return openSqliteStore({ ...storeOptions(config, log), file, migrationsFolder: SQLITE_MIGRATIONS });
}

function storeOptions(config: Config, log: Log) {
  return { clock, zone: createZone(config.timezone), log };
}

function jobRulesOf({ schedules }: Config, zone: Zone) {
  return {
    ...schedules,
    // The system's time zone may change while the gateway runs.
    get timezone() {
      return zone.name;
    },
  };
}

export async function createParts(options: GatewayOptions) {
  const { config, audit, log, version, owner } = options;
  const { told, onLost } = options;
  const store = await openStore(config, log, { told, onLost });
  const zone = createZone(config.timezone);
  const newId = () => uniqueId(clock.now());
  const { metrics } = told;
  const clean = createRedactor([...secretsOf(config), ...secretsIn(process.env)]);
  const files = createFiles(config, store, zone, newId, clean, log);
  const { personas, portraits, archives } = files;
  const embedder = await createEmbedder(config, metrics, log);
  const recall = await createRecallOf(config, store, archives, embedder, zone, log);
  const links = createLinks();
  const share = shareOf(config, options);
  const { leases } = share;
  const lent = { store, ...share, personas, portraits, audit, log, show: options.show, linking: links.show };
  const platforms = options.platforms ? await createPlatforms(config, lent) : [];
  const desk = options.platforms ? createBoard(config) : null;
  const serving = platforms.map((each) => guarded(each, () => leases.holds(channelLease(each.name))));
  const own = [desk, options.terminal].filter((channel) => channel !== null);
  const channels = new Map([...serving, ...own].map((channel) => [channel.name, channel]));
  const { rulesFor, labelOf, streams } = channelSettingsOf(config);
  const jobRules = jobRulesOf(config, zone);
  const door = createJobAccess({ store, rulesFor });
  const alarm = createAlarm();
  const startedAt = clock.now();
  return {
    ...files,
    options,
    config,
    store,
    owner,
    audit,
    log,
    clock,
    zone,
    newId,
    newPairingCode,
    newCallCode,
    metrics,
    tracing: await createTracing(config, version, log),
    redact: clean,
    links,
    channels,
    /** The channel of the page; null without the HTTP listener. */
    desk,
    rulesFor,
    labelOf,
    streams,
    ...share,
    /** Platforms only; `channels` also has the page and the terminal. */
    serving,
    leased: new Set([...platforms, ...(desk ? [desk] : [])].map(({ name }) => name)),
    scanner: createScanner(createPatterns(clock, log), Math.random),
    settings: settingsOf(config),
    model: await createModel(config, store, log),
    speech: await createSpeechOf(config, log),
    mcp: await createMcp(config, version, log),
    embedder,
    recall,
    alarm,
    door,
    jobRules,
    jobs: createJobs({ store, door, rules: jobRules, clock, newId, alarm }),
    media: await createMediaOf(config, log),
    journal: await createJournalOf(config, store, clean, log),
    records: recordsOf(config, log),
    exports: createExports({ folder: foldersOf(config).exports, feed: store, personas, zone, clock }),
    pulse: createPulse(store, clock),
    backlog: minutely(() => store.counts(), clock),
    sizes: createSizes(store, () => mediaBytes(foldersOf(config).media), clock),
    startedAt,
    facts: { version, model: config.model.server?.name ?? 'offline', startedAt },
  };
}

/** This gateway's share of the work among those on one store. */
function shareOf(config: Config, { node, onTermOver: over }: GatewayOptions) {
  const wish = wishOf(config);
  const leases: Leases =
    node === null
      ? soleLeases(wish.leases, clock.now)
      : {
          ...node,
          begin: (taken) => node.begin({ wish, taken, over }),
          want(lease) {
            wish.leases.push(lease);
            wish.shared.push(lease);
          },
        };
  const mine = new Set<string>();
  /** The other gateway that has this channel. */
  const heldBy = (channel: string) => (mine.has(channel) ? null : leases.heldBy(channelLease(channel)));
  return { wish, leases, storeNow: leases.now, spread: node !== null, mine, heldBy };
}

/** The leases of a gateway with these `node.roles`. The page's chats cost little, so they count for no share. */
function wishOf({ channels, node: { roles } }: Config): Wish {
  const shared = roles.includes('channels')
    ? PLATFORMS.filter((name) => channels[name] !== null).map(channelLease)
    : [];
  const turns = roles.includes('turns') ? [channelLease(BOARD)] : [];
  const jobs = roles.includes('jobs') ? ['jobs', 'journal', 'upkeep'] : [];
  return { leases: [...shared, ...turns, ...jobs], shared };
}

async function createRecallOf(
  config: Config,
  store: Store,
  archives: Archives,
  embedder: Embedder | null,
  zone: Zone,
  log: Log,
) {
  // The index is derived, and a machine's own.
  const folder = config.store.url === null ? config.dataDir : await made(nodeFolderOf(config));
  const files = withWorkspace(createRecallFiles(config.groupsDir, archives, log), {
    folder: foldersOf(config).workspace,
    log,
  });
  const file = join(folder, 'recall.db');
  return createRecall({ file, feed: store, embedder, clock, zone, log, files });
}

function recordsOf(config: Config, log: Log): Records {
  const { replayBytes: bytes, days } = config.retention;
  const clean = createRedactor(secretsOf(config));
  return new Records({ folder: foldersOf(config).records, bytes, days, clean, clock, log });
}

const CARD_FORMAT = { isCard: isCardFile, read: readCardFile, write: writeCard, plainPng };

function sentCardsOf(config: Config, log: Log, exclusive: Exclusive): SentCards {
  const cards = cardsOf(config, log, exclusive);
  const { read } = createMediaFiles({ folder: foldersOf(config).media, newId: randomUUID });
  return {
    isCard: async (file) => CARD_FORMAT.isCard(await read(file)),
    import: async (ask) => cards.import({ ...ask, file: await read(ask.file) }),
  };
}

export function cardsOf(config: Config, log: Log, exclusive = fileLocksOf(config)): Cards {
  // Portraits are mostly PNG: the process for others starts with the first of them.
  const decoder = createImageDecoder(clock);
  return createCards({
    groupsDir: config.groupsDir,
    format: CARD_FORMAT,
    toPng: (picture) => toPng(decoder, picture),
    mostInChat: config.limits.personasPerChat,
    windowTokens: config.model.contextTokens,
    models: modelsOf(config),
    exclusive,
    clock,
    log,
  });
}

function portraitsOf(groupsDir: string, log: Log): Portraits {
  const decoder = createImageDecoder(clock);
  return createPortraits({ groupsDir, toFace: (picture) => toFace(decoder, picture), log });
}

async function createMediaOf(config: Config, log: Log) {
  return createMedia({
    files: createMediaFiles({ folder: foldersOf(config).media, newId: randomUUID }),
    transcriber: await createTranscriberOf(config, log),
    log,
    clock,
    maxBytes: config.media.maxBytes,
    freed: createCollector(),
    images: createImages({ log, decoder: createImageDecoder(clock) }),
  });
}

async function createJournalOf(config: Config, store: Store, redact: (text: string) => string, log: Log) {
  return createJournal({
    store,
    folder: config.dataDir,
    days: config.retention.days,
    stream: await createStream(config, store, redact),
    take: () => takeLock(join(config.dataDir, 'journal.lock')),
    redact,
    clock,
    log,
  });
}

/** The files of people and agents. */
function createFiles(
  config: Config,
  store: Store,
  zone: Zone,
  newId: () => string,
  clean: (text: string) => string,
  log: Log,
) {
  const { groupsDir } = config;
  const folders = foldersOf(config);
  const exclusive = fileLocksOf(config);
  const budgets = { ...config.memory, tierBytes: config.limits.tierBytes };
  const shared = { budgets, exclusive, origins: store, log };
  const workspace = createWorkspace({ folder: folders.workspace, ...shared });
  const agents = createAgents({ folder: folders.agents, clean, ...shared });
  const mostInChat = config.limits.personasPerChat;
  return {
    clipboard: createClipboard(folders.clipboard, exclusive, log),
    memory: createMemory({
      groupsDir,
      clipboardDir: folders.clipboard,
      agentsDir: folders.agents,
      budgets,
      versions: store,
      exclusive,
      clock,
      newId,
      log,
    }),
    workspace,
    agents,
    promptFiles: createPromptFiles(workspace, agents, store),
    archives: createArchives(groupsDir, zone, exclusive, log),
    personas: createPersonas({ groupsDir, clock, log, mostInChat, models: modelsOf(config), exclusive }),
    portraits: portraitsOf(groupsDir, log),
    cards: sentCardsOf(config, log, exclusive),
    chatFiles: createChatFiles(groupsDir, store, clock, log, exclusive),
    lorebooks: createLorebooks(groupsDir, log),
    artifacts: createArtifacts({
      folder: folders.artifacts,
      mediaFolder: folders.media,
      mostBytes: config.limits.answerBytes,
      exclusive,
    }),
    skills: createSkills({ folder: folders.skills, ...systemHost(), log }),
  };
}

/** 8 upper-case letters, without I and O, which look like digits. */
function newPairingCode(): string {
  return randomOf(CODE_LETTERS, 8);
}

/** Has no look-alike characters, and begins with a letter: a bare number may mean something else. */
function newCallCode(): string {
  const letters = CODE_LETTERS.replaceAll(/[BGLQSZ]/g, '');
  return randomOf(letters, 1) + randomOf(`${letters}34679`, 5);
}

function randomOf(signs: string, length: number): string {
  return Array.from({ length }, () => signs[randomInt(signs.length)]).join('');
}
