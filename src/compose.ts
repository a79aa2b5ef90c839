/**
 * Wires all parts together: a list, no logic. What a run does not need is not loaded, so that a gateway can answer its
 * first message half a second after its start.
 */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createArtifacts } from './artifacts/artifacts.js';
import { createExports } from './chat-export/files.js';
import { newCallCode, newPairingCode } from './codes.js';
import { type Config, channelSettingsOf, modelsFor, settingsOf } from './config.js';
import { createJobAccess } from './conversation/access.js';
import { type Conversation, createConversation } from './conversation/conversation.js';
import { createDeliver } from './conversation/deliver/deliver.js';
import { announceCommands } from './conversation/receive/commands.js';
import { OVER, systemClock } from './core/clock.js';
import { locks } from './core/concurrency.js';
import { createZone } from './core/dates.js';
import type { Fault } from './core/errors.js';
import { DEFAULT_PERSONA, uniqueIds } from './core/ids.js';
import type { Audit } from './core/journal.js';
import type { Log } from './core/log.js';
import type { Media } from './core/media.js';
import type { Store } from './core/store.js';
import { createGateway, type Gateway } from './gateway.js';
import { createArchives } from './groups/archives.js';
import { createChatFiles } from './groups/chat-files.js';
import { createClipboard } from './groups/clipboard.js';
import { createMemory } from './groups/memory.js';
import { createPersonas } from './groups/personas.js';
import { createRecallFiles } from './groups/recall-files.js';
import { createAlarm, startJobs } from './jobs/clock.js';
import { createJobs } from './jobs/jobs.js';
import { createJournal } from './journal/journal.js';
import { createMediaFiles, mediaBytes, trimMedia } from './media/files.js';
import { createImageDecoder, createImages } from './media/images.js';
import { createMedia } from './media/media.js';
import { secretsIn } from './models/redact.js';
import { createOutward } from './network/outward.js';
import { takeLock } from './operating/lock.js';
import { createRedactor } from './operating/log.js';
import { createMetrics, createSizes, jobGauge, sizeGauges } from './operating/metrics.js';
import { startUpkeep } from './operating/upkeep.js';
import { collectSooner, createCollector } from './operating/v8.js';
import {
  agentsFolderOf,
  artifactsFolderOf,
  clipboardFolderOf,
  exportsFolderOf,
  hiddenFrom,
  mediaFolderOf,
  recordsFolderOf,
  skillsFolderOf,
  workFolderOf,
  workspaceFolderOf,
} from './paths.js';
import { createPlatforms, createTerminalChannel, type TerminalWishes } from './platforms.js';
import { createRecall } from './recall/recall.js';
import { createRecords } from './replay/records.js';
import { secretsOf } from './secrets.js';
import {
  createEmbedder,
  createMcp,
  createModel,
  createSpeechOf,
  createStream,
  createTranscriberOf,
} from './servers.js';
import { createSkills, systemHost } from './skills/skills.js';
import { openSqliteStore } from './store/sqlite/open.js';
import { createDelegating, createTaskParts } from './tasks.js';
import { createToolsFor, createToolsReady } from './turn-tools.js';
import { createAgents } from './workspace/agents.js';
import { withWorkspace } from './workspace/recall-files.js';
import { createPromptFiles } from './workspace/shown.js';
import { createWorkspace } from './workspace/workspace.js';

const DAY_MS = 24 * 60 * 60_000;
const ROOT = fileURLToPath(new URL('..', import.meta.url));

export interface Wishes {
  config: Config;
  /** Where it was read from; null: everything is default. */
  configFile: string | null;
  audit: Audit;
  log: Log;
  version: string;
  /** null: no terminal chat. */
  terminal: TerminalWishes | null;
  /** Prints something to the terminal: a QR code. */
  show(picture: string): void;
  /** Whether to run the configured platforms and the HTTP listener, or only the terminal chat. */
  platforms: boolean;
  /** The lease owner name in the store. It belongs to the lock this process holds, so no other living process has it. */
  owner: string;
  /** The database is not where it was, and what it held is saved: this run has to end. */
  onDisplaced(fault: Fault): void;
}

export function openStore(
  config: Config,
  log: Log,
  file = join(config.dataDir, 'coterie.db'),
  onDisplaced?: (fault: Fault) => void,
): Promise<Store> {
  return openSqliteStore({
    ...(onDisplaced === undefined ? {} : { onDisplaced }),
    file,
    migrationsFolder: join(ROOT, 'migrations/sqlite'),
    clock: systemClock,
    zone: createZone(config.timezone),
    log,
  });
}

