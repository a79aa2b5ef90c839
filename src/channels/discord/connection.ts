/**
 * The connection to Discord's gateway, made again and again until the channel stops. One that breaks is made again at
 * once, and the session resumed; from then on the pauses double up to a minute, without an end: an outage, a refused
 * token and a missing intent are states to come out of. The library's own way of connecting again has no such pauses, so
 * each of its managers serves for one connection.
 */
import type { REST } from '@discordjs/rest';
import {
  CloseCodes,
  SimpleShardingStrategy,
  WebSocketManager,
  WebSocketShardEvents,
  WebSocketShardStatus,
} from '@discordjs/ws';
import type { Outward } from '../../core/network.js';
import { backoffMs, type State } from '../kit/supervise.js';
import type { Base } from './api.js';
import { closedWords, failureOf, isRefusedWith } from './failure.js';
import type { Identifies } from './identifies.js';
import { LONG_WAIT_MS } from './limits.js';
import type { DiscordOptions } from './options.js';
import { read } from './payload.js';
import { openRelay, type Relay } from './relay.js';
import type { Packet, Session } from './session.js';

/** Guilds, messages and reactions in guilds, the same in direct chats, and what messages say. */
const INTENTS = [0, 9, 10, 12, 13, 15].reduce((all, bit) => all | (1 << bit), 0);
/** A connection that lasts for so long has ended the outage before it. */
const LASTING_MS = 60_000;
/** A connection that brings no session within this is given up. */
const PATIENCE_MS = 180_000;
/** The code of a connection that ended without one. */
const ABNORMAL = 1006;
/** So long the other end may take to answer that we close. */
const CLOSING_MS = 2_000;

export interface Connection {
  /** Ends when the signal aborts and the connection is closed. Never rejects. */
  run(signal: AbortSignal): Promise<void>;
  /** Gives up the connection and its session: the library has thrown. */
  fail(reason: string): void;
}

interface End {
  reason: string;
  /** What the gateway closed the connection with; null where it was not closed by it. */
  code: number | null;
  /** How long Discord wants to be left alone; 0: it did not say. */
  waitMs: number;
  /** How long there was a session; null where there was none. */
  upMs: number | null;
  isReached: boolean;
  /** The session was refused, so that the next connection begins one, which has its own pauses. */
  isSessionLost: boolean;
}

interface ConnectionParts extends Base {
  options: DiscordOptions;
  session: Session;
  /** Waits until a session may be begun. */
  waitForIdentify: Identifies;
  connecting: State;
  outward: Outward;
  /** One that nobody can guess. */
  newId(): string;
  /** Takes every event as Discord sent it, in order. Must not throw. */
  take(packet: Packet): void;
}

