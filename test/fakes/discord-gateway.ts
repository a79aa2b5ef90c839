/**
 * The gateway of the fake Discord: sessions that outlive their connections, what they missed replayed on a resume,
 * and every way in which Discord ends one.
 */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { type RawData, type WebSocket, WebSocketServer } from 'ws';
import { isPayload } from './discord-form.js';
import { INTENT, seenWith } from './discord-intents.js';
import { concerns, type Refusal, type Shard, shardOf, shardRefusal, WHOLE } from './discord-shards.js';
import type { Payload, SessionCounts, Settings } from './discord-words.js';

/** What happened, before it is fitted to what a session asked for. */
export interface Event {
  name: string;
  data: Payload;
}

export interface Gateway {
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
  dispatch(event: Event): void;
  closeAll(code: number, shardId?: number): void;
  reconnect(how?: { andClose: boolean }): void;
  /** Whoever connects is told that its session is invalid, before anything else. */
  refuseBeforeHello(on: boolean): void;
  invalidate(resumable: boolean): void;
  invalidateAfterResume(): void;
  invalidateIdentifies(times: number): void;
  muteHeartbeats(on: boolean): void;
  refuseIdentify(code: number | null): void;
  /** Nothing that is begun or resumed is answered any more. */
  fallSilent(): void;
  hangUp(): void;
  /** How many sessions may still be begun today. */
  sessionsLeft(): number;
  /** More were begun than may be, so the token is worth nothing any more. */
  isTokenReset(): boolean;
  sessions(): SessionCounts;
  heal(): void;
}

interface GatewayParts {
  token: string;
  botId: string;
  settings: Settings;
  newId(): string;
  now(): number;
  /** READY without what belongs to the session, and the events that follow it. */
  greeting(shard: Shard): { ready: Payload; guilds: Event[] };
  guildsOn(shard: Shard): number;
  /** A session began, or was taken up again. */
  onSession(): void;
  /** What it had missed was sent to it. */
  onReplay(): void;
  look(): void;
}

interface Session {
  id: string;
  shard: Shard;
  intents: number;
  seq: number;
  /** What was dispatched and perhaps not received. */
  log: { seq: number; text: string }[];
  socket: Connection | null;
  /** When the connection was lost. */
  lostAt: number;
}

interface Connection {
  ws: WebSocket;
  tcp: Duplex;
  session: Session | null;
}

const DAY_MS = 86_400_000;

const OP = {
  dispatch: 0,
  heartbeat: 1,
  identify: 2,
  resume: 6,
  reconnect: 7,
  invalid: 9,
  hello: 10,
  ack: 11,
} as const;

/** Presence, voice, members and the like: taken, without effect here. */
const IDLE_OPS = new Set([3, 4, 8, 31]);

/** With these the session is over, too. */
const CLOSES_SESSION = new Set([4003, 4004, 4005, 4007, 4009, 4010, 4011, 4012, 4013, 4014]);

