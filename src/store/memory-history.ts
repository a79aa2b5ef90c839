/**
 * The history of memory: versions of its files, untrusted lines, the memory last given to a persona, message traces
 * (`/memory why`, `coterie doctor`), and stored turns (`coterie replay`, the board).
 */
import { setImmediate as nextPass } from 'node:timers/promises';
import type { HistoryStore, KeptVersion } from '../core/board.js';
import type { Part } from '../core/channel.js';
import { addedLines, hasMarker, lineKey, lineKeys, linesOfText } from '../core/cut.js';
import { type ChatId, type PersonaId, type RoomId, roomParts } from '../core/ids.js';
import type { ReplayStore, SentByTurn, TurnInStore } from '../core/journal.js';
import type { Fate, PromptMemory, Spoke, Trace, TraceStore, VersionStore } from '../core/memory.js';
import { isImported, memoryPath, type Origins } from '../core/origin.js';
import { isAfter, type Step, type StoredMessage } from '../core/transcript.js';
import * as db from './db.js';
import { ENTRY_COLUMNS, type EntryRow, entriesOfTurn, entryOf } from './journal.js';
import type { heard, version } from './schema.js';
import { bound, columns, insertInto, type Some } from './sql.js';
import { findView, MESSAGE_COLUMNS, type MessageRow, toMessage } from './transcript.js';

// ── Untrusted lines: kept as digests, so that their text is not stored here ────────────────────────────────

/** Maximum per file. Beyond it the whole file counts as untrusted, because a dropped line could still be in it. */
const MOST_LINES = 20_000;
const WHOLE = '';
const MARK_LINE = `
  insert into outside_line (file, line, n)
  values (@file, @line, (select coalesce(max(n), 0) + 1 from outside_line where file = @file))
  on conflict (file, line) do update set n = excluded.n`;

/** To be called within a transaction. */
function* markOutside(file: string, lines: readonly string[] | null): db.Verb<void> {
  const keys = lines === null ? [WHOLE] : lines.flatMap(lineKeys);
  for (const line of new Set(keys)) yield* db.tell(MARK_LINE, { file, line });
  const count = 'select count(*) from outside_line where file = ?';
  if (keys.length === 0 || ((yield* db.value<number>(count, file)) ?? 0) <= MOST_LINES) return;
  yield* db.tell('delete from outside_line where file = ?', file);
  yield* db.tell(MARK_LINE, { file, line: WHOLE });
}

export function originStore(database: db.Database): Origins {
  return {
    markOutside: (file, lines) => database.write(file, () => markOutside(file, lines)),
    async originIn(file, textNow) {
      if (isImported(file)) return 'outside';
      const marked = 'select line from outside_line where file = ?';
      const keys = new Set(await database.read(() => db.column<string>(marked, file)));
      if (keys.size === 0) return 'inside';
      const text = await textNow();
      if (text.trim() === '') return 'inside';
      // For a truncated line it is unknown whether it is one of them.
      if (keys.has(WHOLE) || hasMarker(text)) return 'outside';
      return linesOfText(text).some((line) => keys.has(lineKey(line) ?? '-')) ? 'outside' : 'inside';
    },
  };
}

// ── Versions ────────────────────────────────────────────────────────────────────────────────────────────────

/** Versions kept (and undoable) per persona and chat. */
const KEPT_VERSIONS = 200;
/** The memory in the prompt of a persona's last answer in a room. */
export const PROMPT_SNAPSHOT = 'memory dailyLog recalled summary lore';
const VERSION = 'id chatId personaId file tier before after at cause';
type VersionRow = Some<typeof version, typeof VERSION>;

const DROP_OLDEST = `
  delete from version where chat_id = @chatId and persona_id = @personaId and n <= (
    select n from version where chat_id = @chatId and persona_id = @personaId
    order by n desc limit 1 offset ${KEPT_VERSIONS})`;
const BY_CAUSE = `cause like '%"turnId":"' || @turnId || '"%'`;
const OF_PERSONAS = `and cause not like '{"kind":"owner"%'`;
// SQLite recompiles a statement whenever a bare LIMIT parameter is bound, but not for an expression; hence `+ 0`.
const newestVersions = (which: string) => `
  select ${columns(VERSION)} from version where n in (
    select n from version where chat_id = @chatId ${which} order by n desc limit @most + 0)
  order by n desc`;

