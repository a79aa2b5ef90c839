/** Open sockets of one kind: their number, their liveness, and a session on each. */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { type WebSocket, WebSocketServer } from 'ws';
import type { Log } from '../core/log.js';
import { type DoorRefusal, MOST_BODY_BYTES, refuseUpgrade } from './guard.js';

export type Sockets = ReturnType<typeof createSockets>;

export interface SocketLimits {
  /** Maximum number of open sockets. */
  most: number;
  /** A socket that does not answer a ping before the next one is dropped. */
  heartbeatMs: number;
  /** Maximum of unread bytes before a socket is closed. */
  unreadBytes: number;
}

export interface SocketSession {
  hear(data: Buffer, isBinary: boolean): void;
  /** Others may not take its place. */
  isBusy(): boolean;
  /** Nothing is sent any more. Called at least once. */
  end(): void;
}

const TRY_AGAIN_LATER = 1013;
const FULL: DoorRefusal = {
  status: 429,
  error: 'All sockets that may be open are open, and in use.',
  headers: { 'retry-after': '5' },
};
export function createSockets(
  openSession: (line: WebSocket) => SocketSession,
  limits: SocketLimits,
  log: Log,
) {
  const server = createHandshakes();
  /** The longest silent socket comes first. */
  const open = new Map<WebSocket, { session: SocketSession; answers: boolean }>();
  let heartbeat: NodeJS.Timeout | null = null;
  let emptied = () => {};

  function begin(line: WebSocket): void {
    const session = openSession(line);
    const state = { session, answers: true };
    open.set(line, state);
    heartbeat ??= setInterval(beat, limits.heartbeatMs);
    line.on('message', (data: Buffer, isBinary) => {
      open.delete(line);
      open.set(line, state);
      session.hear(data, isBinary);
    });
    line.on('pong', () => {
      state.answers = true;
    });
    line.on('error', (error) => log.debug({ err: error }, 'socket failed'));
    line.on('close', () => drop(line, session));
  }

  function beat(): void {
    for (const [line, state] of open) {
      // A paused socket's pong may be waiting to be read.
      if (!state.answers && !line.isPaused) drop(line, state.session);
      state.answers = line.isPaused;
      line.ping();
    }
  }

  function drop(line: WebSocket, session: SocketSession): void {
    open.delete(line);
    session.end();
    line.terminate();
    if (open.size > 0) return;
    emptied();
    if (heartbeat !== null) clearInterval(heartbeat);
    heartbeat = null;
  }

  /** Drops the longest silent socket that is not busy, so that silent ones keep nobody out. */
  function makeRoom(): boolean {
    if (open.size < limits.most) return true;
    const idle = [...open].find(([, { session }]) => !session.isBusy());
    if (idle === undefined) return false;
    const [line, { session }] = idle;
    line.close(TRY_AGAIN_LATER, 'others are waiting');
    drop(line, session);
    return true;
  }

  return {
    /** Shakes hands and returns null, or returns a refusal. */
    take(request: IncomingMessage, socket: Socket, head: Buffer): DoorRefusal | null {
      if (!makeRoom()) return FULL;
      server.handleUpgrade(request, socket, head, begin);
      return null;
    },
    /** Resolves when the other sides have closed, too. */
    close(code: number): Promise<void> {
      for (const line of open.keys()) line.close(code, 'the gateway is stopping');
      return new Promise((resolve) => {
        emptied = resolve;
        if (open.size === 0) resolve();
      });
    },
    cut() {
      for (const [line, { session }] of open) drop(line, session);
    },
  };
}

function createHandshakes(): WebSocketServer {
  const server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    // A larger message closes the socket with 1009. A compressed one could expand far beyond its own size.
    maxPayload: MOST_BODY_BYTES,
    perMessageDeflate: false,
  });
  server.on('wsClientError', (error, socket) => refuseUpgrade(socket, { status: 400, error: error.message }));
  return server;
}
