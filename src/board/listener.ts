/**
 * The HTTP listener: its port, start and stop, and connection time-outs. The guard checks every request's head
 * (guard.ts); routes (app.ts) and sockets (socket.ts) are loaded with the first request that needs them.
 */
import { randomBytes } from 'node:crypto';
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type Clock, OVER, orAfter, systemClock } from '../core/clock.js';
import { describe, Fault } from '../core/errors.js';
import type { AppOptions } from './app.js';
import { createDoor, type DoorRefusal, pathOf, refuseUpgrade, UPLOADS } from './guard.js';
import { prepare } from './headers.js';
import { createPatience, openSessions, type SessionPlace } from './sessions.js';
import type { Entrance } from './sign-in.js';
import type { SocketLimits, Sockets } from './sockets.js';
import { isOfThePage, pageFrom } from './static.js';

interface ConnectionLimits {
  /** Time-out for a request's headers; also for a silent connection. */
  headersMs: number;
  requestMs: number;
  /** For a request that brings a file. */
  uploadMs?: number;
  /** Between two requests; longer than proxies keep connections, so that they do not use one that is closing. */
  idleMs: number;
  /** Without a byte in either direction while an answer is sent. */
  silenceMs: number;
  /** For the next gateway, while a new configuration is taken in. */
  awayMs: number;
}

export interface BoardOptions extends AppOptions {
  /** 0: any free port. */
  port: number;
  limits?: ConnectionLimits;
  sockets?: SocketLimits;
  /** Sessions of browsers outlast the process here. */
  sessions?: SessionPlace;
  clock?: Clock;
}

export type Board = Awaited<ReturnType<typeof startBoard>>;

export const LIMITS: ConnectionLimits = {
  headersMs: 10_000,
  requestMs: 30_000,
  idleMs: 65_000,
  silenceMs: 60_000,
  awayMs: 10_000,
};
const UPLOAD_MS = 600_000;
const SOCKET_LIMITS: SocketLimits = { most: 256, heartbeatMs: 30_000, unreadBytes: 8_000_000 };
/** Time for running requests once the listener, or what it serves, ends. */
const CLOSE_MS = 2000;
const GOING_AWAY = 1001;
const SERVICE_RESTART = 1012;
const STOPPING = 'The gateway is stopping.';
const AWAY: DoorRefusal = {
  status: 503,
  error: 'The gateway takes in a new configuration; try again.',
  headers: { 'retry-after': '2' },
};
/** So that those who only connect leave files and connections to the rest of the gateway. */
const MOST_CONNECTIONS = 1_000;
const MOST_HEADER_BYTES = 16_384;
const LOOK_EVERY_MS = 1_000;

