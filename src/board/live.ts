/**
 * The live line of the page: what changes in the conversations that somebody looks at. All sockets share one look at each
 * conversation; it compares the newest rows with those of the look before. Nothing runs while nobody looks.
 */

import { z } from '@hono/zod-openapi';
import type { WebSocket } from 'ws';
import type { Desk } from '../core/board.js';
import { type RoomId, roomParts } from '../core/ids.js';
import type { Log } from '../core/log.js';
import type { WatchStore } from '../core/store.js';
import { parsed } from './api.js';
import { type LogParts, readLog } from './log-rows.js';
import { Room } from './own.js';
import type { LiveNews, LiveSubject, LogRow } from './protocol.js';
import { createSockets, type SocketLimits, type SocketSession, type Sockets } from './sockets.js';

export interface LiveParts extends LogParts {
  desk: Desk;
  watch: WatchStore['watch'];
  version: string;
  newId(): string;
}

/** A browser does not see pings, so a page hears something at least this often. */
const ALIVE_MS = 30_000;
/** Changes of which nothing tells: by other processes, and of files. */
const LOOK_MS = 2_000;
const FRAME_MS = 50;
/** Looking takes at most this share of the time, so that conversations themselves stay fast. */
const SHARE = 1 / 40;
const LONGEST_FRAME_MS = 1_000;
const SUBJECTS_MS = 1_000;
const MOST_NEWS = 300;
/** Rows that are compared; of more, the older ones are let go. */
const TAIL = 40;
const LONGEST_TAIL = 100;
const MOST_ROOMS = 8;
const POLICY_VIOLATION = 1008;

const Ask = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('follow'),
    room: Room,
    position: z.string().max(200).nullable(),
  }),
  z.object({ kind: z.literal('leave'), room: Room }),
]);

export function createLiveSockets(parts: LiveParts, limits: SocketLimits, log: Log): Sockets {
  const hub = new LiveHub(parts, log);
  return createSockets((line) => hub.open(line, limits.unreadBytes), limits, log);
}

/** One page's socket. */
class LiveSession implements SocketSession {
  readonly rooms = new Set<RoomId>();
  private isOver = false;

  constructor(
    private readonly line: WebSocket,
    private readonly unreadBytes: number,
    private readonly hub: LiveHub,
  ) {}

  hear(data: Buffer, isBinary: boolean): void {
    const { success, data: ask } = Ask.safeParse(isBinary ? undefined : parsed(data));
    if (!success) this.line.close(POLICY_VIOLATION, 'not understood');
    else if (ask.kind === 'leave') this.hub.leave(this, ask.room);
    else {
      const [first] = this.rooms;
      const isFull = this.rooms.size >= MOST_ROOMS && !this.rooms.has(ask.room);
      if (isFull && first !== undefined) this.hub.leave(this, first);
      this.hub.follow(this, ask.room, ask.position);
    }
  }

  isBusy(): boolean {
    return this.rooms.size > 0;
  }

  end(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.hub.close(this);
  }

  say(news: Buffer): void {
    if (this.isOver) return;
    this.line.send(news, { binary: false });
    if (this.line.bufferedAmount > this.unreadBytes) this.line.terminate();
  }
}

/** A conversation that somebody looks at. */
interface Followed {
  sessions: Set<LiveSession>;
  /** They get what came after their position at the next look. */
  joining: { session: LiveSession; position: string }[];
  /** The gap before the rows that are compared; null: they are not known yet. */
  from: { after: string } | 'first' | null;
  rows: Map<string, { row: LogRow; json: string }>;
  isDue: boolean;
}

function newlyFollowed(): Followed {
  return { sessions: new Set(), joining: [], from: null, rows: new Map(), isDue: true };
}

class LiveHub {
  private readonly sessions = new Set<LiveSession>();
  private readonly followed = new Map<RoomId, Followed>();
  private readonly run: string;
  private readonly ends: (() => void)[] = [];
  private readonly changed = new Set<LiveSubject>();
  private marks: Awaited<ReturnType<LogParts['feed']['boardMarks']>> | null = null;
  private marksAt = Number.NEGATIVE_INFINITY;
  private areMarksDue = false;
  private changesAt: number | null = null;
  private areChangesDue = false;
  private aliveAt = 0;
  private frame: NodeJS.Timeout | null = null;
  private isLooking = false;
  private pauseMs = FRAME_MS;