export function versionStore(database: db.Database): VersionStore {
  return {
    keepVersion: (kept) =>
      database.write([kept.chatId, memoryPath(kept.chatId, kept.file)], function* () {
        yield* db.tell(insertInto('version', VERSION), bound(kept));
        const { cause, chatId, personaId, file, before, after } = kept;
        // If the file's write then fails, marks of lines that do not exist are harmless.
        if (cause.tainted) yield* markOutside(memoryPath(chatId, file), addedLines(before, after));
        yield* db.tell(DROP_OLDEST, { chatId, personaId });
      }),
    dropVersion: (id) => database.write([], () => db.tell('delete from version where id = ?', id)),
    versions: ({ chatId, personaId, most, turnId = null, ofPersonas = false, undone = false }) =>
      database.read(function* () {
        const whose = personaId === null ? '' : 'and persona_id = @personaId';
        const by = turnId === null ? '' : `and ${BY_CAUSE}`;
        const sql = newestVersions(
          `${whose} ${by} ${ofPersonas ? OF_PERSONAS : ''} and undone = ${undone ? 1 : 0}`,
        );
        const rows = yield* db.all<VersionRow>(sql, { chatId, personaId, most, turnId });
        return rows.map((row) => ({ ...row, cause: JSON.parse(row.cause) }));
      }),
    promptMemory: (room, personaId) =>
      database.read(function* () {
        const sql = `select ${columns(PROMPT_SNAPSHOT)} from given where room_id = ? and persona_id = ?`;
        return (yield* db.one<PromptMemory>(sql, room, personaId)) ?? null;
      }),
  };
}

// ── For the page ────────────────────────────────────────────────────────────────────────────────────────────

const KEPT = `${VERSION} n undone`;
type KeptRow = Some<typeof version, typeof KEPT>;
// `n + 0`: by the index of the chat, and not down through all versions.
const SHOWN = `
  select ${columns(KEPT)} from version where n in (
    select n from version
    where chat_id = @chatId and n < @before and (persona_id = @personaId or file like 'memory/%')
    order by n + 0 desc limit @most + 0)
  order by n desc`;
const ONE = `select ${columns(KEPT)} from version where id = ?`;
const SAME_CHANGE = `
  select ${columns(KEPT)} from version
  where chat_id = @chatId and persona_id = @personaId and ${BY_CAUSE} order by n desc`;

function toKept({ undone, ...row }: KeptRow): KeptVersion {
  return { ...row, cause: JSON.parse(row.cause), isUndone: undone === 1 };
}

export function historyStore(database: db.Database): HistoryStore {
  return {
    history: ({ before, ...ask }) =>
      database.read(function* () {
        const newest = before ?? Number.MAX_SAFE_INTEGER;
        return (yield* db.all<KeptRow>(SHOWN, { ...ask, before: newest })).map(toKept);
      }),
    changeWith: (id) =>
      database.read(function* () {
        const row = yield* db.one<KeptRow>(ONE, id);
        if (row === undefined) return [];
        const found = toKept(row);
        const { kind, turnId } = found.cause;
        if (kind !== 'night' && kind !== 'owner') return [found];
        const { chatId, personaId } = found;
        return (yield* db.all<KeptRow>(SAME_CHANGE, { chatId, personaId, turnId })).map(toKept);
      }),
    markUndone: (ids, isUndone = true) =>
      database.write([], function* () {
        const mark = `update version set undone = ${isUndone ? 1 : 0} where id = ?`;
        for (const id of ids) yield* db.tell(mark, id);
      }),
    titles: () => database.read(() => db.all('select id, title from chat order by id')),
  };
}

// ── Traces ──────────────────────────────────────────────────────────────────────────────────────────────────

/** A message to trace, with columns that the trace does not report. */
interface TracedRow extends MessageRow {
  chatId: ChatId;
  state: 'waiting' | 'done';
}

type Hearing = Some<typeof heard, 'personaId heardAfter messageId addressed'>;

/** The number of messages examined before other work may run. */
const TRACED_AT_ONCE = 5_000;
const PLACE = '(heard.heard_after, heard.message_id)';
const WINDOW_AFTER = '(coalesce(window_heard, 0), coalesce(window_message, 0))';
const FLUSHED_TO = '(coalesce(flushed_heard, 0), coalesce(flushed_message, 0))';

