/**
 * Wires all parts together: a list, no logic. What a run does not need is not loaded, so that a gateway can answer its
 * first message half a second after its start.
 */
import { randomInt, randomUUID } from 'node:crypto';
import { homedir, userInfo } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CHANNELS } from './channels/list.js';
import type { Config } from './config.js';
import { announceCommands } from './conversation/announce.js';
import { createConversation } from './conversation/conversation.js';
import { createDeliver } from './conversation/deliver/deliver.js';
import { postReaction } from './conversation/deliver/react.js';
import { postSideMessage } from './conversation/deliver/say.js';
import { toolSet } from './conversation/turn/tools.js';
import type { Media } from './core/attachments.js';
import type { Channel } from './core/channel.js';
import { systemClock } from './core/clock.js';
import { createZone } from './core/dates.js';
import type { Embedder } from './core/embedder.js';
import { Fault } from './core/errors.js';
import type { Log, Metrics } from './core/log.js';
import type { ModelClient } from './core/model.js';
import type { Store } from './core/store.js';
import type { AnyTool, ToolsFor, TurnKind } from './core/tool.js';
import { createGateway, type Gateway } from './gateway.js';
import { createArchives } from './groups/archive-files.js';
import { createChatFiles } from './groups/chat-files.js';
import { locks } from './groups/locks.js';
import { createMemory } from './groups/memory.js';
import { createPersonas } from './groups/personas.js';
import { createRecallFiles } from './groups/recall-files.js';
import { createMediaFiles } from './media/files.js';
import { createImageDecoder } from './media/image-child.js';
import { createImages } from './media/images.js';
import { createMedia } from './media/media.js';
import { mediaBytes, trimMedia } from './media/retention.js';
import type { OpenAiModelOptions } from './models/openai.js';
import { collectSooner } from './operating/heap.js';
import { createMetrics } from './operating/metrics.js';
import { createSizes, sizeGauges } from './operating/sizes.js';
import { startUpkeep } from './operating/upkeep.js';
import { createPlatforms } from './platforms.js';
import { createRecall } from './recall/recall.js';
import { openSqliteStore } from './store/sqlite/open.js';
import { draftTools, memoryTools } from './tools/memory.js';
import { react } from './tools/react.js';
import { searchMemory } from './tools/search-memory.js';
import { sendMessage } from './tools/send-message.js';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const HOUR_MS = 3_600_000;

export interface Wishes {
  config: Config;
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
}

export interface TerminalWishes {
  interactive: boolean;
  onEnd(failure: unknown): void;
  /** Lets the prompt take over log output, so that log lines do not disturb what is being typed. */
  lendTo(interject: (write: () => void) => void): void;
}

export function mediaFolderOf({ dataDir }: Pick<Config, 'dataDir'>): string {
  return join(dataDir, 'media');
}

export function openStore(
  config: Config,
  log: Log,
  file = join(config.dataDir, 'coterie.db'),
): Promise<Store> {
  return openSqliteStore({
    file,
    migrationsFolder: join(ROOT, 'migrations/sqlite'),
    clock: systemClock,
    log,
  });
}