export async function compose(wishes: Wishes): Promise<Gateway> {
  const { config, audit, log, version, terminal, platforms, show, owner, onDisplaced } = wishes;
  const clock = systemClock;
  const newId = uniqueIds(clock);
  const metrics = createMetrics();
  const { groupsDir } = config;
  const mediaFolder = mediaFolderOf(config);
  const store = await openStore(config, log, undefined, onDisplaced);
  const zone = createZone(config.timezone);
  const exclusive = locks();
  const clipboardDir = clipboardFolderOf(config);
  const clipboard = createClipboard({ folder: clipboardDir, exclusive, log });
  const budgets = { ...config.memory, tierBytes: config.limits.tierBytes };
  const memory = createMemory({
    groupsDir,
    clipboardDir,
    agentsDir: agentsFolderOf(config),
    budgets,
    versions: store,
    exclusive,
    clock,
    newId,
    log,
  });
  const files = { budgets, exclusive, origins: store, log };
  const workspace = createWorkspace({ folder: workspaceFolderOf(config), ...files });
  const archives = createArchives({ groupsDir, zone, exclusive, log });
  const mostInChat = config.limits.personasPerChat;
  const personas = createPersonas({ groupsDir, clock, log, mostInChat, ...modelsFor(config) });
  const chatFiles = createChatFiles({ groupsDir, store, clock, log });
  const model = await createModel(config, store, log);
  const embedder = await createEmbedder(config, metrics, log);
  const recall = createRecall({
    file: join(config.dataDir, 'recall.db'),
    feed: store,
    embedder,
    clock,
    zone,
    log,
    files: withWorkspace(createRecallFiles({ groupsDir, archives, log }), {
      ...{ folder: workspaceFolderOf(config), log },
    }),
  });
  const serving = platforms ? await createPlatforms(config, { store, personas, audit, log, show }) : [];
  const channels = new Map(serving.map((channel) => [channel.name, channel]));
  if (terminal) {
    channels.set('terminal', await createTerminalChannel(config, terminal, log));
  }

  const clean = createRedactor([...secretsOf(config), ...secretsIn(process.env)]);
  const agents = createAgents({ folder: agentsFolderOf(config), clean, ...files });
  const promptFiles = createPromptFiles({ workspace, agents, origins: store });
  const journal = createJournal({
    store,
    redact: clean,
    clock,
    log,
    folder: config.dataDir,
    days: config.retention.days,
    stream: await createStream(config, store, clean),
    take: () => takeLock(join(config.dataDir, 'journal.lock')),
  });
  const media = await createMediaOf(config, mediaFolder, log);
  const sizes = createSizes({ store, mediaBytes: () => mediaBytes(mediaFolder), clock });
  const records = createRecords({
    folder: recordsFolderOf(config),
    bytes: config.retention.replayBytes,
    days: config.retention.days,
    clean: createRedactor(secretsOf(config)),
    clock,
    log,
  });
  const exports = createExports({ folder: exportsFolderOf(config), feed: store, personas, zone, clock });
  const artifacts = createArtifacts({
    folder: artifactsFolderOf(config),
    mediaFolder,
    mostBytes: config.limits.answerBytes,
    exclusive,
  });
  const skills = createSkills({ folder: skillsFolderOf(config), ...systemHost(), log });
  const settings = settingsOf(config);
  const { rulesFor, labelOf, streams } = channelSettingsOf(config);
  const startedAt = clock.now();
  const alarm = createAlarm();
  const jobRules = {
    ...config.schedules,
    get timezone() {
      return zone.name;
    },
  };
  const door = createJobAccess({ store, rulesFor });
  const jobs = createJobs({ store, door, rules: jobRules, clock, newId, alarm });
  const speech = await createSpeechOf(config, log);
  const mcp = await createMcp(config, version, log);
  const base = {
    store,
    owner,
    channels,
    personas,
    chatFiles,
    memory,
    clipboard,
    workspace,
    archives,
    recall,
    model,
    media,
    journal,
    speech,
    audit,
    records,
    exports,
    artifacts,
    skills,
    jobs,
    settings,
    rulesFor,
    labelOf,
    streams,
    zone,
    clock,
    newId,
    newPairingCode,
    newCallCode,
    clean,
    log,
    metrics,
    facts: { version, model: config.model.server?.name ?? 'offline', startedAt },
    sizes,
  };
  const deliver = createDeliver(base);
  const toolsFor = createToolsFor({
    ...base,
    config,
    mcp,
    deliver,
    exports,
    artifacts,
    mediaFolder,
    workFolder: workFolderOf(config),
    workspaceFolder: workspaceFolderOf(config),
    skillsFolder: skillsFolderOf(config),
    agents,
    promptFiles,
    hidden: hiddenFrom(config, wishes.configFile),
    environment: process.env,
    outward: createOutward(config.network.proxies),
    delegation: createDelegating({ store, agents, clock, newId }),
  });
  const conversation: Conversation = createConversation({
    ...base,
    deliver,
    toolsFor,
    ...(mcp === null ? {} : { toolsReady: createToolsReady(config.tools, mcp) }),
  });

  const tasks = createTaskParts({
    ...{
      config,
      store,
      owner,
      agents,
      workspace,
      artifacts,
      skills,
      clipboard,
      toolsFor,
      personas,
      rulesFor,
    },
    ...{ conversation, channels: [...channels.keys()], takesPrograms: platforms },
    ...{ zone, clock, log, newId },
  });

  const board = async () => {
    const { startBoard } = await import('./board/listener.js');
    const listener = await startBoard({
      ...config.board,
      // Leaving the prompt does not make the gateway unready.
      ready: () => Object.fromEntries(serving.map((channel) => [channel.name, channel.status()])),
      metrics: async () => ({
        body: await metrics.render([...sizeGauges(await sizes()), jobGauge(await store.jobStates())]),
        contentType: metrics.contentType,
      }),
      webhook: serving.find(({ webhook }) => webhook !== undefined)?.webhook,
      ...{ tasks: await tasks.forPrograms(), workspace, artifacts, log },
    });
    return listener.close;
  };

  const upkeep = async () => {
    const { days, mediaBytes: bytes, mediaBytesPerChat: bytesPerChat } = config.retention;
    return startUpkeep({
      store,
      days,
      removeFiles: media.remove,
      trimCopies: async (signal) => {
        await records.trim(signal);
        await exports.tidy();
        if (days !== 'never') await agents.removeSessions(clock.now() - days * DAY_MS, signal);
      },
      trimMedia: (signal) => trimMedia(mediaFolder, { bytes, bytesPerChat }, clock.now(), signal),
      consolidate: conversation.consolidate,
      zone,
      clock,
      log,
    });
  };

  const digests = async () => {
    const { every, chats } = config.digests;
    if (every === null || chats.length === 0) return async () => {};
    const over = new AbortController();
    const running = conversation.digests({ everyMs: durationMs(every), chats }, over.signal);
    return async () => {
      over.abort(OVER);
      await running;
    };
  };

  return createGateway({
    store,
    owner,
    channels,
    conversation,
    tasks,
    clock,
    log,
    prepare: serving.map(({ name }) => () => {
      // Describing the tools to a model takes time once; the set is kept.
      toolsFor({
        ...{ kind: 'answer', channel: name, chatKind: 'direct', chatId: '', personaId: DEFAULT_PERSONA },
        ...{ senderId: '', allowed: null },
      });
    }),
    background: [
      async () => {
        mcp?.start();
        return async () => mcp?.stop();
      },
      async () => {
        void chatFiles.prepare();
        void speech?.tidy();
        return async () => {};
      },
      async () => {
        await journal.start();
        return journal.stop;
      },
      ...(platforms ? [board, upkeep, digests] : []),
      async () =>
        startJobs(
          {
            ...{
              store,
              rooms: conversation,
              door,
              personas,
              channels: [...channels.keys()],
              rules: jobRules,
            },
            ...{ alarm, clock, log, metrics },
          },
          startedAt,
        ),
      async () => announceCommands({ channels, store, clock, log }),
      async () => {
        conversation.takeUpWindows([...channels.keys()]);
        recall.start();
        return async () => {
          await recall.stop();
          await embedder?.close();
        };
      },
      async () => records.idle,
      async () => {
        const letGo = collectSooner();
        return async () => letGo();
      },
    ],
    shutdownMs: config.shutdownSeconds * 1000,
  });
}

/** `6h` */
function durationMs(duration: string): number {
  const minutes = { m: 1, h: 60, d: 24 * 60 }[duration.slice(-1)] ?? 1;
  return Number.parseInt(duration, 10) * minutes * 60_000;
}

/** Images, voice notes, documents. Their readers are loaded when the first one arrives. */
async function createMediaOf(config: Config, folder: string, log: Log): Promise<Media> {
  const files = createMediaFiles({ folder, newId: randomUUID });
  return createMedia({
    files,
    transcriber: await createTranscriberOf(config, log),
    log,
    clock: systemClock,
    maxBytes: config.media.maxBytes,
    freed: createCollector(),
    images: createImages({ log, decoder: createImageDecoder(systemClock) }),
  });
}
