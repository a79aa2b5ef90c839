/**
 * What wires every part: a list, no logic. What a run does not need is not loaded, because a gateway should
 * answer its first message half a second after it was started.
 */
import { randomInt, randomUUID } from 'node:crypto';
import { homedir, userInfo } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { toJSONSchema } from 'zod';
import type { Config } from './config.js';
import { announceCommands } from './conversation/announce.js';
import { createConversation } from './conversation/conversation.js';
import type { Channel } from './core/channel.js';
import { systemClock } from './core/clock.js';
import { createZone } from './core/dates.js';
import type { Log } from './core/log.js';
import type { ModelClient } from './core/model.js';
import type { Store } from './core/store.js';
import type { AnyTool } from './core/tool.js';
import { createGateway, type Gateway } from './gateway.js';
import { createChatFiles } from './groups/chat-files.js';
import { createMemory } from './groups/memory.js';
import { createPersonas } from './groups/personas.js';
import { createMetrics } from './operating/metrics.js';
import { openSqliteStore } from './store/sqlite/open.js';
import { memoryTools } from './tools/memory.js';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const HOUR_MS = 3_600_000;

export interface Wishes {
  config: Config;
  log: Log;
  version: string;
  /** null: no terminal chat. */
  terminal: TerminalWishes | null;
  /** Whether the configured platforms and the HTTP listener run, or the terminal chat alone. */
  platforms: boolean;
}

export interface TerminalWishes {
  interactive: boolean;
  onEnd(failure: unknown): void;
  /** How the log may write beside what is being typed. */
  lendTo(interject: (write: () => void) => void): void;
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

export async function compose({ config, log, version, terminal, platforms }: Wishes): Promise<Gateway> {
  const clock = systemClock;
  const newId = randomUUID;
  const metrics = createMetrics();
  const { groupsDir } = config;
  const store = await openStore(config, log);
  const memory = createMemory({ groupsDir, budgets: config.memory, log });
  const personas = createPersonas({ groupsDir, clock, log });
  const chatFiles = createChatFiles({ groupsDir, log });
  const model = await createModel(config, store, log);
  const tools = memoryTools(memory);

  const channels = new Map<string, Channel>();
  const add = <Made extends Channel>(channel: Made): Made => {
    channels.set(channel.name, channel);
    return channel;
  };
  const telegram =
    platforms && config.channels.telegram ? add(await createTelegramChannel(config, store, log)) : null;
  if (terminal) add(await createTerminalChannel(config, terminal, log, () => conversation.idle('terminal')));

  const conversation = createConversation({
    ...{ store, personas, chatFiles, memory, model, channels, clock, log, metrics, newId, tools },
    zone: createZone(config.timezone),
    toolDescriptions: tools.map(describeTool),
    settings: {
      contextTokens: config.model.contextTokens,
      maxOutputTokens: config.model.maxOutputTokens,
      maxToolRounds: config.model.maxToolRounds,
      windowMessages: config.conversation.compactAfterMessages,
      overheardMessages: config.conversation.overheardMessages,
      debounceMs: config.conversation.debounceMs,
    },
    rulesFor: (channel) =>
      (channel === 'telegram' && config.channels.telegram
        ? config.channels.telegram
        : config.channels.terminal
      ).access,
    maxAgeMs: config.delivery.maxAgeHours * HOUR_MS,
    newPairingCode,
    facts: { version, model: config.model.server?.name ?? 'offline', startedAt: clock.now() },
  });

  const board = async () => {
    const { startBoard } = await import('./board/listener.js');
    const listener = await startBoard({
      ...config.board,
      // Whoever leaves the prompt has not made the gateway unready.
      ready: () => (telegram ? { telegram: telegram.status() } : {}),
      metrics: async () => ({ body: await metrics.render(), contentType: metrics.contentType }),
      webhook: telegram?.webhook,
      log,
    });
    return listener.close;
  };

  return createGateway({
    ...{ store, channels, conversation, clock, log },
    background: [
      ...(platforms ? [board] : []),
      async () => announceCommands({ channels, store, clock, log }),
    ],
    shutdownMs: config.shutdownSeconds * 1000,
  });
}

export async function createModel(config: Config, store: Store, log: Log): Promise<ModelClient> {
  const { server, fallbacks, maxOutputTokens, timeoutSeconds } = config.model;
  if (!server) return (await import('./models/offline.js')).createOfflineModel();
  const { createOpenAiModel } = await import('./models/openai.js');
  const { withFallbacks } = await import('./models/fallbacks.js');
  const quirks = {
    load: () => store.setting('model.quirks'),
    save: (value: string) => store.setSetting('model.quirks', value),
  };
  const client = (each: typeof server) =>
    createOpenAiModel({
      server: each,
      maxOutputTokens,
      timeoutSeconds,
      clock: systemClock,
      log,
      quirks,
    });
  const first = client(server);
  // Before anything is taken up: loading stops the event loop.
  await first.warm();
  return withFallbacks(first, fallbacks.map(client), log);
}

export async function createTelegramChannel(config: Config, store: Store, log: Log) {
  const { createTelegram } = await import('./channels/telegram/channel.js');
  const options = config.channels.telegram;
  if (!options) throw new Error('channels.telegram is not configured');
  return createTelegram({
    options,
    clock: systemClock,
    log,
    initialCursor: (account) => store.cursor('telegram', account),
    wantsQuietListening: options.access.groups !== 'closed',
  });
}

async function createTerminalChannel(
  config: Config,
  wishes: TerminalWishes,
  log: Log,
  settled: () => Promise<void>,
): Promise<Channel> {
  const { createTerminal } = await import('./channels/terminal.js');
  const terminal = createTerminal({
    input: process.stdin,
    output: process.stdout,
    interactive: wishes.interactive,
    colours: process.stdout.isTTY === true && process.stdout.hasColors(),
    settled,
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

function describeTool({ name, description, parameters }: AnyTool) {
  const { $schema: _, ...schema } = toJSONSchema(parameters);
  return { name, description, parameters: schema };
}

/** 8 upper-case letters without I and O, which people take for digits. */
function newPairingCode(): string {
  const letters = 'ABCDEFGHJKLMNPQRSTUVWXYZ';
  return Array.from({ length: 8 }, () => letters[randomInt(letters.length)]).join('');
}
