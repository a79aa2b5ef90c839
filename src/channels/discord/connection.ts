/**
 * The connection of a shard to Discord's gateway. The library connects, resumes and reconnects; this decides when it may
 * retry. An outage, a refused token and a missing intent are retried indefinitely, with back-off.
 */

import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import {
  CloseCodes,
  DefaultWebSocketManagerOptions,
  type SessionInfo,
  type WebSocketShard,
  WebSocketShardEvents,
  WebSocketShardStatus,
} from '@discordjs/ws';
import * as Discord from 'discord-api-types/v10';
import { WebSocket, WebSocketServer } from 'ws';
import { onAbort } from '../../core/clock.js';
import { describe } from '../../core/errors.js';
import type { Outward } from '../../core/network.js';
import { backoffMs } from '../kit/supervise.js';
import { closedWords, failureOf, isRefusedWith, LONG_WAIT_MS } from './failure.js';
import { countIdentify, identifyPauseMs, OF_ONE, type Start } from './identifies.js';
import type { ShardParts } from './parts.js';
import { type Packet, StoringShard } from './session.js';

/** Guilds, messages and reactions in guilds, the same in direct chats, and the text of messages. */
const INTENTS =
  Discord.GatewayIntentBits.Guilds |
  Discord.GatewayIntentBits.GuildMessages |
  Discord.GatewayIntentBits.GuildMessageReactions |
  Discord.GatewayIntentBits.DirectMessages |
  Discord.GatewayIntentBits.DirectMessageReactions |
  Discord.GatewayIntentBits.MessageContent;
/** A connection that lasts this long ends the outage before it. */
const LASTING_MS = 60_000;
/** A connection without a session is closed after this time. */
const PATIENCE_MS = 180_000;
const CLOSING_MS = 2_000;
/** For a connection through a proxy. */
const HANDSHAKE_MS = 30_000;
/** Stand for a connection without a close code, and for one that broke (RFC 6455). */
const [NO_CODE, LOST] = [1005, 1006];

/** State and back-off over all connection attempts. */
function createPace({ clock, log, session, connecting }: ShardParts) {
  /** Attempts in a row without a lasting connection. */
  let failures = 0;
  let upAt: number | null = null;
  /** Whether the gateway has greeted us on the newest connection. */
  let isReached = true;
  /** Discord has refused us, or the library has failed. */
  let mustPause = false;
  let waitMs = 0;
  /** The logged reason for this outage; null while there is none. */
  let logged: string | null = null;
  let isFirst = true;

  return {
    isUp: () => upAt !== null,
    isReached: () => isReached,
    attempt(): void {
      isReached = false;
      waitMs = 0;
    },
    greeted(): void {
      isReached = true;
    },
    up(): void {
      upAt = clock.now();
      mustPause = false;
      connecting.up();
      if (logged !== null) log.info({ channel: 'discord' }, 'Discord connected again');
      logged = null;
    },
    down(reason: string, isSerious = false): void {
      connecting.down(reason);
      mustPause ||= isSerious;
    },
    /** The API did not even answer where to connect. */
    unreachable(error: unknown): void {
      const { reason, retryAfterMs } = failureOf(error);
      connecting.down(reason);
      isReached = false;
      waitMs = retryAfterMs ?? 0;
    },
    /** Before each attempt but the first. */
    async pause(signal: AbortSignal): Promise<void> {
      if (isFirst) {
        isFirst = false;
        return;
      }
      const isNew = session.info === null;
      if (upAt !== null && clock.now() - upAt >= LASTING_MS) failures = 0;
      // New sessions have pauses of their own.
      const isAtOnce = !mustPause && isReached && (isNew || (upAt !== null && failures === 0));
      const pauseMs = isAtOnce ? 0 : Math.max(waitMs, backoffMs(failures));
      if (!isAtOnce || !isNew) failures += 1;
      upAt = null;
      const reason = connecting.status().lastError ?? '';
      const isLong = waitMs >= LONG_WAIT_MS;
      // One line per outage, and another if it is long or somebody has to act.
      if (!isAtOnce && (logged === null || ((mustPause || isLong) && logged !== reason))) {
        const words = isLong ? 'Discord limits the rate; waiting' : 'Discord connection failed; retrying';
        log.warn({ channel: 'discord', reason }, words);
        logged = reason;
      }
      log.debug({ channel: 'discord', reason, pauseMs }, 'Discord connection ended; reconnecting');
      await clock.sleep(pauseMs, signal);
    },
  };
}

type Pace = ReturnType<typeof createPace>;

/** Connects, and serves until the library stops, or must be stopped because it failed. */
class ShardConnection {
  private readonly over = new AbortController();
  private readonly gateway = {
    url: '',
    shards: 1,
    session_start_limit: { total: 1, remaining: 1, reset_after: 0, max_concurrency: 1 },
  };
  private readonly shard: WebSocketShard;
  private relay: Relay | null = null;
  private fault: string | null = null;
  private isWaiting = false;
  private cancelPatience = () => {};
  /** The session to begin, and the function that lets the next shard begin one. */
  private start: Start = OF_ONE;
  private letNextBegin = () => {};

