/**
 * The open sockets: how many there may be, and which of them are still there. Where there is no room for another, the
 * one goes that has no task and has been silent for longest, so that thousands that say nothing keep nobody out.
 */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { type WebSocket, WebSocketServer } from 'ws';
import type { Log } from '../core/log.js';
import type { Tasks } from '../core/task.js';
import { MOST_BODY_BYTES, type Refusal } from './door.js';
import type { SocketLimits } from './socket-limits.js';
import { createTalk, type Talk } from './talk.js';

export interface Sockets {
  /** Shakes hands; or why not. The head of the request was looked at. */
  take(request: IncomingMessage, socket: Socket, head: Buffer): Refusal | null;
  close(): void;
  cut(): void;
}

const GOING_AWAY = 1001;
const TRY_AGAIN_LATER = 1013;
const RETRY_AFTER_SECONDS = '5';
const FULL: Refusal = {
  ...{ status: 429, error: 'As many sockets are open as may be, and all of them have tasks.' },
  headers: { 'retry-after': RETRY_AFTER_SECONDS },
};

interface Open {
  talk: Talk;
  /** It has answered since it was asked last. */
  answers: boolean;
}

export function createSockets(tasks: Tasks, limits: SocketLimits, log: Log): Sockets {
  const server = new WebSocketServer({
    ...{ noServer: true, clientTracking: false },
    // Closes with 1009 what is larger. What is compressed could be far larger than what came.
    ...{ maxPayload: MOST_BODY_BYTES, perMessageDeflate: false },
  });
  /** Who has been silent for longest comes first. */
  const open = new Map<WebSocket, Open>();
  let heartbeat: NodeJS.Timeout | null = null;

  server.on('wsClientError', (error, socket) => {
    const body = JSON.stringify({ error: error.message });
    const head = `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close`;
    socket.end(`HTTP/1.1 400 Bad Request\r\n${head}\r\n\r\n${body}`);
  });

  function begin(line: WebSocket): void {
    const talk = createTalk(line, tasks, limits.unreadBytes, log);
    const state: Open = { talk, answers: true };
    open.set(line, state);
    heartbeat ??= setInterval(beat, limits.heartbeatMs);
    line.on('message', (data: Buffer, isBinary) => {
      open.delete(line);
      open.set(line, state);
      talk.hear(data, isBinary);
    });
    line.on('pong', () => {
      state.answers = true;
    });
    // It closes by itself; the code says why.
    line.on('error', (error) => log.debug({ err: error }, 'a socket reports an error'));
    line.on('close', () => {
      forget(line);
      talk.end();
    });
  }

  function beat(): void {
    for (const [line, state] of open) {
      // What it has sent waits for us: an answer of it may be among that.
      if (!state.answers && !line.isPaused) drop(line, state.talk);
      state.answers = line.isPaused;
      line.ping();
    }
  }

  function drop(line: WebSocket, talk: Talk): void {
    forget(line);
    talk.end();
    line.terminate();
  }

  function forget(line: WebSocket): void {
    open.delete(line);
    if (open.size > 0 || heartbeat === null) return;
    clearInterval(heartbeat);
    heartbeat = null;
  }

  function makesRoom(): boolean {
    if (open.size < limits.most) return true;
    for (const [line, { talk }] of open) {
      if (talk.isBusy()) continue;
      line.close(TRY_AGAIN_LATER, 'others are waiting');
      drop(line, talk);
      return true;
    }
    return false;
  }

  return {
    take(request, socket, head) {
      if (!makesRoom()) return FULL;
      server.handleUpgrade(request, socket, head, begin);
      return null;
    },
    close() {
      for (const line of open.keys()) line.close(GOING_AWAY, 'the gateway is stopping');
    },
    cut() {
      for (const [line, { talk }] of open) drop(line, talk);
    },
  };
}
