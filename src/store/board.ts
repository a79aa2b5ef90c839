/**
 * The log of a room, a page at a time: messages, commands, entries of the outbox beside the transcript, and turns that
 * ended without an answer, merged by time. Each source is read in its own order; a place in the log is a place in each.
 */
import { BOARD, type BoardFeed, type LoggedRow, type LogPage, type LogPlace } from '../core/board.js';
import { type ChatId, type RoomId, roomParts } from '../core/ids.js';
import { activeTurns, type LogEntry, logRows } from './board-rows.js';
import * as db from './db.js';
import { hearersIn, stillHeard } from './feeds.js';
import { columns } from './sql.js';

/** By the time of its end. */
interface TurnGap {
  turnAt: number;
  turn: string;
}

/** The last entry of each source before a gap. */
interface Gap extends TurnGap {
  message: number;
  command: number;
  outbox: number;
}

const START: Gap = { message: 0, command: 0, outbox: 0, turnAt: 0, turn: '' };
const NOW: Gap = {
  message: Number.MAX_SAFE_INTEGER,
  command: Number.MAX_SAFE_INTEGER,
  outbox: Number.MAX_SAFE_INTEGER,
  turnAt: Number.MAX_SAFE_INTEGER,
  turn: '',
};

function written({ message, command, outbox, turnAt, turn }: Gap): string {
  return [message, command, outbox, turnAt, turn].join('.');
}

/** A text that is none is the beginning. */
function gapIn(text: string): Gap {
  const [, message, command, outbox, turnAt, turn = ''] =
    /^(\d{1,16})\.(\d{1,16})\.(\d{1,16})\.(\d{1,16})\.(.{0,64})$/.exec(text) ?? [];
  if (message === undefined) return START;
  return {
    message: Number(message),
    command: Number(command),
    outbox: Number(outbox),
    turnAt: Number(turnAt),
    turn,
  };
}

/** Not shown: messages up to `floor`, those up to `reset` that nobody still hears, other entries before `since`. */
interface Unseen {
  floor: number;
  reset: number;
  since: number;
}

/** As the index says it: one over all messages would draw statements of the route away from what waits. */
const IN_LOG = `room_id = @room and author_kind <> 'gateway' and state <> 'unsaid'`;
const RESETS =
  'select persona_id as personaId, reset_at as resetAt from view where room_id = ? and reset_at > 0';
const RESET_TIME = `
  select received_at from message where ${IN_LOG} and id <= @reset order by id desc limit 1`;

function* forgottenIn(room: RoomId): db.Verb<Unseen> {
  const resets = new Map<string, number>();
  for (const { personaId, resetAt } of yield* db.all<{ personaId: string; resetAt: number }>(RESETS, room)) {
    resets.set(personaId, resetAt);
  }
  if (resets.size === 0) return { floor: 0, reset: 0, since: 0 };
  const reset = Math.max(...resets.values());
  const hearers = yield* hearersIn(room);
  const floor = hearers.length === 0 ? reset : Math.min(...hearers.map((id) => resets.get(id) ?? 0));
  return { floor, reset, since: (yield* db.value<number>(RESET_TIME, { room, reset })) ?? 0 };
}

// ── Sources ─────────────────────────────────────────────────────────────────────────────────────────────────

type Way = 'older' | 'newer';

const SEEN_MESSAGE = `${IN_LOG} and id > @floor
  and (text <> '' or words is not null or attachments is not null or author_kind = 'persona')
  and not exists (
    select 1 from message as later
    where message.platform_message_id is not null and later.chat_id = message.chat_id and later.account = message.account
      and later.moves = message.moves and later.platform_message_id = message.platform_message_id
      and later.edited = 1 and later.id > message.id)`;
const LOGGED_MESSAGE = columns(
  'id authorKind authorId authorName text words sentAt receivedAt replyTo turnId attachments forwardedFrom state quiet',
);
// A choice without a command is a press that changed nothing. After the reset, what it forgot is not shown by a command either.
// On the page an answer is said anew by its buttons, and only the answer is seen to change.
const SEEN_COMMAND = `room_id = @room and name <> 'choice' and after_message >= @reset
  and not (name in ('again', 'continue', 'edit', 'undo') and substr(room_id, 1, ${BOARD.length + 1}) = '${BOARD}_')`;