  constructor(
    private readonly parts: LiveParts,
    private readonly log: Log,
  ) {
    this.run = parts.newId();
  }

  open(line: WebSocket, unreadBytes: number): LiveSession {
    const session = new LiveSession(line, unreadBytes, this);
    this.sessions.add(session);
    if (this.sessions.size === 1) this.begin();
    this.tell([session], { kind: 'hello', run: this.run, version: this.parts.version });
    return session;
  }

  close(session: LiveSession): void {
    for (const room of session.rooms) this.leave(session, room);
    this.sessions.delete(session);
    if (this.sessions.size > 0) return;
    for (const end of this.ends.splice(0)) end();
    if (this.frame !== null) clearTimeout(this.frame);
    this.frame = null;
    this.marks = null;
    this.changesAt = null;
    this.changed.clear();
  }

  follow(session: LiveSession, room: RoomId, position: string | null): void {
    const followed = this.followed.get(room) ?? newlyFollowed();
    this.followed.set(room, followed);
    followed.sessions.add(session);
    session.rooms.add(room);
    if (position !== null) {
      followed.joining = followed.joining.filter((each) => each.session !== session);
      followed.joining.push({ session, position });
    }
    followed.isDue = true;
    this.wake();
  }

  leave(session: LiveSession, room: RoomId): void {
    session.rooms.delete(room);
    const followed = this.followed.get(room);
    followed?.sessions.delete(session);
    if (followed?.sessions.size === 0) this.followed.delete(room);
  }

  private begin(): void {
    const { parts } = this;
    const tick = setInterval(() => {
      this.keepAlive();
      this.lookEverywhere();
    }, LOOK_MS);
    this.aliveAt = parts.now();
    this.ends.push(
      parts.watch(() => {
        this.areChangesDue = true;
        this.wake();
      }, 'journal'),
      parts.watch(() => this.noteChange('work'), 'task'),
      parts.desk.watch((chats) => {
        for (const [room, followed] of this.followed) {
          if (chats.has(roomParts(room).chatId)) followed.isDue = true;
        }
        this.wake();
      }),
      () => clearInterval(tick),
    );
    this.lookEverywhere();
  }

  private lookEverywhere(): void {
    for (const followed of this.followed.values()) followed.isDue = true;
    this.wake();
  }

  private noteChange(subject: LiveSubject): void {
    this.changed.add(subject);
    this.wake();
  }

  private keepAlive(): void {
    if (this.parts.now() < this.aliveAt + ALIVE_MS) return;
    this.aliveAt = this.parts.now();
    this.tell(this.sessions, { kind: 'changed', of: [] });
  }

  private wake(): void {
    if (this.sessions.size > 0 && !this.isLooking)
      this.frame ??= setTimeout(() => void this.look(), this.pauseMs);
  }

  /** Never rejects. */
  private async look(): Promise<void> {
    this.frame = null;
    this.isLooking = true;
    const begun = performance.now();
    try {
      await this.noteChanges();
      for (const [room, followed] of this.followed) if (followed.isDue) await this.lookAt(room, followed);
      await this.lookAtMarks();
    } catch (error) {
      this.log.warn({ err: error }, 'the page was not told of changes; looking again soon');
    }
    this.isLooking = false;
    this.pauseMs = Math.min(LONGEST_FRAME_MS, Math.max(FRAME_MS, (performance.now() - begun) / SHARE));
    const isDue = [...this.followed.values()].some((followed) => followed.isDue);
    if (this.areMarksDue || this.areChangesDue || isDue) this.wake();
  }

  /** Where nothing was done, nothing is read. */
  private async noteChanges(): Promise<void> {
    if (!this.areChangesDue) return;
    this.areChangesDue = false;
    const { chats, at } = await this.parts.feed.boardChanges(this.changesAt);
    const changed = new Set(chats);
    for (const [room, followed] of this.followed) {
      if (this.changesAt === null || changed.has(roomParts(room).chatId)) followed.isDue = true;
    }
    this.changesAt = at;
  }