const traced = (from: string) =>
  `select message.chat_id as chatId, message.state, ${MESSAGE_COLUMNS} ${from}`;
const BELOW = traced(
  `from message
  where id < @below and id >= @atLeast and alone(chat_id) = @chatId and state <> 'unsaid' order by id desc`,
);
// Two queries, because each has its own index.
const ITS_ID = 'chat_id = ? and platform_message_id = ?';
const BROUGHT = traced(`from message where ${ITS_ID} and edited = 0 and platform_message_id is not null`);
const EDITED = traced(`from message where ${ITS_ID} and edited = 1`);
// The reply comes after the messages it answers, usually very soon.
const SENT = traced(`
  from outbox join turn on turn.id = outbox.turn_id join message on message.id = (
    select reply.id from message as reply
    where reply.id > turn.first_message and reply.turn_id = turn.id and reply.author_kind = 'persona'
      and reply.state <> 'unsaid'
    order by reply.id limit 1)
  where outbox.chat_id = ? and outbox.platform_message_id = ? and outbox.origin like 'turn:%'`);
// Any part of the reply: people may reply to a part other than the one with the note.
const NOTED_TURN = `
  select turn_id from outbox as sent
  where chat_id = ? and platform_message_id = ? and origin like 'turn:%' and exists (
    select 1 from outbox
    where origin = sent.origin and persona_id = sent.persona_id and body like '%"note":%')`;
const NEWEST_BETWEEN = 'select max(received_at) from message where id < @below and id >= @atLeast';
const SPOKE = `
  select room_id as room, author_id as personaId, max(received_at) as at from message
  where id < @below and id >= @atLeast and author_kind = 'persona' and received_at >= @since
  group by room_id, author_id`;
const IN_BATCH = `
  select ${MESSAGE_COLUMNS} from message where number_in(id, ?) order by id`;
const HEARINGS = `
  select ${columns('personaId heardAfter messageId addressed')} from heard where room_id = ? and message_id = ?`;
// An archive in state `writing` does not count: the window has not moved past it yet.
const ARCHIVE_OF = `
  select file from archived
  where chat_id = @chatId and room_id = @room and persona_id = @personaId and state <> 'writing'
    and (@heardAfter, @messageId) > (after_heard, after_message)
    and (@heardAfter, @messageId) <= (to_heard, to_message) limit 1`;
const whereaboutsOf = (whose: string) => `
  select
    count(*) filter (where ${PLACE} > ${WINDOW_AFTER}) as inWindow,
    count(*) filter (where ${PLACE} <= ${WINDOW_AFTER} and ${PLACE} <= ${FLUSHED_TO}) as flushed,
    count(*) filter (where ${PLACE} <= ${WINDOW_AFTER} and ${PLACE} > ${FLUSHED_TO}) as archived
  from heard left join view on view.room_id = heard.room_id and view.persona_id = heard.persona_id
  where addressed = 1 ${whose}
    and heard.message_id > coalesce(reset_at, 0) and heard.heard_after >= coalesce(reset_at, 0)`;

export function* messagesWith(ids: readonly number[]): db.Verb<StoredMessage[]> {
  return (yield* db.all<MessageRow>(IN_BATCH, JSON.stringify(ids))).map(toMessage);
}

/** The messages with this platform id, newest first: inbound messages, and replies with such a part. */
function* rowsCalled(chatId: ChatId, platformMessageId: string): db.Verb<TracedRow[]> {
  const called = [BROUGHT, EDITED, SENT];
  const rows = yield* db.each(called, (sql) => db.all<TracedRow>(sql, chatId, platformMessageId));
  return rows.flat().sort((a, b) => b.id - a.id);
}