  constructor(
    private readonly parts: ShardParts,
    private readonly pace: Pace,
    take: (packet: Packet) => void,
  ) {
    const { session, options, seat } = parts;
    const { over, gateway } = this;
    this.shard = new StoringShard(
      session,
      {
        options: {
          ...DefaultWebSocketManagerOptions,
          token: options.token,
          intents: INTENTS,
          // Known when the first session begins.
          get shardCount() {
            return seat.count;
          },
          gatewayInformation: gateway,
        },
        // It also asks with every event.
        retrieveSessionInfo: () =>
          this.shard.status === WebSocketShardStatus.Idle ? this.beforeConnecting() : session.info,
        updateSessionInfo(_shard, info) {
          // The library also drops the session if the gateway could not be reached.
          if (!over.signal.aborted && (info !== null || pace.isReached())) session.update(info);
        },
        waitForIdentify: (_shard, closed) => this.beforeIdentifying(closed),
      },
      seat.shard,
    );
    this.listen(take);
  }

  async run(failed: AbortSignal, signal: AbortSignal): Promise<void> {
    const { over, shard } = this;
    onAbort(failed, () => {
      this.parts.session.update(null);
      this.giveUp(String(failed.reason));
    });
    const unlisten = onAbort(signal, () => over.abort());
    if (!signal.aborted) shard.connect().catch((error) => this.giveUp(failureOf(error).reason));
    await new Promise<void>((resolve) => void onAbort(over.signal, resolve));
    unlisten();
    this.cancelPatience();
    this.letNextBegin();
    await this.close();
    this.relay?.close();
  }

  private giveUp(reason: string): void {
    if (this.over.signal.aborted) return;
    this.pace.down(reason, true);
    this.over.abort();
  }

  /** The library asks before it connects. If two of its recoveries overlap, the second gets no answer. */
  private async beforeConnecting(): Promise<SessionInfo | null> {
    const { signal } = this.over;
    const never = new Promise<never>(() => {});
    if (this.isWaiting || signal.aborted) return never;
    this.isWaiting = true;
    this.letNextBegin();
    const found = await this.admission();
    this.relay?.close();
    const { newId, outward } = this.parts.host;
    this.relay = found && (await openRelay(found.url, newId(), outward));
    this.isWaiting = false;
    if (signal.aborted) this.relay?.close();
    if (found === null || signal.aborted) return never;
    this.pace.attempt();
    this.fault = null;
    this.cancelPatience = this.parts.clock.after(PATIENCE_MS, () =>
      this.giveUp(`Discord’s gateway gave no session within ${PATIENCE_MS / 60_000} minutes`),
    );
    this.gateway.url = this.relay?.url ?? found.url;
    return found.session && { ...found.session, resumeURL: this.gateway.url };
  }

  /** Waits until the library may connect; returns the address and the session. null: not any more. */
  private async admission(): Promise<{ url: string; session: SessionInfo | null } | null> {
    const { parts, pace } = this;
    const { signal } = this.over;
    while (!signal.aborted) {
      await pace.pause(signal);
      if (signal.aborted) break;
      try {
        const session = parts.session.info;
        if (session !== null && pace.isReached()) return { url: session.resumeURL, session };
        const asked = await parts.api.get<Discord.APIGatewayBotInfo>('/gateway/bot', signal);
        if (session !== null) return { url: asked.url, session };
        await parts.shards.agree(asked.shards);
        if (!signal.aborted && (await this.mayBegin(asked.session_start_limit))) {
          return { url: asked.url, session: null };
        }
      } catch (error) {
        pace.unreachable(error);
      }
    }
    return null;
  }

  /** Waits for this shard's turn; false: not any more. Rejects where Discord allows no more sessions. */
  private async mayBegin(limit: Discord.APIGatewaySessionStartLimit): Promise<boolean> {
    const { seat, shards, host, clock } = this.parts;
    const { signal } = this.over;
    if (limit.remaining < 1) throw new Error('Discord lets the bot begin no more sessions today');
    const buckets = Math.max(1, limit.max_concurrency);
    this.start = { shard: seat.shard, shards: seat.count, buckets, total: limit.total };
    this.letNextBegin = await shards.enter(seat.shard % buckets);
    let isAdmitted = false;
    try {
      if (!signal.aborted) await clock.sleep(await identifyPauseMs(host, this.start), signal);
      isAdmitted = !signal.aborted;
    } finally {
      if (!isAdmitted) this.letNextBegin();
    }
    return isAdmitted;
  }

  /** Connected: the last moment, in which a shard at another gateway may have begun a session. */
  private async beforeIdentifying(closed: AbortSignal): Promise<void> {
    const { host, clock } = this.parts;
    if (this.start.shards > 1) {
      const pauseMs = await identifyPauseMs(host, this.start).catch(() => 0);
      await clock.sleep(pauseMs, AbortSignal.any([closed, this.over.signal]));
    }
    if (closed.aborted) throw closed.reason;
    await countIdentify(host, this.start);
    this.letNextBegin();
  }

