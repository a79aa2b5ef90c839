/**
 * The HTTP listener: its port, its start and its end, and what each request passes: how many there may be (connections.ts),
 * whom it deals with (door.ts), and what it answers (app.ts, loaded with the first request; upgrade.ts for the socket).
 */
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { OVER } from '../core/clock.js';
import { describe, Fault } from '../core/errors.js';
import type { AppOptions } from './app.js';
import { type ConnectionLimits, type Connections, LIMITS, limitConnections } from './connections.js';
import { type Refusal, refusalOf } from './door.js';
import { SOCKET_LIMITS, type SocketLimits } from './socket-limits.js';
import { takeUpgrades, type Upgrades } from './upgrade.js';

export interface BoardOptions extends AppOptions {
  /** 0 takes a free one. */
  port: number;
  limits?: ConnectionLimits;
  sockets?: SocketLimits;
}

export interface Board {
  url: string;
  port: number;
  /** Takes no new requests, lets those under way end, and resolves. */
  close(): Promise<void>;
}

/** How long requests under way may take once the listener closes. */
const CLOSE_MS = 2000;
/** Of the head of a request. */
const MOST_HEADER_BYTES = 16_384;
/** How often connections are looked at that take too long. */
const LOOK_EVERY_MS = 1_000;

export async function startBoard(options: BoardOptions): Promise<Board> {
  const closing = new AbortController();
  const { server, connections, upgrades } = await listen(options, closing.signal);
  const { port } = server.address() as AddressInfo;
  const url = `http://${options.host.includes(':') ? `[${options.host}]` : options.host}:${port}`;
  options.log.info({ url }, `http listener on ${url}`);
  return {
    url,
    port,
    close: () =>
      new Promise((resolve) => {
        closing.abort(OVER);
        upgrades.close();
        connections.dropSilent();
        const cut = setTimeout(() => {
          server.closeAllConnections();
          upgrades.cut();
        }, CLOSE_MS);
        server.close(() => {
          clearTimeout(cut);
          resolve();
        });
        server.closeIdleConnections();
      }),
  };
}

function answering(options: BoardOptions, closing: AbortSignal): RequestListener {
  let app: Promise<RequestListener> | null = null;
  return async (request, response) => {
    try {
      app ??= import('./app.js').then(({ createApp }) => createApp(options, closing));
      (await app)(request, response);
    } catch (error) {
      options.log.error({ err: error }, 'the HTTP listener cannot answer');
      response.writeHead(500).end();
    }
  };
}

function listen(
  options: BoardOptions,
  closing: AbortSignal,
): Promise<{ server: Server; connections: Connections; upgrades: Upgrades }> {
  const { host, port, log, limits = LIMITS, sockets = SOCKET_LIMITS } = options;
  return new Promise((resolve, reject) => {
    const server = createServer({
      maxHeaderSize: MOST_HEADER_BYTES,
      connectionsCheckingInterval: Math.min(LOOK_EVERY_MS, limits.headersMs),
      insecureHTTPParser: false,
    });
    const connections = limitConnections(server, limits);
    const upgrades = takeUpgrades(server, connections, options, sockets);
    const answer = answering(options, closing);
    const take = (request: IncomingMessage, response: ServerResponse, begin: () => void) => {
      connections.noteAnswering(response);
      // Nothing is read that nobody wanted: what is left of a request goes with its connection.
      const { socket } = request;
      response.once('finish', () => {
        if (!request.complete) socket.destroySoon();
        if (closing.aborted) server.closeIdleConnections();
      });
      const refusal = refusalOf(request, options);
      if (refusal !== null) return refuse(request, response, refusal);
      begin();
      answer(request, response);
    };
    server.on('request', (request, response) => take(request, response, () => {}));
    // A client that asks first whether it may send its body is told only once it may.
    server.on('checkContinue', (request, response) =>
      take(request, response, () => response.writeContinue()),
    );
    const fail = (error: NodeJS.ErrnoException) => reject(cannotListen(host, port, error));
    server.once('error', fail);
    server.listen(port, host, () => {
      server.off('error', fail);
      server.on('error', (error) => log.error({ err: error }, 'the HTTP listener reports an error'));
      resolve({ server, connections, upgrades });
    });
  });
}

/** A connection whose request has more to come is closed, so that it need not be read. */
function refuse(
  request: IncomingMessage,
  response: ServerResponse,
  { status, error, headers }: Refusal,
): void {
  const closes = request.complete ? {} : { connection: 'close' };
  response.writeHead(status, { 'content-type': 'application/json', ...headers, ...closes });
  response.end(JSON.stringify({ error }));
}

function cannotListen(host: string, port: number, error: NodeJS.ErrnoException): Fault {
  const why =
    error.code === 'EADDRINUSE'
      ? 'that port is in use; choose another in board.port, or 0 for a free one'
      : `${describe(error)}; check board.host and board.port`;
  return new Fault('configuration', `The HTTP listener cannot listen on ${host}:${port}: ${why}`, error);
}
