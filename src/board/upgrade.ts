/**
 * Requests to become something else than HTTP. The one for the socket passes the same door as any other request, before
 * the handshake, and only then is the library loaded that speaks it (sockets.ts). Whoever offers anything else, as some
 * clients do with every request (`Upgrade: h2c`), is answered as if it had not: HTTP allows that.
 */
import { type IncomingMessage, type Server, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { AppOptions } from './app.js';
import type { Connections } from './connections.js';
import { type Refusal, refusalOf } from './door.js';
import type { SocketLimits } from './socket-limits.js';
import type { Sockets } from './sockets.js';

export interface Upgrades {
  /** Says goodbye on every socket, and takes no more. */
  close(): void;
  /** Whoever has not said goodbye by now. */
  cut(): void;
}

const PATH = '/ws';
/** What a request for HTTP alone does not have, as headers and as what `Connection` names. */
const OFFERS = ['upgrade', 'http2-settings'];

export function takeUpgrades(
  server: Server,
  connections: Connections,
  options: AppOptions,
  limits: SocketLimits,
): Upgrades {
  const { tasks, log } = options;
  let sockets: Promise<Sockets> | null = null;
  let isClosing = false;
  /** Between the door and the handshake. */
  const coming = new Set<Duplex>();

  server.on('upgrade', async (request: IncomingMessage, duplex: Duplex, head: Buffer) => {
    const socket = duplex as Socket;
    if (tasks === undefined || !isForSocket(request)) {
      connections.release(socket);
      return giveBack(server, request, socket, head);
    }
    socket.on('error', (error) => log.debug({ err: error }, 'a connection for the socket broke off'));
    const refusal = refusalOf(request, options);
    if (refusal !== null) return refuse(socket, refusal);
    connections.release(socket);
    coming.add(socket);
    try {
      sockets ??= import('./sockets.js').then(({ createSockets }) => createSockets(tasks, limits, log));
      const { take } = await sockets;
      if (isClosing) return refuse(socket, { status: 503, error: 'The gateway is stopping.' });
      const full = take(request, socket, head);
      if (full !== null) refuse(socket, full);
    } catch (error) {
      log.error({ err: error }, 'the HTTP listener cannot open a socket');
      refuse(socket, { status: 500, error: 'internal error' });
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

function isForSocket({ method, url = '', headers }: IncomingMessage): boolean {
  return method === 'GET' && url.split('?', 1)[0] === PATH && headers.upgrade?.toLowerCase() === 'websocket';
}

/** The same request without its offer, read once more from its first byte. */
function giveBack(server: Server, request: IncomingMessage, socket: Socket, head: Buffer): void {
  const { method, url, httpVersion, rawHeaders } = request;
  const lines = [`${method} ${url} HTTP/${httpVersion}`];
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const [name = '', value = ''] = rawHeaders.slice(at, at + 2);
    const isOffer = (word: string) => OFFERS.includes(word.trim().toLowerCase());
    if (isOffer(name)) continue;
    const kept = /^connection$/i.test(name)
      ? value
          .split(',')
          .filter((word) => !isOffer(word))
          .join()
      : value;
    lines.push(`${name}: ${kept}`);
  }
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), head]));
  server.emit('connection', socket);
}

function refuse(socket: Socket, { status, error, headers = {} }: Refusal): void {
  const body = JSON.stringify({ error });
  const lines = Object.entries({
    ...{ 'content-type': 'application/json', 'content-length': Buffer.byteLength(body), connection: 'close' },
    ...headers,
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`);
  socket.destroySoon();
}