  private async lookAtMarks(): Promise<void> {
    const now = this.parts.now();
    this.areMarksDue = now < this.marksAt + SUBJECTS_MS && now >= this.marksAt;
    if (this.areMarksDue) return;
    this.marksAt = now;
    const marks = await this.parts.feed.boardMarks();
    for (const subject of ['conversations', 'memory', 'personas'] as const) {
      if (this.marks !== null && this.marks[subject] !== marks[subject]) this.changed.add(subject);
    }
    this.marks = marks;
    if (this.changed.size === 0) return;
    this.tell(this.sessions, { kind: 'changed', of: [...this.changed] });
    this.changed.clear();
  }

  private async lookAt(room: RoomId, followed: Followed): Promise<void> {
    followed.isDue = false;
    const isFirst = followed.from === null;
    const page = await readLog(this.parts, room, followed.from ?? 'newest', isFirst ? TAIL : MOST_NEWS);
    const joining = followed.joining.splice(0);
    const others = [...followed.sessions].filter((each) => !joining.some(({ session }) => session === each));
    if (!page.isEnd) {
      followed.from = null;
      followed.rows.clear();
      followed.isDue = true;
      followed.joining.push(...joining);
      this.tell(others, { kind: 'reread', room });
      return;
    }
    const rows = new Map(page.shown.map((row) => [row.key, { row, json: JSON.stringify(row) }]));
    if (!isFirst) this.tellChanges(room, others, followed.rows, rows, page.after);
    followed.rows = rows;
    if (isFirst) followed.from = page.before === null ? 'first' : { after: page.before };
    if (page.shown.length > LONGEST_TAIL) await this.shorten(room, followed);
    for (const { session, position } of joining) await this.catchUp(room, session, position, page.shown);
  }

  private async shorten(room: RoomId, followed: Followed): Promise<void> {
    const { rows, before } = await this.parts.feed.log({ room, from: 'newest', most: TAIL });
    const keys = new Set(rows.map(({ key }) => key));
    for (const key of followed.rows.keys()) if (!keys.has(key)) followed.rows.delete(key);
    followed.from = before === null ? 'first' : { after: before };
    // Rows that came in between are found, and told, by the next look.
    followed.isDue = true;
  }

  private tellChanges(
    room: RoomId,
    to: Iterable<LiveSession>,
    before: Followed['rows'],
    now: Followed['rows'],
    position: string,
  ): void {
    const rows: LogRow[] = [];
    for (const [key, { row, json }] of now) {
      const known = before.get(key);
      if (known?.json === json) continue;
      const growth = known && growthOf(room, known.row, row);
      if (growth) this.tell(to, growth);
      else rows.push(row);
    }
    const gone = [...before.keys()].filter((key) => !now.has(key));
    if (rows.length + gone.length === 0) return;
    this.tell(to, { kind: 'rows', room, rows, gone, position });
  }

  /** Everything after the position, and the rows before it that may have changed. */
  private async catchUp(room: RoomId, session: LiveSession, position: string, tail: LogRow[]): Promise<void> {
    const since = await readLog(this.parts, room, { after: position }, MOST_NEWS);
    const keys = new Set(since.shown.map(({ key }) => key));
    const rows = [...tail.filter(({ key }) => !keys.has(key)), ...since.shown];
    const news: LiveNews = { kind: 'rows', room, rows, gone: [], position: since.after, whole: true };
    this.tell([session], since.isEnd ? news : { kind: 'reread', room });
  }

  private tell(sessions: Iterable<LiveSession>, news: LiveNews): void {
    // Encoded once for all.
    const bytes = Buffer.from(JSON.stringify(news));
    for (const session of sessions) session.say(bytes);
  }
}

/** null: more changed than the text. */
function growthOf(room: RoomId, before: LogRow, row: LogRow): LiveNews | null {
  if (before.state !== 'writing' || row.state !== 'writing') return null;
  if (JSON.stringify({ ...before, text: '' }) !== JSON.stringify({ ...row, text: '' })) return null;
  let keep = 0;
  const most = Math.min(before.text.length, row.text.length);
  while (keep < most && before.text.charCodeAt(keep) === row.text.charCodeAt(keep)) keep++;
  return { kind: 'writing', room, key: row.key, author: row.author, keep, add: row.text.slice(keep) };
}