/** The fate of a message, for each persona that heard it or for one. */
function* tracesOf(row: TracedRow, only: PersonaId | null): db.Verb<Trace[]> {
  const message = toMessage(row);
  const newest = new Map<PersonaId, Hearing>();
  for (const hearing of yield* db.all<Hearing>(HEARINGS, message.room, message.id)) {
    if (only !== null && hearing.personaId !== only) continue;
    const known = newest.get(hearing.personaId);
    if (!known || isAfter(hearing, known)) newest.set(hearing.personaId, hearing);
  }
  if (newest.size === 0) {
    const kind = row.state === 'done' ? 'reset' : 'waiting';
    return [{ message, personaId: only ?? '', fate: { kind } }];
  }
  return yield* db.each(newest.values(), function* (hearing) {
    const { personaId } = hearing;
    return { message, personaId, fate: yield* fateOf(row.chatId, message, hearing) };
  });
}

function* fateOf(chatId: ChatId, { room, id }: StoredMessage, hearing: Hearing): db.Verb<Fate> {
  const { personaId, heardAfter, messageId } = hearing;
  const view = yield* findView(room, personaId);
  if (id <= view.resetAt || heardAfter < view.resetAt) return { kind: 'reset' };
  if (hearing.addressed === 0) return { kind: 'overheard' };
  const flushed = !isAfter(hearing, view.flushedTo);
  if (isAfter(hearing, view.windowAfter)) return { kind: 'window', flushed };
  if (flushed) return { kind: 'flushed' };
  const file = yield* db.value<string>(ARCHIVE_OF, { chatId, room, personaId, heardAfter, messageId });
  return { kind: 'archived', file: file ?? '' };
}

/** All ids of messages, from the newest down, in ranges between which other work may run. */
async function* idsDown(database: db.Reader): AsyncGenerator<{ below: number; atLeast: number }> {
  const newest = await database.look(() => db.value<number | null>('select max(id) from message'));
  for (let below = (newest ?? 0) + 1; below > 0; below -= TRACED_AT_ONCE) {
    yield { below, atLeast: below - TRACED_AT_ONCE };
    await nextPass();
  }
}

async function trace(
  database: db.Reader,
  { chatId, wanted, most }: Parameters<TraceStore['trace']>[0],
): Promise<Trace[]> {
  if ('platformMessageId' in wanted) {
    return database.read(function* () {
      const rows = (yield* rowsCalled(chatId, wanted.platformMessageId)).slice(0, most);
      return (yield* db.each(rows, (row) => tracesOf(row, null))).flat();
    });
  }
  const found: Trace[] = [];
  for await (const range of idsDown(database)) {
    const page = await database.read(function* () {
      const rows = yield* db.all<TracedRow>(BELOW, { chatId, ...range });
      const wantedRows = rows.filter(({ text }) => wanted.phrase.isIn(text)).slice(0, most - found.length);
      return (yield* db.each(wantedRows, (row) => tracesOf(row, wanted.personaId))).flat();
    });
    found.push(...page);
    if (found.length >= most) break;
  }
  return found;
}

async function spokeSince(database: db.Reader, since: number): Promise<Spoke[]> {
  const found = new Map<string, Spoke>();
  for await (const range of idsDown(database)) {
    const page = await database.read(function* () {
      return {
        rows: yield* db.all<Spoke>(SPOKE, { ...range, since }),
        newest: (yield* db.value<number | null>(NEWEST_BETWEEN, range)) ?? since,
      };
    });
    for (const row of page.rows) {
      const key = `${roomParts(row.room).chatId}\n${row.personaId}`;
      if ((found.get(key)?.at ?? 0) < row.at) found.set(key, row);
    }
    // Ids follow the order of receipt, except for messages that accumulated while the gateway was down.
    if (page.newest < since) break;
  }
  return [...found.values()];
}

function* whereabouts(room: RoomId | null, personaId: PersonaId | null) {
  const ofRoom = room === null ? '' : 'and heard.room_id = @room';
  const ofPersona = personaId === null ? '' : 'and heard.persona_id = @personaId';
  const sql = whereaboutsOf(`${ofRoom} ${ofPersona}`);
  const row = yield* db.one<{ inWindow: number; flushed: number; archived: number }>(sql, {
    room,
    personaId,
  });
  return { window: row?.inWindow ?? 0, flushed: row?.flushed ?? 0, archived: row?.archived ?? 0 };
}

