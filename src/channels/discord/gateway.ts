/**
 * One life of the gateway's connection: from the login to the point where the library cannot go on by itself. It resumes
 * its session over short breaks; what it gives up, or trips over, ends this life, and the next one begins anew.
 */
import { Client, type ClientOptions, Events, GatewayIntentBits, SimpleShardingStrategy } from 'discord.js';
import type { Clock } from '../../core/clock.js';
import type { Log } from '../../core/log.js';
import { restOptions } from './api.js';
import { closedWords, loginWords } from './closed.js';
import { failureOf } from './failure.js';
import type { DiscordOptions } from './options.js';

/** A session that cannot be had or resumed within this is given up, and begun anew with growing pauses. */
const PATIENCE_MS = 180_000;
/** The other end may not answer a goodbye. */
const GOODBYE_MS = 2_000;

export interface Life {
  /** Resolves with the reason when it is over; only `close` is left to be called then. */
  over: Promise<string>;
  /** Ends it for a reason. */
  fail(reason: string): void;
  /** Frees all it holds. Never rejects; may be called twice. */
  close(): Promise<void>;
}

export interface LifeParts {
  options: DiscordOptions;
  /** Lets a login through when it may be made. */
  pace: { waitForIdentify(shard: number, signal: AbortSignal): Promise<void> };
  /** Every event as Discord sent it, in order. Must not throw. */
  onPacket(kind: string, payload: unknown): void;
  onUp(): void;
  onDown(reason: string): void;
  clock: Clock;
  log: Log;
}

type Strategy = NonNullable<NonNullable<ClientOptions['ws']>['buildStrategy']>;
type Manager = Parameters<Strategy>[0];

export function begin({ options, pace, onPacket, onUp, onDown, clock, log }: LifeParts): Life {
  const { token, apiRoot } = options;
  let end: (reason: string) => void = () => {};
  const over = new Promise<string>((resolve) => {
    end = resolve;
  });
  const ended = new AbortController();
  let closed: Promise<void> | null = null;
  let cancelWatch: (() => void) | null = null;
  let lastCode: number | null = null;
  let inside: { manager: Manager; strategy: SimpleShardingStrategy } | null = null;

  const client = new Client({
    intents: [
      GatewayIntentBits.Guilds,
      GatewayIntentBits.GuildMessages,
      GatewayIntentBits.GuildMessageReactions,
      GatewayIntentBits.DirectMessages,
      GatewayIntentBits.DirectMessageReactions,
      GatewayIntentBits.MessageContent,
    ],
    shards: [0],
    shardCount: 1,
    rest: restOptions(apiRoot),
    ws: {
      buildStrategy(manager) {
        inside = { manager, strategy: new SimpleShardingStrategy(manager) };
        manager.on('closed', ({ code }) => {
          lastCode = code;
        });
        return inside.strategy;
      },
      buildIdentifyThrottler: () => ({
        waitForIdentify: (shard, signal) =>
          pace.waitForIdentify(shard, AbortSignal.any([signal, ended.signal])),
      }),
    },
  });

  // We read what Discord sends by ourselves. The library's own picture of the world would be kept in memory for nobody, and
  // it is there that it trips over what it does not expect: a session that ends right after a resume, say.
  Reflect.set(client.ws, 'handlePacket', () => true);

  /** Ends this life unless a session begins, or is taken up again, in time. */
  function watch(): void {
    cancelWatch ??= clock.after(PATIENCE_MS, () => {
      end(`Discord’s gateway gave no session within ${PATIENCE_MS / 60_000} minutes`);
    });
  }

  client.on('raw', (packet: { t: string; d: unknown }) => {
    if (ended.signal.aborted) return;
    if (packet.t === 'READY' || packet.t === 'RESUMED') {
      cancelWatch?.();
      cancelWatch = null;
      onUp();
    }
    onPacket(packet.t, packet.d);
  });
  client.on(Events.ShardReconnecting, () => {
    watch();
    onDown(closedWords(lastCode));
  });
  client.on(Events.ShardDisconnect, ({ code }) => end(closedWords(code)));
  client.on(Events.ShardError, (error) => {
    const { reason } = failureOf(error, token);
    log.debug({ channel: 'discord', reason }, 'the connection to the gateway has a fault');
  });
  // Without a listener it would end the process.
  client.on(Events.Error, (error) => end(failureOf(error, token).reason));

  watch();
  client.login(token).catch((error) => end(loginWords(error, lastCode, token)));

  async function close(): Promise<void> {
    ended.abort();
    cancelWatch?.();
    const sockets = inside === null ? [] : loosen(inside);
    const parted = new AbortController();
    const parting = client.destroy().catch((error) => {
      log.debug({ channel: 'discord', reason: failureOf(error, token).reason }, 'a connection ended badly');
    });
    void parting.then(() => parted.abort());
    await clock.sleep(GOODBYE_MS, parted.signal);
    for (const socket of sockets) {
      // What still connects, or waits for an answer, would tell its end to nobody, and so to the process.
      socket.onerror = () => {};
      socket.terminate();
    }
    client.removeAllListeners();
  }

  return {
    over,
    fail: end,
    close() {
      closed ??= close();
      return closed;
    },
  };
}

interface Socket {
  onerror: unknown;
  terminate(): void;
}

/**
 * The library leaves two things behind when it is ended while it reconnects: the pause before the next try, after which
 * it would connect after all, and a socket that connects with nobody to hear of it. The first now waits for ever; the
 * sockets are handed out.
 */
function loosen({ manager, strategy }: { manager: Manager; strategy: SimpleShardingStrategy }): Socket[] {
  manager.options.retrieveSessionInfo = () => new Promise(() => {});
  const shards: unknown = Reflect.get(strategy, 'shards');
  if (!(shards instanceof Map)) return [];
  return [...shards.values()]
    .map((shard) => Reflect.get(shard, 'connection') as Socket | null)
    .filter((socket) => socket !== null);
}