// A greeting is a message (the page shows its picture beside it), files that a turn made belong to its answer, and a change
// of what is shown is no news.
const BESIDE = `chat_id = @chatId and substr(origin, 1, 5) <> 'turn:'`;
const SEEN_OUTBOX = `${BESIDE} and thread_id is not distinct from @threadId
  and created_at >= @since and state <> 'dropped' and origin not like 'greeting:%' and origin not like 'face:%' and origin not like 'tool:%:made' and origin not like 'buttons:%'
  and not (origin like 'command:%' and persona_id <> '')`;
// One that was to say an answer anew leaves that answer.
const UNSAID = `room_id = @room and state in ('failed', 'parked', 'aborted') and first_message > @reset and anew is null`;

const SOURCES = {
  message: {
    select: `select 'message' as source, received_at as at, ${LOGGED_MESSAGE} from message where ${SEEN_MESSAGE}`,
    key: 'id',
    gap: '@message',
  },
  command: {
    select: `select 'command' as source, received_at as at, ${columns(
      'id senderId senderName name argument finishedAt',
    )} from command where ${SEEN_COMMAND}`,
    key: 'id',
    gap: '@command',
  },
  outbox: {
    select: `select 'outbox' as source, created_at as at, ${columns(
      'id origin personaId turnId body state attempts error face',
    )} from outbox where ${SEEN_OUTBOX}`,
    key: 'id',
    gap: '@outbox',
  },
  turn: {
    select: `select 'turn' as source, finished_at as at, ${columns(
      'id personaId state startedAt usedTools',
    )} from turn where ${UNSAID}`,
    key: '(finished_at, id)',
    gap: '(@turnAt, @turn)',
  },
} as const;

type Source = keyof typeof SOURCES;
const ORDER: readonly Source[] = ['message', 'command', 'outbox', 'turn'];

function sqlOf(source: Source, way: Way): string {
  const { select, key, gap } = SOURCES[source];
  const [sign, order] = way === 'older' ? ['<=', 'desc'] : ['>', 'asc'];
  const by = source === 'turn' ? `finished_at ${order}, id ${order}` : `id ${order}`;
  return `${select} and ${key} ${sign} ${gap} order by ${by} limit @most + 0`;
}

const STATEMENTS = new Map(
  ORDER.flatMap((source) =>
    (['older', 'newer'] as const).map((way) => [`${source} ${way}`, sqlOf(source, way)]),
  ),
);

function* entriesOf(source: Source, way: Way, values: object): db.Verb<LogEntry[]> {
  return yield* db.all<LogEntry>(STATEMENTS.get(`${source} ${way}`) ?? '', values);
}

function gapAt(gap: Gap, entry: LogEntry): Gap {
  return entry.source === 'turn'
    ? { ...gap, turnAt: entry.at, turn: entry.id }
    : { ...gap, [entry.source]: entry.id };
}

// ── Pages ───────────────────────────────────────────────────────────────────────────────────────────────────

interface LogSpan {
  /** Oldest first. */
  entries: LogEntry[];
  /** Before the first of them, and behind the last. */
  from: Gap;
  to: Gap;
  /** There are more on this way. */
  more: boolean;
}

/** The nearest entries on one side of a gap. Between sources, the time decides; within one, its order. `first`: of this source. */
function* spanOf(
  room: RoomId,
  gap: Gap,
  way: Way,
  most: number,
  forgotten: Unseen,
  first?: Source,
): db.Verb<LogSpan> {
  const values = { room, ...roomParts(room), ...gap, ...forgotten, most: most + 1 };
  const heads: LogEntry[][] = [];
  for (const source of ORDER) heads.push(yield* entriesOf(source, way, values));
  const taken: LogEntry[] = [];
  let passed = gap;
  while (taken.length < most) {
    const [next] = heads.filter((entries) => entries.length > 0).sort(nearest(way));
    const leading =
      taken.length === 0 && first !== undefined ? heads[ORDER.indexOf(first)]?.shift() : undefined;
    const entry = leading ?? next?.shift();
    if (entry === undefined) break;
    taken.push(entry);
    passed = gapAt(passed, entry);
  }
  const more = heads.some((entries) => entries.length > 0);
  if (way === 'newer') return { entries: taken, from: gap, to: passed, more };
  // The gap before what was taken: behind the next of each source.
  let from = START;
  for (const [next] of heads) if (next) from = gapAt(from, next);
  return { entries: taken.reverse(), from, to: gap, more };
}

function nearest(way: Way): (a: LogEntry[], b: LogEntry[]) => number {
  const sign = way === 'older' ? -1 : 1;
  return ([a], [b]) => sign * ((a?.at ?? 0) - (b?.at ?? 0) || rank(a) - rank(b));
}

