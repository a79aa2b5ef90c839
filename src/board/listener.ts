/** The HTTP listener: its port, its start and its end. What it answers is in app.ts, loaded with the first request. */
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, Fault } from '../core/errors.js';
import type { AppOptions } from './app.js';

export interface BoardOptions extends AppOptions {
  /** 0 takes a free one. */
  port: number;
}

export interface Board {
  url: string;
  port: number;
  /** Takes no new requests, lets those under way end, and resolves. */
  close(): Promise<void>;
}

/** How long requests under way may take once the listener closes. */
const CLOSE_MS = 2000;

export async function startBoard(options: BoardOptions): Promise<Board> {
  const server = await listen(options);
  const { port } = server.address() as AddressInfo;
  const url = `http://${options.host.includes(':') ? `[${options.host}]` : options.host}:${port}`;
  options.log.info({ url }, `http listener on ${url}`);
  return {
    url,
    port,
    close: () =>
      new Promise((resolve) => {
        const cut = setTimeout(() => server.closeAllConnections(), CLOSE_MS);
        server.close(() => {
          clearTimeout(cut);
          resolve();
        });
        server.closeIdleConnections();
      }),
  };
}

function answering(options: BoardOptions): RequestListener {
  let app: Promise<RequestListener> | null = null;
  return async (request, response) => {
    try {
      app ??= import('./app.js').then(({ createApp }) => createApp(options));
      (await app)(request, response);
    } catch (error) {
      options.log.error({ err: error }, 'the HTTP listener cannot answer');
      response.writeHead(500).end();
    }
  };
}

function listen(options: BoardOptions): Promise<Server> {
  const { host, port, log } = options;
  return new Promise((resolve, reject) => {
    const server = createServer(answering(options));
    const refuse = (error: NodeJS.ErrnoException) => reject(cannotListen(host, port, error));
    server.once('error', refuse);
    server.listen(port, host, () => {
      server.off('error', refuse);
      server.on('error', (error) => log.error({ err: error }, 'the HTTP listener reports an error'));
      resolve(server);
    });
  });
}

function cannotListen(host: string, port: number, error: NodeJS.ErrnoException): Fault {
  const why =
    error.code === 'EADDRINUSE'
      ? 'that port is in use; choose another in board.port, or 0 for a free one'
      : `${describe(error)}; check board.host and board.port`;
  return new Fault('configuration', `The HTTP listener cannot listen on ${host}:${port}: ${why}`, error);
}