export async function compose({
  config,
  log,
  version,
  terminal,
  platforms,
  show,
  owner,
}: Wishes): Promise<Gateway> {
  const clock = systemClock;
  const newId = randomUUID;
  const metrics = createMetrics();
  const { groupsDir } = config;
  const mediaFolder = mediaFolderOf(config);
  const store = await openStore(config, log);
  const zone = createZone(config.timezone);
  const exclusive = locks();
  const memory = createMemory({
    groupsDir,
    budgets: config.memory,
    versions: store,
    exclusive,
    clock,
    newId,
    log,
  });
  const archives = createArchives({ groupsDir, zone, exclusive, log });
  const personas = createPersonas({ groupsDir, clock, log });
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
    files: createRecallFiles({ groupsDir, archives, log }),
  });
  const serving = platforms ? await createPlatforms(config, { store, personas, log, show }) : [];
  const channels = new Map(serving.map((channel) => [channel.name, channel]));
  if (terminal) {
    channels.set('terminal', await createTerminalChannel(config, terminal, log));
  }

  const media = await createMediaOf(config, mediaFolder, log);
  const sizes = createSizes({ store, mediaBytes: () => mediaBytes(mediaFolder), clock });
  const settings = {
    maxOutputTokens: config.model.maxOutputTokens,
    maxToolRounds: config.model.maxToolRounds,
    choices: config.model.choices,
    ...config.conversation,
    natural: config.personas.natural,
    caps: { rounds: config.personas.maxRounds, replies: config.personas.maxReplies },
    announce: config.memory.announce ?? null,
    // The offline model could only spoil it.
    consolidation:
      config.memory.consolidate && config.model.server !== null
        ? { tokens: config.memory.consolidateTokens, memoryChars: config.memory.longTermMaxChars }
        : null,
    maxAgeMs: config.delivery.maxAgeHours * HOUR_MS,
  };
  const rulesFor = (channel: string) => optionsOf(config, channel).access;
  const speech = await createSpeechOf(config, log);
  const deliver = createDeliver({
    ...{ store, owner, channels, chatFiles, speech },
    ...{ rulesFor, settings, clock, log, metrics },
  });
  const reaction = react({
    post: (asked) => postReaction({ store, channels, personas, clock, settings, deliver }, asked),
    emojiOn: (channel) => channels.get(channel)?.reactions,
  });
  const mayReact: MayReact = ({ channel, chatKind }) =>
    channels.get(channel)?.react !== undefined &&
    (config.tools.reactions === 'everywhere' ||
      (config.tools.reactions === 'groups' && chatKind === 'group'));
  const conversation = createConversation({
    store,
    owner,
    channels,
    deliver,
    personas,
    chatFiles,
    memory,
    archives,
    recall,
    model,
    media,
    speech,
    toolsFor: toolsOf(
      memoryTools(memory),
      [
        searchMemory(recall, zone),
        sendMessage({
          groupsDir,
          mediaFolder,
          post: (aside) => postSideMessage({ store, channels, deliver, personas, clock }, aside),
        }),
      ],
      reaction,
      mayReact,
    ),
    settings,
    rulesFor,
    labelOf: (channel) => CHANNELS.find(({ name }) => name === channel)?.label ?? 'the terminal',
    streams: (channel) => optionsOf(config, channel).streaming !== 'off',
    zone,
    clock,
    newId,
    newPairingCode,
    log,
    metrics,
    facts: { version, model: config.model.server?.name ?? 'offline', startedAt: clock.now() },
    sizes,
  });

  const board = async () => {
    const { startBoard } = await import('./board/listener.js');
    const listener = await startBoard({
      ...config.board,
      // Leaving the prompt does not make the gateway unready.
      ready: () => Object.fromEntries(serving.map((channel) => [channel.name, channel.status()])),
      metrics: async () => ({
        body: await metrics.render(sizeGauges(await sizes())),
        contentType: metrics.contentType,
      }),
      webhook: serving.find(({ webhook }) => webhook !== undefined)?.webhook,
      log,
    });
    return listener.close;
  };

  const upkeep = async () => {
    const { days, mediaBytes: bytes, mediaBytesPerChat: bytesPerChat } = config.retention;
    return startUpkeep({
      store,
      days,
      removeFiles: media.remove,
      trimMedia: (signal) => trimMedia(mediaFolder, { bytes, bytesPerChat }, clock.now(), signal),
      consolidate: conversation.consolidate,
      zone,
      clock,
      log,
    });
  };

  return createGateway({
    store,
    owner,
    channels,
    conversation,
    clock,
    log,
    background: [
      async () => {
        void chatFiles.prepare();
        return async () => {};
      },
      ...(platforms ? [board, upkeep] : []),
      async () => announceCommands({ channels, store, clock, log }),
      async () => {
        conversation.takeUpWindows([...channels.keys()]);
        recall.start();
        return async () => {
          await recall.stop();
          await embedder?.close();
        };
      },
      async () => {
        void speech?.tidy();
        return async () => {};
      },
      async () => {
        const letGo = collectSooner();
        return async () => letGo();
      },
    ],
    shutdownMs: config.shutdownSeconds * 1000,
  });
}

/** Without access rules of its own, a channel would admit nobody. */
function optionsOf({ channels }: Config, name: string) {
  const configured = { ...channels }[name as keyof Config['channels']];
  if (!configured)
    throw new Fault('internal', `channel ${name} is not configured, but a message came from it`);
  return configured;
}

/** Images, voice notes, documents. Their readers are loaded when the first one arrives. */
async function createMediaOf(config: Config, folder: string, log: Log): Promise<Media> {
  const files = createMediaFiles({ folder, newId: randomUUID });
  const { transcription, media } = config;
  const transcriber = transcription
    ? (await import('./models/transcription.js')).createTranscriber({
        server: transcription,
        timeoutSeconds: config.model.timeoutSeconds,
        log,
      })
    : null;
  return createMedia({
    files,
    transcriber,
    log,
    clock: systemClock,
    maxBytes: media.maxBytes,
    images: createImages({ log, decoder: createImageDecoder(systemClock) }),
  });
}