function rank(entry: LogEntry | undefined): number {
  return entry === undefined ? 0 : ORDER.indexOf(entry.source);
}

const NEWEST = ORDER.map((source) => {
  const inRoom = source === 'message' ? IN_LOG : 'room_id = @room';
  const where = source === 'outbox' ? BESIDE : inRoom;
  return [source, `select max(id) from ${source} where ${where}`] as const;
}).filter(([source]) => source !== 'turn');
const NEWEST_UNSAID = `
  select finished_at as turnAt, id as turn from turn
  where room_id = @room and state in ('failed', 'parked', 'aborted') order by finished_at desc, id desc limit 1`;

/** Behind everything that there is now. */
function* endOf(room: RoomId): db.Verb<Gap> {
  const values = { room, ...roomParts(room) };
  const gap = { ...START, ...(yield* db.one<TurnGap>(NEWEST_UNSAID, values)) };
  for (const [source, sql] of NEWEST) {
    gap[source as 'message'] = (yield* db.value<number | null>(sql, values)) ?? 0;
  }
  return gap;
}

/** Without what was forgotten, and with what belongs to each entry. */
function* rowsOf(room: RoomId, entries: LogEntry[], { reset }: Unseen): db.Verb<LoggedRow[]> {
  const old = entries.flatMap((entry) =>
    entry.source === 'message' && entry.id <= reset ? [{ id: entry.id, room }] : [],
  );
  const heard = yield* stillHeard(old.sort((a, b) => a.id - b.id));
  const seen = entries.filter(
    (entry) => entry.source !== 'message' || entry.id > reset || heard.has(entry.id),
  );
  return yield* logRows(room, seen);
}

function* page(room: RoomId, place: LogPlace, most: number): db.Verb<LogPage> {
  const forgotten = yield* forgottenIn(room);
  if (place === 'newest' || (typeof place === 'object' && 'before' in place)) {
    const isEnd = place === 'newest';
    const end = isEnd ? yield* endOf(room) : gapIn(place.before);
    const { entries, from, more } = yield* spanOf(room, isEnd ? NOW : end, 'older', most, forgotten);
    const rows = yield* rowsOf(room, [...entries, ...(isEnd ? yield* activeTurns(room) : [])], forgotten);
    return { rows, before: more ? written(from) : null, after: written(end), isEnd };
  }
  if (typeof place === 'object' && 'around' in place) {
    const { source, ...gap } = yield* gapBehind(room, place.around);
    const half = Math.ceil(most / 2);
    const older = yield* spanOf(room, gap, 'older', half, forgotten, source);
    const newer = yield* newerThan(room, gap, most - half, forgotten);
    const rows = [...(yield* rowsOf(room, older.entries, forgotten)), ...newer.rows];
    return { ...newer, rows, before: older.more ? written(older.from) : null };
  }
  const gap = place === 'first' ? START : gapIn(place.after);
  const { rows, after, isEnd } = yield* newerThan(room, gap, most, forgotten);
  return { rows, before: place === 'first' ? null : written(gap), after, isEnd };
}

function* newerThan(room: RoomId, gap: Gap, most: number, forgotten: Unseen) {
  const { entries, to, more } = yield* spanOf(room, gap, 'newer', most, forgotten);
  const all = more ? entries : [...entries, ...(yield* activeTurns(room))];
  return { rows: yield* rowsOf(room, all, forgotten), after: written(to), isEnd: !more };
}

// ── The place of a row ──────────────────────────────────────────────────────────────────────────────────────

const TURN = 'select batch, finished_at as finishedAt from turn where id = ?';
const SAID_BY = `
  select id, received_at as at from message
  where ${IN_LOG} and id > @after and turn_id = @turn and author_kind = 'persona' order by id limit 1`;
const lastUntil = (table: string, time: string, where: string) =>
  `select id from ${table} where ${where} and ${time} <= @at order by id desc limit 1`;
const LAST_MESSAGE = lastUntil('message', 'received_at', IN_LOG);
const LAST_COMMAND = lastUntil('command', 'received_at', 'room_id = @room');
const LAST_OUTBOX = lastUntil('outbox', 'created_at', BESIDE);
const LAST_UNSAID = `
  select finished_at as turnAt, id as turn from turn
  where room_id = @room and state in ('failed', 'parked', 'aborted') and finished_at <= @at
  order by finished_at desc, id desc limit 1`;

