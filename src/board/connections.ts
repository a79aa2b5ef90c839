/**
 * The connections of the HTTP listener: as many as it keeps at once. Where there is no room for another, the one goes that
 * has waited longest without a whole request, so that thousands that say nothing do not keep anybody out.
 */
import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

export interface ConnectionLimits {
  /** At once, in all. */
  connections: number;
  /** For the headers of a request; a connection that says nothing has as long. */
  headersMs: number;
  /** For a whole request. */
  requestMs: number;
  /** Between two requests of a connection. Longer than proxies keep theirs, so that none of these is just being closed. */
  idleMs: number;
  /** Without a byte in either direction, while an answer is sent. */
  silenceMs: number;
}

export const LIMITS: ConnectionLimits = {
  connections: 256,
  headersMs: 10_000,
  requestMs: 30_000,
  idleMs: 65_000,
  silenceMs: 60_000,
};

export interface Connections {
  /** With every request that is being answered. */
  noteAnswering(response: ServerResponse): void;
  /** A connection that is not one of HTTP any more counts no longer. */
  release(socket: Socket): void;
  /** Those on which nothing was ever said: at the end nobody need wait for them. */
  dropSilent(): void;
}

export function limitConnections(server: Server, limits: ConnectionLimits): Connections {
  server.headersTimeout = limits.headersMs;
  server.requestTimeout = limits.requestMs;
  server.keepAliveTimeout = limits.idleMs;
  server.timeout = limits.silenceMs;
  // All of them, so that none is left out unseen; their size is limited.
  server.maxHeadersCount = 0;

  /** With how many requests that are being answered; who has waited longest comes first. */
  const open = new Map<Socket, number>();

  server.on('connection', (socket: Socket) => {
    if (open.size >= limits.connections) {
      const waiting = waitingLongest(open) ?? socket;
      waiting.destroy();
      open.delete(waiting);
      if (waiting === socket) return;
    }
    open.set(socket, 0);
    socket.once('close', () => open.delete(socket));
  });

  return {
    noteAnswering(response) {
      const { socket } = response;
      if (socket === null) return;
      count(socket, 1);
      response.once('close', () => count(socket, -1));
    },
    release: (socket) => open.delete(socket),
    dropSilent() {
      for (const socket of open.keys()) if (socket.bytesRead === 0) socket.destroy();
    },
  };

  function count(socket: Socket, change: number): void {
    const before = open.get(socket);
    if (before === undefined) return;
    open.delete(socket);
    open.set(socket, before + change);
  }
}

function waitingLongest(open: Map<Socket, number>): Socket | undefined {
  for (const [socket, answering] of open) if (answering === 0) return socket;
  return undefined;
}