/** Voice notes out. null if nothing is configured. */
export async function createSpeechOf({ speech, dataDir }: Config, log: Log) {
  if (speech === null) return null;
  const { createSpeaker } = await import('./models/speaking.js');
  const { createSpeech } = await import('./speech/speech.js');
  return createSpeech({
    speaker: createSpeaker(speech),
    options: speech.options,
    folder: join(dataDir, 'speech'),
    clock: systemClock,
    newId: randomUUID,
    log,
  });
}

/** null if `embeddings.backend` is off. */
export async function createEmbedder(config: Config, metrics: Metrics, log: Log): Promise<Embedder | null> {
  const { backend, baseUrl, apiKey, model, redisUrl, queue } = config.embeddings;
  if (backend === 'off' || model === null) return null;
  const { timeoutSeconds, queryPrefix, documentPrefix, dimensions } = config.embeddings;
  const recipe = { model, queryPrefix, documentPrefix, dimensions };
  const common = { ...recipe, timeoutSeconds, clock: systemClock, log, newId: randomUUID };
  if (backend === 'http' && baseUrl !== null) {
    const { createHttpEmbedder } = await import('./embedding/server.js');
    return createHttpEmbedder({ ...common, baseUrl, apiKey });
  }
  if (backend === 'redis' && redisUrl !== null) {
    const { createRedisEmbedder } = await import('./embedding/requester.js');
    return createRedisEmbedder({ ...common, redisUrl, queue, metrics });
  }
  return null;
}

export async function createModel(config: Config, store: Store, log: Log): Promise<ModelClient> {
  const { server, fallbacks, choices, maxOutputTokens, timeoutSeconds } = config.model;
  if (!server) return (await import('./models/offline.js')).createOfflineModel();
  const { createOpenAiModel } = await import('./models/openai.js');
  const { withFallbacks } = await import('./models/fallbacks.js');
  const { createAskJson } = await import('./models/ask-json.js');
  const { createWindowStore } = await import('./models/context-window.js');
  const stored = (name: string) => ({
    load: () => store.setting(name),
    save: (value: string) => store.setSetting(name, value),
  });
  const quirks = stored('model.quirks');
  const windows = createWindowStore(stored('model.windows'), systemClock, log);
  await windows.loaded();
  const client = (each: OpenAiModelOptions['server'], contextTokens: OpenAiModelOptions['contextTokens']) =>
    createOpenAiModel({
      server: each,
      contextTokens,
      windows,
      askServer: createAskJson(each, systemClock),
      images: config.model.images,
      maxOutputTokens,
      timeoutSeconds,
      answerBytes: config.limits.answerBytes,
      clock: systemClock,
      log,
      quirks,
    });
  const first = client(
    server,
    (name) => choices.find((choice) => choice.name === name)?.contextTokens ?? config.model.contextTokens,
  );
  const others = fallbacks.map((each) => client(each, () => each.contextTokens ?? null));
  return withFallbacks(first, others, log);
}

async function createTerminalChannel(config: Config, wishes: TerminalWishes, log: Log): Promise<Channel> {
  const { createTerminal } = await import('./channels/terminal/channel.js');
  const terminal = createTerminal({
    input: process.stdin,
    output: process.stdout,
    interactive: wishes.interactive,
    colours: process.stdout.isTTY === true && process.stdout.hasColors(),
    userName: userName(),
    historyFile: join(config.dataDir, 'terminal-history'),
    clock: systemClock,
    newId: randomUUID,
    log,
    onEnd: wishes.onEnd,
  });
  wishes.lendTo(terminal.interject);
  return terminal;
}

/** A container may run as a user without a name. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return homedir().split(/[/\\]/).at(-1) || 'you';
  }
}

type MayReact = (turn: Pick<TurnKind, 'channel' | 'chatKind'>) => boolean;

/**
 * Selects a turn's tools: a memory flush gets the memory tools, every other turn all, but for reactions where there are
 * none; those of a draft write into it.
 */
function toolsOf(memory: AnyTool[], others: AnyTool[], reaction: AnyTool, mayReact: MayReact): ToolsFor {
  const forFlushes = toolSet(memory);
  const forAnswers = toolSet([...memory, ...others]);
  const withReactions = toolSet([...memory, ...others, reaction]);
  return ({ kind, draft, ...turn }) => {
    if (draft) return toolSet(draftTools(draft));
    if (kind === 'flush') return forFlushes;
    return mayReact(turn) ? withReactions : forAnswers;
  };
}

/** 8 upper-case letters without I and O, which look like digits. */
function newPairingCode(): string {
  const letters = 'ABCDEFGHJKLMNPQRSTUVWXYZ';
  return Array.from({ length: 8 }, () => letters[randomInt(letters.length)]).join('');
}