export function traceStore(database: db.Reader): TraceStore {
  return {
    trace: (ask) => trace(database, ask),
    whereabouts: (room, personaId) => database.read(() => whereabouts(room, personaId)),
    notedTurn: (chatId, platformMessageId) =>
      database.read(function* () {
        return (yield* db.value<string>(NOTED_TURN, chatId, platformMessageId)) ?? null;
      }),
    spokeSince: (since) => spokeSince(database, since),
    messages: (which) =>
      database.read(function* () {
        if (Array.isArray(which)) return yield* messagesWith(which);
        const batch = yield* db.value<string>('select batch from turn where id = ?', which.turnId);
        return yield* messagesWith(JSON.parse(batch ?? '[]'));
      }),
  };
}

// ── The turn behind an id ───────────────────────────────────────────────────────────────────────────────────

interface ReplayTurnRow extends Omit<TurnInStore, 'batch' | 'reply' | 'steps' | 'sends'> {
  batch: string;
  resetAt: number;
}
type EntryOfTurn = EntryRow & { turnId: string | null };
type SentRow = Omit<SentByTurn, 'by' | 'text' | 'file' | 'reaction'> & { origin: string; body: string };

/** An entry's id contains its turn's id, even after the entry was deleted. */
const OF_TURN = /^turn-([0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})-/;
const TURN = `
  select ${columns('id personaId state startedAt finishedAt attempts crashes waitsFor waitsUntil batch', 'turn')},
    turn.room_id as room, room.chat_id as chatId, coalesce(view.reset_at, 0) as resetAt
  from turn join room on room.id = turn.room_id
    left join view on view.room_id = turn.room_id and view.persona_id = turn.persona_id
  where turn.id = ?`;
const ENTRY = `select ${ENTRY_COLUMNS}, turn_id as turnId from journal where`;
const REPLY = `
  select ${MESSAGE_COLUMNS} from message
  where id > @last and turn_id = @turnId and author_kind = 'persona' order by id limit 1`;
const SENDS = `
  select ${columns('id chatId origin part body state createdAt finishedAt attempts platformMessageId error')}
  from outbox
  where origin = 'turn:' || @id or (origin > 'tool:' || @id || ':' and origin < 'tool:' || @id || ';')
  order by id`;

function* turnBehind(id: string): db.Verb<Awaited<ReturnType<ReplayStore['turnBehind']>>> {
  const found = yield* db.one<EntryOfTurn>(`${ENTRY} id = ?`, id);
  const message = /^evt-(\d{1,15})$/.exec(id)?.[1];
  const ofMessage =
    message === undefined
      ? null
      : yield* db.value<string | null>('select turn_id from message where id = ?', Number(message));
  const turnId = found?.turnId ?? ofMessage ?? OF_TURN.exec(id)?.[1] ?? id;
  const rows = yield* db.all<EntryOfTurn>(`${ENTRY} ${entriesOfTurn('@turnId')} order by n`, { turnId });
  const entries = rows.map(entryOf);
  const row = yield* db.one<ReplayTurnRow>(TURN, turnId);
  if (row !== undefined) {
    const [first = 0] = JSON.parse(row.batch) as number[];
    return first <= row.resetAt ? { kind: 'forgotten' } : { kind: 'turn', turn: yield* toTurn(row), entries };
  }
  if (entries.length > 0) return { kind: 'entries', entries };
  return found ? { kind: 'entries', entries: [entryOf(found)] } : null;
}

function* toTurn({ resetAt: _, batch, ...row }: ReplayTurnRow): db.Verb<TurnInStore> {
  const ids: number[] = JSON.parse(batch);
  const said = yield* db.one<MessageRow>(REPLY, { last: ids.at(-1) ?? 0, turnId: row.id });
  const steps = yield* db.column<string>('select body from step where turn_id = ? order by n', row.id);
  return {
    ...row,
    batch: yield* messagesWith(ids),
    reply: said ? toMessage(said) : null,
    steps: steps.map((body): Step => JSON.parse(body)),
    sends: (yield* db.all<SentRow>(SENDS, { id: row.id })).map(toSent),
  };
}

function toSent({ origin, body, ...row }: SentRow): SentByTurn {
  const { text, file, reaction } = JSON.parse(body) as Part;
  const by = origin.startsWith('turn:') ? 'answer' : 'tool';
  return { ...row, by, text, file: file?.name ?? null, reaction: reaction?.emoji ?? null };
}

export function replayStore(database: db.Database): ReplayStore {
  return { turnBehind: (id) => database.read(() => turnBehind(id)) };
}