/** The gap behind a row, and its source; the end if there is no such row. */
function* gapBehind(room: RoomId, rowKey: string): db.Verb<Gap & { source?: Source }> {
  const { source, id, at } = yield* placeOf(room, rowKey);
  if (source === undefined || at === undefined || at === null) return yield* endOf(room);
  const values = { room, ...roomParts(room), at };
  const gap: Gap & { source?: Source } = {
    source,
    message: (yield* db.value<number>(LAST_MESSAGE, values)) ?? 0,
    command: (yield* db.value<number>(LAST_COMMAND, values)) ?? 0,
    outbox: (yield* db.value<number>(LAST_OUTBOX, values)) ?? 0,
    ...((yield* db.one<TurnGap>(LAST_UNSAID, values)) ?? { turnAt: 0, turn: '' }),
  };
  if (source === 'turn') return { ...gap, turnAt: at, turn: `${id}` };
  return { ...gap, [source]: id };
}

interface RowPlace {
  source?: Source;
  id?: number | string;
  at?: number | null | undefined;
}

function* placeOf(room: RoomId, rowKey: string): db.Verb<RowPlace> {
  const [, kind, id = ''] = /^([mcot])(.+)$/.exec(rowKey) ?? [];
  if (kind === 't') {
    const turn = yield* db.one<{ batch: string; finishedAt: number | null }>(TURN, id);
    const after = Math.max(0, ...(JSON.parse(turn?.batch ?? '[]') as number[]));
    const said = yield* db.one<{ id: number; at: number }>(SAID_BY, { room, after, turn: id });
    return said ? { source: 'message', ...said } : { source: 'turn', id, at: turn?.finishedAt };
  }
  const number = Number(id);
  if (kind === undefined || !Number.isSafeInteger(number)) return {};
  const source = ({ m: 'message', c: 'command', o: 'outbox' } as const)[kind as 'm' | 'c' | 'o'];
  const time = source === 'outbox' ? 'created_at' : 'received_at';
  return {
    source,
    id: number,
    at: yield* db.value<number>(`select ${time} from ${source} where id = ?`, number),
  };
}

// ── The live line, and the page's chats ─────────────────────────────────────────────────────────────────────

const MARKS = `
  select (select coalesce(max(id), 0) from message) as message, (select coalesce(max(id), 0) from command) as command,
    (select coalesce(max(id), 0) from outbox) as outbox, (select coalesce(max(n), 0) from version) as version`;
const LAST_CHANGES = `
  select (select coalesce(max(n), 0) from journal) as added,
    (select coalesce(max(changed), 0) from journal where changed <> n) as changed`;
const ADDED = 'select chat_id as chatId, n as mark from journal where n > @after';
const CHANGED =
  'select chat_id as chatId, changed as mark from journal where changed > @after and changed <> n';
const OF_BOARD = `channel = '${BOARD}'`;
const PERSONAS = `select id, active_persona as active, invited, away from chat where ${OF_BOARD} order by id`;
const CHATS = `
  select id as chatId, coalesce((
    select received_at from message
    where room_id = chat.id and author_kind <> 'gateway' order by message.id desc limit 1), 0) as at
  from chat where ${OF_BOARD} order by 2 desc, id`;

function* changesAfter(after: number | null): db.Verb<{ chats: ChatId[]; at: number }> {
  if (after === null) {
    const { added = 0, changed = 0 } =
      (yield* db.one<{ added: number; changed: number }>(LAST_CHANGES)) ?? {};
    return { chats: [], at: Math.max(added, changed) };
  }
  const found: { chatId: ChatId; mark: number }[] = [];
  for (const sql of [ADDED, CHANGED]) found.push(...(yield* db.all<(typeof found)[number]>(sql, { after })));
  const chats = [...new Set(found.map(({ chatId }) => chatId))];
  return { chats, at: found.reduce((at, { mark }) => Math.max(at, mark), after) };
}

export function boardFeed(database: db.Database): BoardFeed {
  return {
    log: ({ room, from, most }) => database.read(() => page(room, from, most)),
    boardMarks: () =>
      database.look(function* () {
        const marks = yield* db.one<Record<'message' | 'command' | 'outbox' | 'version', number>>(MARKS);
        const { message = 0, command = 0, outbox = 0, version = 0 } = marks ?? {};
        const conversations = [message, command, outbox].join('.');
        return { conversations, memory: `${version}`, personas: JSON.stringify(yield* db.all(PERSONAS)) };
      }),
    boardChanges: (after) => database.look(() => changesAfter(after)),
    boardChats: () => database.look(() => db.all<{ chatId: ChatId; at: number }>(CHATS)),
  };
}
