/**
 * The connection to Discord's gateway. The library connects, resumes and reconnects; this decides when it may
 * retry. An outage, a refused token and a missing intent are retried indefinitely, with back-off.
 */

import { createServer, request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import {
  CloseCodes,
  DefaultWebSocketManagerOptions,
  type SessionInfo,
  WebSocketShard,
  WebSocketShardEvents,
  WebSocketShardStatus,
} from '@discordjs/ws';
import * as Discord from 'discord-api-types/v10';
import { onAbort } from '../../core/clock.js';
import { describe } from '../../core/errors.js';
import type { Outward } from '../../core/network.js';
import { backoffMs } from '../kit/supervise.js';
import { closedWords, failureOf, isRefusedWith, LONG_WAIT_MS } from './failure.js';
import type { DiscordParts } from './parts.js';
import { countIdentify, identifyPauseMs, type Packet } from './session.js';

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

/** State and back-off over all connection attempts. */
function createPace({ clock, log, session, connecting }: DiscordParts) {
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
    async pause(signal: AbortSignal): Promise<void> {
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

/** Waits until the library may connect; returns the address and the session. null: not any more. */
async function admission(parts: DiscordParts, pace: Pace, signal: AbortSignal) {
  for (let isFirst = true; !signal.aborted; isFirst = false) {
    if (!isFirst) await pace.pause(signal);
    if (signal.aborted) break;
    try {
      const session = parts.session.info;
      if (session !== null && pace.isReached()) return { url: session.resumeURL, session };
      const { url, session_start_limit } = await parts.api.get<Discord.APIGatewayBotInfo>(
        '/gateway/bot',
        signal,
      );
      if (session !== null) return { url, session };
      if (session_start_limit.remaining < 1) {
        throw new Error('Discord lets the bot begin no more sessions today');
      }
      await parts.clock.sleep(await identifyPauseMs(parts, parts.host.state), signal);
      if (!signal.aborted) return { url, session: null };
    } catch (error) {
      pace.unreachable(error);
    }
  }
  return null;
}

/** Connects, and serves until the library stops, or must be stopped because it failed. */
async function serve(
  parts: DiscordParts,
  take: (packet: Packet) => void,
  pace: Pace,
  failed: AbortSignal,
  signal: AbortSignal,
) {
  const { session, clock, log } = parts;
  const over = new AbortController();
  const never = new Promise<never>(() => {});
  let isFirst = true;
  let isWaiting = false;
  let fault: string | null = null;
  let relay = null as Relay | null;
  let cancelPatience = () => {};
  const sessions = { total: 1, remaining: 1, reset_after: 0, max_concurrency: 1 };
  const gateway = { url: '', shards: 1, session_start_limit: sessions };

  function giveUp(reason: string): void {
    if (over.signal.aborted) return;
    pace.down(reason, true);
    over.abort();
  }

  /** The library asks before it connects. If two of its recoveries overlap, the second gets no answer. */
  async function beforeConnecting(): Promise<SessionInfo | null> {
    if (isWaiting || over.signal.aborted) return never;
    isWaiting = true;
    if (!isFirst) await pace.pause(over.signal);
    isFirst = false;
    const found = await admission(parts, pace, over.signal);
    relay?.close();
    relay = found && (await openRelay(found.url, parts.host.newId(), parts.host.outward));
    isWaiting = false;
    if (over.signal.aborted) relay?.close();
    if (found === null || over.signal.aborted) return never;
    pace.attempt();
    fault = null;
    cancelPatience = clock.after(PATIENCE_MS, () =>
      giveUp(`Discord’s gateway gave no session within ${PATIENCE_MS / 60_000} minutes`),
    );
    gateway.url = relay?.url ?? found.url;
    return found.session && { ...found.session, resumeURL: gateway.url };
  }

  const shard = new WebSocketShard(
    {
      options: {
        ...DefaultWebSocketManagerOptions,
        token: parts.options.token,
        intents: INTENTS,
        shardCount: 1,
        gatewayInformation: gateway,
      },
      // It also asks with every event.
      retrieveSessionInfo: () =>
        shard.status === WebSocketShardStatus.Idle ? beforeConnecting() : session.info,
      updateSessionInfo(_shard, info) {
        // The library also drops the session if the gateway could not be reached.
        if (!over.signal.aborted && (info !== null || pace.isReached())) session.update(info);
      },
      waitForIdentify: () => countIdentify(parts, parts.host.state),
    },
    0,
  );
  shard.on(WebSocketShardEvents.Hello, () => {
    pace.greeted();
    if (over.signal.aborted) void close(parts, pace, shard);
  });
  shard.on(WebSocketShardEvents.Dispatch, ({ t: kind, d: payload, s: sequence }) => {
    if (over.signal.aborted) return;
    const isReplay = !pace.isUp();
    if (kind === 'READY' || kind === 'RESUMED') {
      cancelPatience();
      pace.up();
    }
    take({ kind, payload, sequence, isReplay });
  });
  shard.on(WebSocketShardEvents.HeartbeatComplete, () => void session.beat());
  shard.on(WebSocketShardEvents.SocketError, (error) => {
    fault = failureOf(error).reason;
  });
  shard.on(WebSocketShardEvents.Closed, (code) => {
    cancelPatience();
    if (over.signal.aborted) return;
    const words = closedWords(code);
    pace.down(pace.isReached() ? words : (relay?.fault() ?? fault ?? words));
    if (!isRefusedWith(code)) return;
    // After these the library does not reconnect.
    session.update(null);
    giveUp(words);
  });
  // An unhandled error event would end the process. Discord's close code tells the cause.
  shard.on(WebSocketShardEvents.Error, ({ message }) =>
    log.debug({ channel: 'discord', message }, 'Discord failed'),
  );

  onAbort(failed, () => {
    session.update(null);
    giveUp(String(failed.reason));
  });
  signal.addEventListener('abort', () => over.abort(), { once: true, signal: over.signal });
  if (signal.aborted) over.abort();
  else shard.connect().catch((error) => giveUp(failureOf(error).reason));
  await aborted(over.signal);
  cancelPatience();
  await close(parts, pace, shard);
  relay?.close();
}

/** Discord keeps a session whose connection is closed with another code than 1000 and 1001. */
async function close({ session, clock, log }: DiscordParts, pace: Pace, shard: WebSocketShard) {
  if (shard.status === WebSocketShardStatus.Idle) return;
  // The library forgets a socket that is still connecting: it is closed when the gateway greets us.
  if (shard.status === WebSocketShardStatus.Connecting && !pace.isReached()) return;
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

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => void onAbort(signal, resolve));
}

/** `take` gets every event, in order. It must not throw. */
export function createConnection(parts: DiscordParts, take: (packet: Packet) => void) {
  const pace = createPace(parts);
  let failure = new AbortController();
  return {
    /** Ends when the signal has aborted and the connection is closed. Never rejects. */
    async run(signal: AbortSignal): Promise<void> {
      while (!signal.aborted) {
        failure = new AbortController();
        await serve(parts, take, pace, failure.signal, signal);
        if (!signal.aborted) await pace.pause(signal);
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
  const open = new Set<Duplex>();
  let fault: string | null = null;
  const server = createServer((_, response) => void response.writeHead(404).end());
  server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    hold(socket);
    const [path, query] = (request.url ?? '').split('?');
    if (path !== `/${secret}/`) return void socket.destroy();
    passOn(request, socket, head, query ?? '');
  });

  /** The loss of one end closes the other. */
  function hold(socket: Duplex): void {
    open.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => open.delete(socket));
  }

  function passOn(request: IncomingMessage, socket: Socket, head: Buffer, query: string): void {
    const url = new URL(gateway);
    const secure = url.protocol === 'wss:';
    url.protocol = secure ? 'https:' : 'http:';
    url.search = query;
    const asked = (secure ? httpsRequest : httpRequest)(url, {
      agent: outward.agent(secure),
      headers: { ...request.headers, host: url.host },
    });
    const lost = (why: string) => {
      fault = why;
      socket.destroy();
    };
    socket.on('close', () => asked.destroy());
    asked.on('error', (error) => lost(describe(error)));
    asked.on('response', ({ statusCode }) => lost(`it answers with HTTP ${statusCode}`));
    asked.on('upgrade', (response, there, first) => {
      fault = null;
      hold(there);
      socket.write(
        ['HTTP/1.1 101 Switching Protocols', ...headerLines(response.rawHeaders), '', ''].join('\r\n'),
      );
      there.unshift(first);
      socket.unshift(head);
      there.pipe(socket).pipe(there);
      there.on('close', () => socket.destroy());
      socket.on('close', () => there.destroy());
    });
    asked.end();
  }

  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    /** For the library, which adds a query. */
    url: `ws://127.0.0.1:${port}/${secret}/`,
    /** Why the last connection was not relayed; null if it was. */
    fault: () => fault,
    close() {
      server.close();
      for (const socket of open) socket.destroy();
    },
  };
}

function headerLines(raw: string[]): string[] {
  return raw.flatMap((name, n) => (n % 2 === 0 ? [`${name}: ${raw[n + 1]}`] : []));
}
