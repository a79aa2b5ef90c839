/**
 * The sockets at `/ws`: their number, their liveness, and a session on each. A session handles its messages one by one;
 * the outcome of each task it submitted is sent in parallel, exactly once, and nothing after `task:stop`. An invalid
 * message gets an answer and ends nothing.
 */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
import { OVER } from '../core/clock.js';
import type { Log } from '../core/log.js';
import type { Tasks } from '../core/task.js';
import { parsed } from './api.js';
import { type DoorRefusal, MOST_BODY_BYTES } from './guard.js';
import { complaintOf, reasonOf, type SocketAnswer, SocketMessage, TOO_MANY_WAIT, wishOf } from './schemas.js';
import { followTask } from './task-stream.js';

export type Sockets = ReturnType<typeof createSockets>;

export interface SocketLimits {
  /** Maximum number of open sockets. */
  most: number;
  /** A socket that does not answer a ping before the next one is dropped. */
  heartbeatMs: number;
  /** Maximum of unread bytes before a socket is closed. */
  unreadBytes: number;
}

type SocketSession = ReturnType<typeof createSession>;

const GOING_AWAY = 1001;
const TRY_AGAIN_LATER = 1013;
const FULL: DoorRefusal = {
  status: 429,
  error: 'All sockets that may be open are open, and have tasks.',
  headers: { 'retry-after': '5' },
};
/** With this many messages waiting, or after one this large, the socket is paused until they are handled. */
const MOST_WAITING = 16;
const LARGE_BYTES = 65_536;

type Submitted = ReturnType<typeof SocketMessage.parse> & { type: 'task:submit' };

export function createSockets(tasks: Tasks, limits: SocketLimits, log: Log) {
  const server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    // A larger message closes the socket with 1009. A compressed one could expand far beyond its own size.
    maxPayload: MOST_BODY_BYTES,
    perMessageDeflate: false,
  });
  /** The longest silent socket comes first. */
  const open = new Map<WebSocket, { session: SocketSession; answers: boolean }>();
  let heartbeat: NodeJS.Timeout | null = null;

  server.on('wsClientError', refuseHandshake);

  function begin(line: WebSocket): void {
    const session = createSession(line, tasks, limits.unreadBytes, log);
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
    forget(line);
    session.end();
    line.terminate();
  }

  function forget(line: WebSocket): void {
    open.delete(line);
    if (open.size > 0 || heartbeat === null) return;
    clearInterval(heartbeat);
    heartbeat = null;
  }

  /** Drops the longest silent socket without a task, so that silent ones keep nobody out. */
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
    close() {
      for (const line of open.keys()) line.close(GOING_AWAY, 'the gateway is stopping');
    },
    cut() {
      for (const [line, { session }] of open) drop(line, session);
    },
  };
}

function refuseHandshake(error: Error, socket: Duplex): void {
  const body = JSON.stringify({ error: error.message });
  const head = `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close`;
  socket.end(`HTTP/1.1 400 Bad Request\r\n${head}\r\n\r\n${body}`);
}

function createSession(line: WebSocket, tasks: Tasks, unreadBytes: number, log: Log) {
  const following = new Map<string, AbortController>();
  let waiting: { data: Buffer; isBinary: boolean }[] = [];
  let isWorking = false;
  let isOver = false;

  function say(answer: SocketAnswer, sent?: () => void): void {
    line.send(JSON.stringify(answer), sent);
    if (line.bufferedAmount <= unreadBytes) return;
    log.warn({ bytes: line.bufferedAmount }, 'socket does not read; closed');
    line.terminate();
  }

  function refuse(
    taskId: string | null,
    error: string,
    more: { path?: string; about?: 'task:stop' | 'task:message' } = {},
  ): void {
    say({ type: 'task:error', taskId, error, ...more });
  }

  async function work(): Promise<void> {
    isWorking = true;
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      try {
        await handle(next.isBinary ? undefined : (parsed(next.data) as object | null | undefined));
      } catch (error) {
        log.error({ err: error }, 'socket message failed');
        refuse(null, 'internal error');
      }
    }
    isWorking = false;
    if (line.isPaused) line.resume();
  }

  async function handle(given: object | null | undefined): Promise<void> {
    if (given === undefined) return refuse(null, 'A message is text, and JSON.');
    const fields: Record<string, unknown> = { ...given };
    const taskId = typeof fields.taskId === 'string' ? fields.taskId : null;
    const { success, data: message, error } = SocketMessage.safeParse(fields);
    if (!success) {
      const { error: words, ...place } = complaintOf(error);
      return refuse(taskId, words, place);
    }
    if (message.type === 'task:submit') return submit(message);
    if (message.type === 'task:stop') return stop(message.taskId);
    const mode = message.mode ?? message.injectionMode ?? 'followup';
    const done = await tasks.tell(message.taskId, message.message, mode);
    if (done === 'added') return;
    const why = done === 'ended' ? 'The task has ended.' : 'There is no such task.';
    refuse(message.taskId, why, { path: 'taskId', about: 'task:message' });
  }

  async function submit({ deltas, type: _, ...body }: Submitted): Promise<void> {
    const answer = await tasks.submit(wishOf(body));
    if (answer.kind === 'unknown agent') return refuse(null, answer.reason, { path: 'agent' });
    if (answer.kind === 'conflict') {
      return refuse(null, 'This key was used with another body.', { path: 'idempotency_key' });
    }
    if (answer.kind === 'full') return refuse(null, TOO_MANY_WAIT);
    const { id } = answer.task;
    say({ type: 'task:started', taskId: id });
    if (!isOver && !following.has(id)) void follow(id, deltas);
  }

  /** Never rejects. */
  async function follow(id: string, deltas: boolean): Promise<void> {
    const over = new AbortController();
    following.set(id, over);
    try {
      for await (const progress of followTask(tasks, id, over.signal)) {
        if (over.signal.aborted) return;
        if (progress.kind === 'end') {
          const { status, result } = progress.task;
          if (status === 'completed' && result !== null) say({ type: 'task:completed', taskId: id, result });
          else refuse(id, reasonOf(progress.task));
        }
        if (progress.kind !== 'text-delta' || !deltas) continue;
        const { text } = progress;
        // Back-pressure: the next delta waits until this one is written.
        await new Promise<void>((resolve) => say({ type: 'task:text-delta', taskId: id, text }, resolve));
      }
    } catch (error) {
      log.error({ err: error, task: id }, 'task not followed any more');
      if (!over.signal.aborted) refuse(id, 'The gateway lost sight of this task; ask for it under its key.');
    } finally {
      if (following.get(id) === over) following.delete(id);
    }
  }

  async function stop(taskId: string): Promise<void> {
    // First, so that nothing more is sent.
    following.get(taskId)?.abort(OVER);
    following.delete(taskId);
    if ((await tasks.stop(taskId)) === 'unknown') {
      refuse(taskId, 'There is no such task.', { path: 'taskId', about: 'task:stop' });
    }
  }

  return {
    hear(data: Buffer, isBinary: boolean): void {
      if (isOver) return;
      waiting.push({ data, isBinary });
      if (waiting.length >= MOST_WAITING || data.length > LARGE_BYTES) line.pause();
      if (!isWorking) void work();
    },
    /** It follows a task or is handling a message. */
    isBusy: () => isWorking || following.size > 0,
    /** Stops sending and handling messages; its tasks continue. */
    end(): void {
      isOver = true;
      waiting = [];
      for (const over of following.values()) over.abort(OVER);
      following.clear();
    },
  };
}