export async function startBoard(options: BoardOptions) {
  const { host, log, limits = LIMITS, clock = systemClock } = options;
  const newSession = () => randomBytes(32).toString('base64url');
  const sessions = await openSessions(options.sessions, clock, newSession);
  const present = createPresent(options, { sessions, patience: createPatience(clock) }, limits);
  const server = createServer({
    maxHeaderSize: MOST_HEADER_BYTES,
    connectionsCheckingInterval: Math.min(LOOK_EVERY_MS, limits.headersMs),
    headersTimeout: limits.headersMs,
    requestTimeout: limits.uploadMs ?? UPLOAD_MS,
    keepAliveTimeout: limits.idleMs,
    // From Node 22.21 on; before, every upgrade offer is an `upgrade` event.
    shouldUpgradeCallback: (request: IncomingMessage) => isForSocket(request, present.last().options),
  } as ServerOptions);
  server.timeout = limits.silenceMs;
  server.maxConnections = MOST_CONNECTIONS;
  // Their total size is limited instead.
  server.maxHeadersCount = 0;
  takeUpgrades(server, present);
  answerRequests(server, options, present);
  await listen(server, options);
  const { port } = server.address() as AddressInfo;
  const url = `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
  log.info({ url }, `http listener on ${url}`);
  return {
    url,
    port,
    /**
     * Serves these from now on; null: requests wait for the next. Resolves when nothing is being answered any more from
     * those before, whose sockets are told to connect again.
     */
    serve: present.replace,
    /** Accepts no new requests and resolves when the running ones have ended. */
    close: () =>
      new Promise<void>((resolve) => {
        const cut = setTimeout(() => server.closeAllConnections(), CLOSE_MS);
        void present.close();
        server.close(() => {
          clearTimeout(cut);
          resolve();
        });
        server.closeIdleConnections();
      }),
  };
}

function listen(server: Server, { host, port, log }: BoardOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    const fail = (error: NodeJS.ErrnoException) => reject(cannotListen(host, port, error));
    server.once('error', fail);
    server.listen(port, host, () => {
      server.off('error', fail);
      server.on('error', (error) => log.error({ err: error }, 'HTTP listener failed'));
      resolve();
    });
  });
}

type Present = ReturnType<typeof createPresent>;

/** Of the gateways that follow one another when the configuration changes, the one that answers. */
function createPresent(first: BoardOptions, lasting: Omit<Entrance, 'door'>, limits: ConnectionLimits) {
  let last = serving(first, lasting);
  let isServing = true;
  let isOver = false;
  let waiting: (() => void)[] = [];

  function go(): void {
    const all = waiting;
    waiting = [];
    for (const proceed of all) proceed();
  }

  return {
    last: () => last,
    isOver: () => isOver,
    /** null: there is none, and there has been none for `limits.awayMs`. */
    async one(): Promise<Serving | null> {
      if (!isServing && !isOver) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, limits.awayMs);
          waiting.push(() => {
            clearTimeout(timer);
            resolve();
          });
        });
      }
      return isServing ? last : null;
    },
    async replace(next: BoardOptions | null): Promise<void> {
      const before = last;
      isServing = next !== null;
      if (next !== null) {
        await lasting.sessions.keepIn(next.sessions);
        last = serving(next, lasting);
      }
      go();
      await before.end(SERVICE_RESTART);
    },
    async close(): Promise<void> {
      isOver = true;
      go();
      await last.end(GOING_AWAY);
    },
  };
}

type Serving = ReturnType<typeof serving>;

/** Routes and sockets of one gateway, loaded with the first request that needs them. */
function serving(options: BoardOptions, lasting: Omit<Entrance, 'door'>) {
  const { token, log } = options;
  const { sessions } = lasting;
  const door = createDoor(options, sessions);
  const closing = new AbortController();
  const answering = new Set<ServerResponse>();
  /** Connections between guard and handshake. */
  const coming = new Set<Duplex>();
  const loaded = new Map<string, Promise<Sockets>>();
  let app: Promise<RequestListener> | null = null;
  let settled = () => {};

  return {
    /** Looks once more for a session that may have begun at another gateway. */
    async refusalOf(request: IncomingMessage): Promise<DoorRefusal | null> {
      const refusal = door.refusalOf(request);
      const mayHaveBegun = refusal?.status === 401 && request.headers.cookie !== undefined;
      return mayHaveBegun && (await sessions.refresh()) ? door.refusalOf(request) : refusal;
    },
    options,
    door,
    async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
      answering.add(response);
      response.once('close', () => {
        answering.delete(response);
        if (answering.size === 0) settled();
      });
      // A stream may last for hours. Signing out itself has an answer.
      if (request.method === 'GET') endWithSession(request, response, token, { door, ...lasting });
      try {
        app ??= import('./app.js').then(({ createApp }) =>
          createApp(options, { door, ...lasting }, closing.signal),
        );
        (await app)(request, response);
      } catch (error) {
        log.error({ err: error }, 'HTTP listener failed to answer');
        response.writeHead(500).end();
      }
    },
    async shakeHands(request: IncomingMessage, socket: Socket, head: Buffer): Promise<void> {
      const path = pathOf(request);
      const load = socketsAt(path, options);
      if (load === null || !isForSocket(request, options)) {
        return refuseUpgrade(socket, { status: 404, error: 'no such upgrade; ask without one' });
      }
      coming.add(socket);
      try {
        const sockets = loaded.get(path) ?? load();
        loaded.set(path, sockets);
        const { take } = await sockets;
        if (closing.signal.aborted) return refuseUpgrade(socket, { status: 503, error: STOPPING });
        // The session may have ended since the guard saw it.
        const refusal = door.refusalOf(request) ?? take(request, socket, head);
        if (refusal !== null) return refuseUpgrade(socket, refusal);
        endWithSession(request, socket, token, { door, ...lasting });
      } catch (error) {
        log.error({ err: error }, 'HTTP listener failed to open a socket');
        refuseUpgrade(socket, { status: 500, error: 'internal error' });
      } finally {
        coming.delete(socket);
      }
    },
    /** `code`: for the sockets. */
    async end(code: number): Promise<void> {
      if (closing.signal.aborted) return;
      closing.abort(OVER);
      const open = await Promise.all(loaded.values());
      const answered = new Promise<void>((resolve) => {
        settled = resolve;
        if (answering.size === 0) resolve();
      });
      const closed = open.map((each) => each.close(code));
      await orAfter(Promise.all([answered, ...closed]), CLOSE_MS, systemClock);
      for (const response of answering) response.destroy();
      for (const socket of coming) socket.destroy();
      for (const each of open) each.cut();
    },
  };
}

/** Cuts off a line that came with a session when that is over. */
function endWithSession(
  request: IncomingMessage,
  line: Socket | ServerResponse,
  token: string | null,
  { door, sessions }: Entrance,
): void {
  const session = door.sessionOf(request);
  if (session === null || token === null) return;
  const end = sessions.whileOpen(session, token, () => line.destroy());
  line.once('close', end);
}

function answerRequests(server: Server, options: BoardOptions, present: Present): void {
  const { pageFiles, log, limits = LIMITS } = options;
  let page: Promise<RequestListener> | null = null;

  async function take(request: IncomingMessage, response: ServerResponse, begin: () => void): Promise<void> {
    const { socket } = request;
    prepare(response);
    response.once('finish', () => {
      // An unread rest of a request goes with its connection.
      if (!request.complete) socket.destroySoon();
      if (present.isOver()) server.closeIdleConnections();
    });
    const serving = await present.one();
    const refusal = serving === null ? AWAY : await serving.refusalOf(request);
    if (serving === null || refusal !== null) return refuse(request, response, refusal ?? AWAY);
    begin();
    if (pathOf(request) !== UPLOADS) giveUpAfter(limits.requestMs, request, response);
    if (pageFiles === undefined || !isOfThePage(pathOf(request))) return serving.answer(request, response);
    page ??= pageFrom(pageFiles, log);
    (await page)(request, response);
  }

  server.on('request', (request, response) => void take(request, response, () => {}));
  // `Expect: 100-continue`: the client sends its body only once it is admitted.
  server.on(
    'checkContinue',
    (request, response) => void take(request, response, () => response.writeContinue()),
  );
}

/** The server's own time-out is that of the longest requests. */
function giveUpAfter(ms: number, request: IncomingMessage, response: ServerResponse): void {
  if (request.complete) return;
  const { socket } = request;
  const timer = setTimeout(() => {
    if (response.headersSent) socket.destroy();
    else socket.end('HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n', () => socket.destroy());
  }, ms);
  for (const over of ['end', 'close']) request.once(over, () => clearTimeout(timer));
}

/** Closes the connection if the request has an unread rest. */
function refuse(
  request: IncomingMessage,
  response: ServerResponse,
  { status, error, headers }: DoorRefusal,
): void {
  const closes = request.complete ? {} : { connection: 'close' };
  response.writeHead(status, { 'content-type': 'application/json', ...headers, ...closes });
  response.end(JSON.stringify({ error }));
}

/** Upgrades pass the guard before the handshake; the socket library is loaded only then. */
function takeUpgrades(server: Server, present: Present): void {
  server.on('upgrade', async (request: IncomingMessage, duplex: Duplex, head: Buffer) => {
    const socket = duplex as Socket;
    socket.on('error', (error) =>
      present.last().options.log.debug({ err: error }, 'connection for a socket broke off'),
    );
    const serving = await present.one();
    if (serving === null) return refuseUpgrade(socket, AWAY);
    const refusal = await serving.refusalOf(request);
    if (refusal !== null) return refuseUpgrade(socket, refusal);
    await serving.shakeHands(request, socket, head);
  });
}

function isForSocket(request: IncomingMessage, options: BoardOptions): boolean {
  const isWebSocket = request.headers.upgrade?.toLowerCase() === 'websocket';
  return isWebSocket && request.method === 'GET' && socketsAt(pathOf(request), options) !== null;
}

/** Loads the sockets that open at a path; null: none do. */
function socketsAt(path: string, options: BoardOptions): (() => Promise<Sockets>) | null {
  const { tasks, page, log, sockets: limits = SOCKET_LIMITS } = options;
  if (path === '/ws' && tasks !== undefined) {
    return async () => (await import('./socket.js')).createTaskSockets(tasks, limits, log);
  }
  if (path === '/api/board/live' && page !== undefined) {
    return async () => {
      const [{ createLiveSockets }, { chat, version, watch }] = await Promise.all([
        import('./live.js'),
        page(),
      ]);
      return createLiveSockets({ ...chat, version, watch }, limits, log);
    };
  }
  return null;
}

function cannotListen(host: string, port: number, error: NodeJS.ErrnoException): Fault {
  const why =
    error.code === 'EADDRINUSE'
      ? 'that port is in use; choose another in board.port, or 0 for a free one'
      : `${describe(error)}; check board.host and board.port`;
  return new Fault('configuration', `The HTTP listener cannot listen on ${host}:${port}: ${why}`, error);
}
