/**
 * The HTTP listener: its port, start and stop, and connection time-outs. The guard checks every request's head
 * (guard.ts); routes (app.ts) and sockets (socket.ts) are loaded with the first request that needs them.
 */
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
import { OVER } from '../core/clock.js';
import { describe, Fault } from '../core/errors.js';
import type { AppOptions } from './app.js';
import { type DoorRefusal, refusalOf, refuseUpgrade } from './guard.js';
import type { SocketLimits, Sockets } from './socket.js';

interface ConnectionLimits {
  /** Time-out for a request's headers; also for a silent connection. */
  headersMs: number;
  requestMs: number;
  /** Between two requests; longer than proxies keep connections, so that they do not use one that is closing. */
  idleMs: number;
  /** Without a byte in either direction while an answer is sent. */
  silenceMs: number;
}

export interface BoardOptions extends AppOptions {
  /** 0: any free port. */
  port: number;
  limits?: ConnectionLimits;
  sockets?: SocketLimits;
}

export type Board = Awaited<ReturnType<typeof startBoard>>;

export const LIMITS: ConnectionLimits = {
  headersMs: 10_000,
  requestMs: 30_000,
  idleMs: 65_000,
  silenceMs: 60_000,
};
const SOCKET_LIMITS: SocketLimits = { most: 256, heartbeatMs: 30_000, unreadBytes: 8_000_000 };
/** Time for running requests once the listener closes. */
const CLOSE_MS = 2000;
const MOST_HEADER_BYTES = 16_384;
const LOOK_EVERY_MS = 1_000;

export async function startBoard(options: BoardOptions) {
  const { host, log, limits = LIMITS } = options;
  const closing = new AbortController();
  const server = createServer({
    maxHeaderSize: MOST_HEADER_BYTES,
    connectionsCheckingInterval: Math.min(LOOK_EVERY_MS, limits.headersMs),
    headersTimeout: limits.headersMs,
    requestTimeout: limits.requestMs,
    keepAliveTimeout: limits.idleMs,
    // From Node 22.21 on; before, every upgrade offer is an `upgrade` event.
    shouldUpgradeCallback: (request: IncomingMessage) => isForSocket(request, options),
  } as ServerOptions);
  server.timeout = limits.silenceMs;
  // Their total size is limited instead.
  server.maxHeadersCount = 0;
  const sockets = takeUpgrades(server, options);
  answerRequests(server, options, closing.signal);
  await listen(server, options);
  const { port } = server.address() as AddressInfo;
  const url = `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
  log.info({ url }, `http listener on ${url}`);
  return {
    url,
    port,
    /** Accepts no new requests and resolves when the running ones have ended. */
    close: () =>
      new Promise<void>((resolve) => {
        closing.abort(OVER);
        sockets.close();
        const cut = setTimeout(() => {
          server.closeAllConnections();
          sockets.cut();
        }, CLOSE_MS);
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

function answerRequests(server: Server, options: BoardOptions, closing: AbortSignal): void {
  let app: Promise<RequestListener> | null = null;

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      app ??= import('./app.js').then(({ createApp }) => createApp(options, closing));
      (await app)(request, response);
    } catch (error) {
      options.log.error({ err: error }, 'HTTP listener failed to answer');
      response.writeHead(500).end();
    }
  }

  function take(request: IncomingMessage, response: ServerResponse, begin: () => void): void {
    const { socket } = request;
    response.once('finish', () => {
      // An unread rest of a request goes with its connection.
      if (!request.complete) socket.destroySoon();
      if (closing.aborted) server.closeIdleConnections();
    });
    const refusal = refusalOf(request, options);
    if (refusal !== null) {
      refuse(request, response, refusal);
      return;
    }
    begin();
    void answer(request, response);
  }

  server.on('request', (request, response) => take(request, response, () => {}));
  // `Expect: 100-continue`: the client sends its body only once it is admitted.
  server.on('checkContinue', (request, response) => take(request, response, () => response.writeContinue()));
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
function takeUpgrades(server: Server, options: BoardOptions): { close(): void; cut(): void } {
  const { tasks, log, sockets: limits = SOCKET_LIMITS } = options;
  let sockets: Promise<Sockets> | null = null;
  let isClosing = false;
  /** Connections between guard and handshake. */
  const coming = new Set<Duplex>();

  server.on('upgrade', async (request: IncomingMessage, duplex: Duplex, head: Buffer) => {
    const socket = duplex as Socket;
    socket.on('error', (error) => log.debug({ err: error }, 'connection for a socket broke off'));
    const refusal = refusalOf(request, options);
    if (refusal !== null) return refuseUpgrade(socket, refusal);
    if (tasks === undefined || !isForSocket(request, options)) {
      return refuseUpgrade(socket, { status: 404, error: 'no such upgrade; ask without one' });
    }
    coming.add(socket);
    try {
      sockets ??= import('./socket.js').then(({ createSockets }) => createSockets(tasks, limits, log));
      const { take } = await sockets;
      if (isClosing) return refuseUpgrade(socket, { status: 503, error: 'The gateway is stopping.' });
      const full = take(request, socket, head);
      if (full !== null) refuseUpgrade(socket, full);
    } catch (error) {
      log.error({ err: error }, 'HTTP listener failed to open a socket');
      refuseUpgrade(socket, { status: 500, error: 'internal error' });
    } finally {
      coming.delete(socket);
    }
  });

  return {
    close() {
      isClosing = true;
      void sockets?.then(({ close }) => close());
    },
    cut() {
      for (const socket of coming) socket.destroy();
      void sockets?.then(({ cut }) => cut());
    },
  };
}

function isForSocket({ method, url = '', headers }: IncomingMessage, { tasks }: BoardOptions): boolean {
  const isWebSocket = headers.upgrade?.toLowerCase() === 'websocket';
  return tasks !== undefined && method === 'GET' && url.split('?', 1)[0] === '/ws' && isWebSocket;
}

function cannotListen(host: string, port: number, error: NodeJS.ErrnoException): Fault {
  const why =
    error.code === 'EADDRINUSE'
      ? 'that port is in use; choose another in board.port, or 0 for a free one'
      : `${describe(error)}; check board.host and board.port`;
  return new Fault('configuration', `The HTTP listener cannot listen on ${host}:${port}: ${why}`, error);
}