export function createConnection(parts: ConnectionParts): Connection {
  const { api, session, waitForIdentify, connecting, outward, clock, log } = parts;
  const { token } = parts.options;
  let isReachable = true;
  let fail: (reason: string) => void = () => {};

  /** What the library asks of the API before it connects. A session has an address, so that nothing need be asked. */
  async function gatewayInformation(signal: AbortSignal) {
    const known = session.info();
    const limit = { total: 1, remaining: 1, reset_after: 0, max_concurrency: 1 };
    if (known !== null && isReachable) return { url: known.resumeURL, shards: 1, session_start_limit: limit };
    const told = read.gateway(await api.get('/gateway/bot', signal));
    if (told?.url === undefined) throw new Error('Discord does not say where its gateway is');
    session.resumeAt(told.url);
    const remaining = known === null ? (told.session_start_limit?.remaining ?? 1) : 1;
    // Whoever begins more sessions than that loses the token.
    if (remaining < 1) throw new Error('Discord lets the bot begin no more sessions today');
    return { url: told.url, shards: 1, session_start_limit: limit };
  }

  /** Where a proxy stands before it: the library knows of none. */
  async function relayTo(gateway: string): Promise<Relay | null> {
    const { protocol, hostname, port } = new URL(gateway);
    const secure = protocol === 'wss:';
    const server = { host: hostname, secure, port: Number(port || (secure ? 443 : 80)) };
    return outward.proxyFor(server) === null ? null : openRelay(gateway, parts.newId(), outward);
  }

  async function connectOnce(signal: AbortSignal, onUp: () => void): Promise<End> {
    const over = new AbortController();
    let end: (reason: string, code?: number, waitMs?: number) => void = () => {};
    const ended = new Promise<Pick<End, 'reason' | 'code' | 'waitMs'>>((resolve) => {
      end = (reason, code, waitMs = 0) => resolve({ reason, code: code ?? null, waitMs });
    });
    let upAt: number | null = null;
    let isReached = false;
    let hadSession = session.info() !== null;
    let shards: SimpleShardingStrategy | null = null;
    let connects = 0;
    let fault: string | null = null;
    let relay = null as Relay | null;
    const informed = async () => {
      const told = await gatewayInformation(over.signal);
      relay = await relayTo(told.url);
      if (over.signal.aborted) relay?.close();
      return relay === null ? told : { ...told, url: relay.url };
    };

    const manager = new WebSocketManager({
      token,
      intents: INTENTS,
      shardIds: [0],
      shardCount: 1,
      // The manager asks it for one thing only.
      rest: { get: informed } as unknown as REST,
      buildStrategy(built) {
        shards = new SimpleShardingStrategy(built);
        return shards;
      },
      buildIdentifyThrottler: () => ({
        async waitForIdentify(_shard, until) {
          await waitForIdentify(until);
          hadSession = true;
        },
      }),
      // It asks before it connects anew, too, also where it did not tell that the connection ended: where Discord refuses
      // it before it answers, or ends it while the library does. That is never answered: the next one is ours to make.
      retrieveSessionInfo() {
        if (!over.signal.aborted && shardsOf(shards).some(({ status }) => status === IDLE)) {
          connects += 1;
          if (connects > 1) end(relay?.fault() ?? fault ?? closedWords(ABNORMAL), ABNORMAL);
        }
        if (over.signal.aborted || connects > 1) return new Promise(() => {});
        const info = session.info();
        return info && relay ? { ...info, resumeURL: relay.url } : info;
      },
      updateSessionInfo(_shard, info) {
        if (over.signal.aborted) return;
        if (info !== null && info.sessionId !== session.info()?.sessionId) {
          session.begin(info.sessionId, info.resumeURL, info.sequence);
        }
        // The library gives up a session also where the gateway could not be reached.
        if (info === null && isReached) session.forget();
      },
    });
    manager.on(WebSocketShardEvents.Hello, () => {
      isReached = true;
    });
    manager.on(WebSocketShardEvents.Dispatch, ({ data: { t: kind, d: payload, s: sequence } }) => {
      if (over.signal.aborted) return;
      const isReplay = upAt === null;
      if (kind === 'READY' || kind === 'RESUMED') {
        cancelPatience();
        upAt = clock.now();
        onUp();
      }
      parts.take({ kind, payload, sequence, isReplay });
    });
    manager.on(WebSocketShardEvents.HeartbeatComplete, () => void session.beat());
    manager.on(WebSocketShardEvents.Closed, ({ code }) => end(relay?.fault() ?? closedWords(code), code));
    // Without a listener it would end the process. What matters of it closes the connection, or rejects the login.
    manager.on(WebSocketShardEvents.Error, ({ error }) => {
      const { reason } = failureOf(error);
      fault = reason;
      log.debug({ channel: 'discord', reason }, 'the connection to Discord has a fault');
    });

    const minutes = PATIENCE_MS / 60_000;
    const cancelPatience = clock.after(PATIENCE_MS, () =>
      end(`Discord’s gateway gave no session within ${minutes} minutes`),
    );
    fail = (reason) => {
      session.forget();
      end(reason);
    };
    const stop = () => end('');
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
    else
      Promise.resolve(manager.connect()).catch((error) => {
        const failure = failureOf(error);
        end(failure.reason, undefined, failure.retryAfterMs ?? 0);
      });

    const { reason, code, waitMs } = await ended;
    fail = () => {};
    over.abort();
    signal.removeEventListener('abort', stop);
    cancelPatience();
    await close(manager, shards);
    relay?.close();
    const isSessionLost = hadSession && session.info() === null;
    const upMs = upAt === null ? null : clock.now() - upAt;
    return { reason, code, waitMs, upMs, isReached, isSessionLost };
  }

  /** Discord keeps a session whose connection is closed with another code than 1000 and 1001. */
  async function close(manager: WebSocketManager, shards: SimpleShardingStrategy | null): Promise<void> {
    const sockets = socketsOf(shards);
    const isClosed = new AbortController();
    const code = session.info() === null ? CloseCodes.Normal : CloseCodes.Resuming;
    const closing = Promise.resolve(manager.destroy({ code })).catch((error) => {
      log.debug({ channel: 'discord', reason: failureOf(error).reason }, 'a connection ended badly');
    });
    void closing.then(() => isClosed.abort());
    await clock.sleep(CLOSING_MS, isClosed.signal);
    for (const socket of sockets) {
      // The library takes its listeners away, and an error that nobody listens to would end the process.
      socket.onerror = () => {};
      socket.terminate();
    }
    manager.removeAllListeners();
  }

  return {
    async run(signal) {
      let failures = 0;
      let logged: string | null = null;
      const onUp = () => {
        connecting.up();
        if (logged !== null) log.info({ channel: 'discord' }, 'connected to Discord again');
        logged = null;
      };
      while (!signal.aborted) {
        const { reason, code, waitMs, upMs, isReached, isSessionLost } = await connectOnce(signal, onUp);
        if (signal.aborted) break;
        isReachable = isReached;
        const isRefused = code !== null && isRefusedWith(code);
        if (upMs !== null && upMs >= LASTING_MS) failures = 0;
        const isAtOnce = code !== null && !isRefused && (isSessionLost || (upMs !== null && failures === 0));
        const pauseMs = isAtOnce ? 0 : Math.max(waitMs, backoffMs(failures));
        const isLong = waitMs >= LONG_WAIT_MS;
        if (!isSessionLost || !isAtOnce) failures += 1;
        connecting.down(reason);
        // One line for an outage, and another where it takes long, or where somebody has to do something about it.
        if (!isAtOnce && (logged === null || ((isRefused || isLong) && logged !== reason))) {
          log.warn(
            { channel: 'discord', reason },
            isLong
              ? 'no connection to Discord; it wants to be left alone, which takes its time'
              : 'no connection to Discord; trying again with growing pauses',
          );
          logged = reason;
        } else {
          log.debug(
            { channel: 'discord', reason, pauseMs },
            'the connection to Discord ended; connecting again',
          );
        }
        await clock.sleep(pauseMs, signal);
      }
      connecting.down('the gateway was stopped');
    },
    fail: (reason) => fail(reason),
  };
}

interface Socket {
  onerror: unknown;
  terminate(): void;
}

interface Shard {
  status: WebSocketShardStatus;
}

const IDLE = WebSocketShardStatus.Idle;

/** What is asked of them is not what the library shows of them, so they have to be taken from its insides. */
function shardsOf(strategy: SimpleShardingStrategy | null): Shard[] {
  const shards: unknown = strategy === null ? null : Reflect.get(strategy, 'shards');
  return shards instanceof Map ? [...shards.values()] : [];
}

/** A socket that still connects is not ended by the library. */
function socketsOf(strategy: SimpleShardingStrategy | null): Socket[] {
  return shardsOf(strategy)
    .map((shard) => Reflect.get(shard, 'connection') as Socket | null)
    .filter((socket) => socket !== null);
}