  private listen(take: (packet: Packet) => void): void {
    const { shard, pace, over } = this;
    const { session, log } = this.parts;
    shard.on(WebSocketShardEvents.Hello, () => {
      pace.greeted();
      if (over.signal.aborted) void this.close();
    });
    shard.on(WebSocketShardEvents.Dispatch, ({ t: kind, d: payload, s: sequence }) => {
      if (over.signal.aborted) return;
      const isReplay = !pace.isUp();
      if (kind === 'READY' || kind === 'RESUMED') {
        this.cancelPatience();
        pace.up();
      }
      take({ kind, payload, sequence, isReplay });
    });
    shard.on(WebSocketShardEvents.HeartbeatComplete, () => void session.beat());
    shard.on(WebSocketShardEvents.SocketError, (error) => {
      this.fault = failureOf(error).reason;
    });
    shard.on(WebSocketShardEvents.Closed, (code) => {
      this.cancelPatience();
      if (over.signal.aborted) return;
      const words = closedWords(code);
      pace.down(pace.isReached() ? words : (this.relay?.fault() ?? this.fault ?? words));
      if (!isRefusedWith(code)) return;
      if (code === Discord.GatewayCloseCodes.ShardingRequired) this.parts.shards.areTooFew = true;
      // After these the library does not reconnect.
      session.update(null);
      this.giveUp(words);
    });
    // An unhandled error event would end the process. Discord's close code tells the cause.
    shard.on(WebSocketShardEvents.Error, ({ message }) =>
      log.debug({ channel: 'discord', message }, 'Discord failed'),
    );
  }

  /** Discord keeps a session whose connection is closed with another code than 1000 and 1001. */
  private async close(): Promise<void> {
    const { shard } = this;
    const { session, clock, log } = this.parts;
    if (shard.status === WebSocketShardStatus.Idle) return;
    // The library forgets a socket that is still connecting: it is closed when the gateway greets us.
    if (shard.status === WebSocketShardStatus.Connecting && !this.pace.isReached()) return;
    const isClosed = new AbortController();
    const code = session.info === null ? CloseCodes.Normal : CloseCodes.Resuming;
    shard
      .destroy({ code })
      .catch((error) =>
        log.debug({ channel: 'discord', reason: describe(error) }, 'closing the Discord connection failed'),
      )
      .finally(() => isClosed.abort());
    await clock.sleep(CLOSING_MS, isClosed.signal);
  }
}

/** `take` gets every event, in order. It must not throw. */
export function createConnection(parts: ShardParts, take: (packet: Packet) => void) {
  const pace = createPace(parts);
  let failure = new AbortController();
  return {
    /** Ends when the signal has aborted and the connection is closed. Never rejects. */
    async run(signal: AbortSignal): Promise<void> {
      while (!signal.aborted) {
        failure = new AbortController();
        await new ShardConnection(parts, pace, take).run(failure.signal, signal);
      }
      parts.connecting.down('the gateway was stopped');
    },
    /** The library has thrown: abandons the connection and its session. */
    fail: (reason: string) => failure.abort(reason),
  };
}

type Relay = Awaited<ReturnType<typeof relayTo>>;

/** null if no proxy is set. `gateway`: `wss://…`. `secret`: unguessable. */
async function openRelay(gateway: string, secret: string, outward: Outward): Promise<Relay | null> {
  const { protocol, hostname, port: given } = new URL(gateway);
  const isSecure = protocol === 'wss:';
  const server = { host: hostname, secure: isSecure, port: Number(given || (isSecure ? 443 : 80)) };
  return outward.proxyFor(server) === null ? null : relayTo(gateway, secret, outward);
}

/** Relays the library's connection, which is always direct, through a proxy. The path is secret. */
async function relayTo(gateway: string, secret: string, outward: Outward) {
  let fault: string | null = null;
  const agent = outward.agent(gateway.startsWith('wss:'));
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0, path: `/${secret}/` });
  server.on('connection', (near, request) => {
    const url = new URL(gateway);
    url.search = new URL(request.url ?? '', gateway).search;
    const far = new WebSocket(url, { agent, perMessageDeflate: false, handshakeTimeout: HANDSHAKE_MS });
    far.on('open', () => {
      fault = null;
    });
    far.on('error', (error) => {
      fault = describe(error);
    });
    passOn(far, near);
    passOn(near, far);
  });
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    /** For the library, which adds a query. */
    url: `ws://127.0.0.1:${port}/${secret}/`,
    /** Why the last connection was not relayed; null if it was. */
    fault: () => fault,
    close() {
      server.close();
      for (const near of server.clients) near.terminate();
    },
  };
}

/** Passes on messages and the close. Discord speaks first, so nothing is sent to it before it is connected. */
function passOn(from: WebSocket, to: WebSocket): void {
  from.on('message', (data, isBinary) => to.send(data, { binary: isBinary }));
  // A close follows.
  from.on('error', () => {});
  from.on('close', (code, reason) => {
    if (code === LOST) to.terminate();
    else if (code === NO_CODE) to.close();
    else to.close(code, reason);
  });
}