export function createGateway(parts: GatewayParts): Gateway {
  const { token, settings, now, look } = parts;
  const server = new WebSocketServer({ noServer: true });
  const connections = new Set<Connection>();
  const sessions = new Map<string, Session>();
  const counts = { connections: 0, identified: 0, resumed: 0, refused: 0, tooSoon: 0, heartbeats: 0 };
  let refusesBeforeHello = false;
  let muted = false;
  let identifyCode: number | null = null;
  let invalidAfterResume = false;
  let invalidIdentifies = 0;
  let silent = false;
  /** When sessions were begun, or tried to be. */
  let identifies: number[] = [];
  /** When the last of each bucket was let in. */
  const buckets = new Map<number, number>();
  let tokenReset = false;

  function identifiesToday(): number {
    identifies = identifies.filter((at) => now() - at < DAY_MS);
    return identifies.length;
  }

  function write({ ws }: Connection, op: number, d: unknown): void {
    ws.send(JSON.stringify({ op, d, s: null, t: null }));
  }

  /** One identify per five seconds and bucket; Discord answers the others with op 9 (discord/discord-api-docs#1328, #1621). */
  function isTooSoon({ id }: Shard): boolean {
    const bucket = id % settings.maxConcurrency;
    const isSoon = now() - (buckets.get(bucket) ?? Number.NEGATIVE_INFINITY) < settings.identifyEveryMs;
    if (!isSoon) buckets.set(bucket, now());
    return isSoon;
  }

  function push(session: Session, { name, data }: Event): void {
    const seen = seenWith(session.intents, name, data, parts.botId);
    if (seen === null) return;
    session.seq += 1;
    const text = JSON.stringify({ op: OP.dispatch, t: name, s: session.seq, d: seen });
    session.log.push({ seq: session.seq, text });
    session.socket?.ws.send(text);
  }

  function attach(connection: Connection, session: Session): void {
    session.socket = connection;
    connection.session = session;
  }

  /** From now on what comes is kept for a resume, whenever the connection ends. */
  function leave(connection: Connection): Session | null {
    const { session } = connection;
    connection.session = null;
    if (session === null) return null;
    session.socket = null;
    session.lostAt = now();
    return session;
  }

  function detach(connection: Connection): Session | null {
    connections.delete(connection);
    return leave(connection);
  }

  function forget(session: Session): void {
    if (session.socket !== null) leave(session.socket);
    sessions.delete(session.id);
  }

  function isOver({ socket, lostAt }: Session): boolean {
    return socket === null && now() - lostAt > settings.sessionMemoryMs;
  }

  function close(connection: Connection, code: number, reason = ''): void {
    const session = detach(connection);
    if (session !== null && CLOSES_SESSION.has(code)) forget(session);
    if (code === 1006) connection.ws.terminate();
    else if (code === 1005) connection.ws.close();
    else connection.ws.close(code, reason);
  }

  function refuse(connection: Connection, [code, reason]: Refusal): void {
    counts.refused += 1;
    close(connection, code, reason);
  }

  function identityRefusal({ session }: Connection, d: Payload): Refusal | null {
    if (session !== null) return [4005, 'Already authenticated.'];
    return d.token === token && !tokenReset ? null : [4004, 'Authentication failed.'];
  }

  function intentsRefusal(intents: number): Refusal | null {
    if (!Number.isInteger(intents) || intents < 0) return [4013, 'Invalid intent(s).'];
    const hidden = (intents & INTENT.messageContent) !== 0 && !settings.messageContentGranted;
    return hidden ? [4014, 'Disallowed intent(s).'] : null;
  }

  function identify(connection: Connection, d: Payload): void {
    if (silent) return;
    identifies.push(now());
    if (identifiesToday() > settings.identifiesPerDay) tokenReset = true;
    const intents = Number(d.intents);
    const asScripted: Refusal | null = identifyCode === null ? null : [identifyCode, 'As the test wants it.'];
    // Whoever does not say is the only one.
    const shard = d.shard === undefined ? WHOLE : shardOf(d.shard);
    const refusal =
      asScripted ??
      identityRefusal(connection, d) ??
      intentsRefusal(intents) ??
      shardRefusal(shard, settings.guildsPerShard, parts.guildsOn);
    if (refusal !== null || shard === null) {
      refuse(connection, refusal ?? [4010, 'Invalid shard.']);
      return;
    }
    const isUnlucky = invalidIdentifies > 0;
    if (isUnlucky || isTooSoon(shard)) {
      if (isUnlucky) invalidIdentifies -= 1;
      else counts.tooSoon += 1;
      counts.refused += 1;
      write(connection, OP.invalid, false);
      return;
    }
    // Nobody will come back for those.
    for (const session of sessions.values()) {
      const isSame = session.shard.id === shard.id && session.shard.count === shard.count;
      if (isSame && session.socket === null) sessions.delete(session.id);
    }
    const fresh = { seq: 0, log: [], socket: null, lostAt: 0 };
    const session: Session = { id: parts.newId(), shard, intents, ...fresh };
    sessions.set(session.id, session);
    attach(connection, session);
    counts.identified += 1;
    const { ready, guilds } = parts.greeting(shard);
    const { id, count } = shard;
    push(session, { name: 'READY', data: { ...ready, session_id: session.id, shard: [id, count] } });
    for (const guild of guilds) push(session, guild);
    parts.onSession();
  }

  function resume(connection: Connection, d: Payload): void {
    if (silent) return;
    const session = sessions.get(String(d.session_id));
    const from = Number(d.seq);
    const seqRefusal: Refusal | null =
      session === undefined || from <= session.seq ? null : [4007, 'Invalid seq.'];
    const refusal = identityRefusal(connection, d) ?? seqRefusal;
    if (refusal !== null) {
      refuse(connection, refusal);
      return;
    }
    if (session === undefined || isOver(session)) {
      counts.refused += 1;
      if (session !== undefined) forget(session);
      write(connection, OP.invalid, false);
      return;
    }
    if (session.socket !== null) close(session.socket, 4000, 'Resumed elsewhere.');
    attach(connection, session);
    counts.resumed += 1;
    // One packet, so that a client meets in one go what comes in one go.
    connection.tcp.cork();
    const missed = session.log.filter(({ seq }) => seq > from);
    for (const { text } of missed) connection.ws.send(text);
    push(session, { name: 'RESUMED', data: {} });
    if (invalidAfterResume) {
      invalidAfterResume = false;
      forget(session);
      write(connection, OP.invalid, false);
    }
    process.nextTick(() => connection.tcp.uncork());
    parts.onSession();
    if (missed.length > 0) parts.onReplay();
  }

  function receive(connection: Connection, raw: RawData): void {
    const payload = parsed(raw);
    const op = payload?.op;
    const d = isPayload(payload?.d) ? payload.d : {};
    if (payload === null) close(connection, 4002, 'Decode error.');
    else if (op === OP.identify) identify(connection, d);
    else if (op === OP.resume) resume(connection, d);
    else if (op === OP.heartbeat) {
      const { session } = connection;
      counts.heartbeats += 1;
      const received = Number(payload.d);
      if (session !== null) session.log = session.log.filter(({ seq }) => seq > received);
      if (!muted) write(connection, OP.ack, null);
    } else if (!IDLE_OPS.has(Number(op))) close(connection, 4001, 'Unknown opcode.');
    else if (connection.session === null) close(connection, 4003, 'Not authenticated.');
  }

  server.on('connection', (ws, request) => {
    const connection: Connection = { ws, tcp: request.socket, session: null };
    connections.add(connection);
    counts.connections += 1;
    ws.on('message', (raw) => {
      if (!connections.has(connection)) return;
      receive(connection, raw);
      look();
    });
    ws.on('error', () => ws.terminate());
    ws.on('close', (code) => {
      const session = detach(connection);
      // A client that says goodbye does not come back.
      if (session !== null && (code === 1000 || code === 1001)) forget(session);
      look();
    });
    // Seen of a Discord-compatible backend (Spacebar); Discord's own pages do not rule it out.
    if (refusesBeforeHello) write(connection, OP.invalid, false);
    else write(connection, OP.hello, { heartbeat_interval: settings.heartbeatMs, _trace: [] });
  });

  return {
    upgrade(request, socket, head) {
      server.handleUpgrade(request, socket, head, (ws) => server.emit('connection', ws, request));
    },
    dispatch(event) {
      for (const session of sessions.values()) {
        if (isOver(session)) sessions.delete(session.id);
        else if (concerns(session.shard, event)) push(session, event);
      }
    },
    closeAll(code, shardId) {
      for (const connection of connections) {
        if (shardId === undefined || connection.session?.shard.id === shardId) close(connection, code);
      }
    },
    reconnect({ andClose } = { andClose: false }) {
      for (const connection of [...connections]) {
        // One packet, so that the connection ends while the client still reads why.
        connection.tcp.cork();
        write(connection, OP.reconnect, null);
        leave(connection);
        if (andClose) close(connection, 4000);
        process.nextTick(() => connection.tcp.uncork());
      }
    },
    refuseBeforeHello(on) {
      refusesBeforeHello = on;
    },
    invalidate(resumable) {
      for (const connection of connections) {
        const session = leave(connection);
        if (session !== null && !resumable) forget(session);
        write(connection, OP.invalid, resumable);
      }
    },
    invalidateAfterResume() {
      invalidAfterResume = true;
    },
    invalidateIdentifies(times) {
      invalidIdentifies = times;
    },
    muteHeartbeats(on) {
      muted = on;
    },
    refuseIdentify(code) {
      identifyCode = code;
    },
    fallSilent() {
      silent = true;
    },
    sessionsLeft: () => Math.max(0, settings.identifiesPerDay - identifiesToday()),
    isTokenReset: () => tokenReset,
    hangUp() {
      for (const connection of [...connections]) {
        detach(connection);
        connection.ws.terminate();
      }
    },
    sessions: () => ({
      ...counts,
      connected: [...connections].filter(({ session }) => session !== null).length,
      shards: [...connections].flatMap(({ session }) => session?.shard.id ?? []).sort((a, b) => a - b),
    }),
    heal() {
      muted = false;
      identifyCode = null;
      invalidAfterResume = false;
      invalidIdentifies = 0;
      silent = false;
      refusesBeforeHello = false;
    },
  };
}

function parsed(raw: RawData): Payload | null {
  try {
    const payload: unknown = JSON.parse(raw.toString());
    return isPayload(payload) ? payload : null;
  } catch {
    return null;
  }
}
