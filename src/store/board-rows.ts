/** Entries of a room's log as rows: with the files, calls, approvals and memory of their turns, and the state of a send. */
import type { Anew } from '../core/anew.js';
import { BOARD, type LoggedApproval, type LoggedFile, type LoggedRow } from '../core/board.js';
import type { Appearance, Choice, Part } from '../core/channel.js';
import { cutAt } from '../core/cut.js';
import { typeOf } from '../core/file-types.js';
import { type ChatId, channelOf, type PersonaId, type RoomId, roomParts } from '../core/ids.js';
import type { StoredAttachment } from '../core/media.js';
import { type Cause, changedLines, type Tier } from '../core/memory.js';
import { reactionText, type Step, type StoredReply } from '../core/transcript.js';
import { numbersOfNewest } from './anew.js';
import * as db from './db.js';
import { columns } from './sql.js';

interface At<Source extends string> {
  source: Source;
  at: number;
}
interface LoggedMessage extends At<'message'> {
  id: number;
  authorKind: 'person' | 'persona' | 'gateway';
  authorId: string;
  authorName: string;
  text: string;
  words: string | null;
  sentAt: number;
  receivedAt: number;
  replyTo: string | null;
  turnId: string | null;
  attachments: string | null;
  forwardedFrom: string | null;
  state: 'waiting' | 'done';
  quiet: number;
}
interface LoggedCommand extends At<'command'> {
  id: number;
  senderId: ChatId;
  senderName: string;
  name: string;
  argument: string;
}
interface Sent {
  origin: string;
  body: string;
  state: string;
  attempts: number;
  error: string | null;
  face: string | null;
}
interface LoggedSend extends At<'outbox'>, Sent {
  id: number;
  personaId: PersonaId;
  turnId: string | null;
}
/** One that ended without an answer, or that is not over. */
interface LoggedTurn extends At<'turn'> {
  id: string;
  personaId: PersonaId;
  state: string;
  startedAt: number;
  usedTools: number;
  /** JSON: the answer that it replaces. */
  anew?: string | null;
}

export type LogEntry = LoggedMessage | LoggedCommand | LoggedSend | LoggedTurn;

const ACTIVE = (where: string) => `
  select 'turn' as source, started_at as at, ${columns('id personaId state startedAt usedTools anew')} from turn
  where room_id = ? and ${where}`;
const RUNNING = ACTIVE(`state = 'running'`);
const SUSPENDED = ACTIVE(`state in ('suspended', 'ready') order by started_at, id`);

/** The turns of a room that are not over, the running one last. */
export function* activeTurns(room: RoomId): db.Verb<LoggedTurn[]> {
  const waiting = yield* db.all<LoggedTurn>(SUSPENDED, room);
  return [...waiting, ...(yield* db.all<LoggedTurn>(RUNNING, room))];
}

// ── What belongs to turns ───────────────────────────────────────────────────────────────────────────────────

/** Of some turns, by their ids. */
interface TurnFacts {
  sends: Map<string, (Sent & { part: Part })[]>;
  calls: Map<string, LoggedRow['calls']>;
  approvals: Map<string, LoggedApproval[]>;
  remembered: Map<string, LoggedRow['remembered']>;
  shown: Map<string, string>;
}

const USED_TOOLS = 'select id from turn where text_in(id, ?) and used_tools = 1';
const SENDS = `
  select ${columns('origin body state attempts error face')} from outbox
  where text_in(origin, ?) order by origin, persona_id, part`;
const STEPS = `select turn_id as turnId, body from step where text_in(turn_id, ?) order by turn_id, n`;
const SHOWN = `select turn_id as turnId, parts from shown where text_in(turn_id, ?)`;
const APPROVAL = columns('id turnId callId tool arguments why until decision roomId');
const APPROVALS = `select ${APPROVAL} from asked_call where text_in(turn_id, ?) order by asked_at, id`;
const VERSIONS = `
  select ${columns('id chatId personaId file tier before after cause')} from version
  where chat_id = @chatId and undone = 0 and at >= @since order by n`;

type ApprovalRow = LoggedApproval & { turnId: string; callId: string; roomId: RoomId };

/** Long ones are shown whole where a turn is opened. */
const MOST_CHARS = 4_000;

function* factsOf(room: RoomId, entries: readonly LogEntry[]): db.Verb<TurnFacts> {
  const own = entries.flatMap((entry) => turnOf(entry) ?? []);
  const ids = JSON.stringify(own);
  const facts: TurnFacts = {
    sends: new Map(),
    calls: new Map(),
    approvals: new Map(),
    remembered: new Map(),
    shown: new Map(),
  };
  if (own.length === 0) return facts;
  const origins = JSON.stringify(own.flatMap((id) => [`turn:${id}`, `tool:${id}:made`]));
  for (const sent of yield* db.all<Sent>(SENDS, origins)) {
    add(facts.sends, sent.origin.split(':')[1] ?? '', { ...sent, part: JSON.parse(sent.body) });
  }
  if (
    entries.some(
      ({ source, state }: { source: string; state?: string }) => source === 'turn' && !isOver(state),
    )
  ) {
    for (const { turnId, parts } of yield* db.all<{ turnId: string; parts: string }>(SHOWN, ids)) {
      facts.shown.set(
        turnId,
        (JSON.parse(parts) as { body: Part }[]).map(({ body }) => body.text).join('\n\n'),
      );
    }
  }
  const busy = yield* db.column<string>(USED_TOOLS, ids);
  if (busy.length === 0) return facts;
  yield* addCalls(facts, JSON.stringify(busy));
  const since = Math.min(...entries.map((entry) => (entry.source === 'turn' ? entry.startedAt : entry.at)));
  yield* addRemembered(facts, room, since, new Set(busy));
  return facts;
}

function* addCalls({ calls, approvals }: TurnFacts, ids: string): db.Verb<void> {
  for (const { turnId, body } of yield* db.all<{ turnId: string; body: string }>(STEPS, ids)) {
    const step: Step = JSON.parse(body);
    if (step.kind === 'answer') {
      for (const { id, name: tool, arguments: given } of step.calls) {
        add(calls, turnId, { id, tool, arguments: cutAt(given, MOST_CHARS), result: null, failed: false });
      }
    } else if (step.kind === 'result') {
      const call = calls.get(turnId)?.findLast(({ id }) => id === step.callId);
      if (call) Object.assign(call, { result: cutAt(step.content, MOST_CHARS), failed: step.failed });
    }
  }
  for (const row of yield* db.all<ApprovalRow>(APPROVALS, ids)) {
    const call = calls.get(row.turnId)?.findLast(({ id }) => id === row.callId);
    add(approvals, row.turnId, approvalOf(row, call?.arguments));
  }
}

function approvalOf(row: ApprovalRow, given = ''): LoggedApproval {
  const { id, tool, why, until, decision } = row;
  return { id, tool, arguments: row.arguments || given, why, until, decision };
}

interface VersionRow {
  id: string;
  chatId: ChatId;
  personaId: PersonaId;
  file: string;
  tier: Tier | null;
  before: string;
  after: string;
  cause: string;
}

/** A turn begins before it is answered: hence the time beforehand. */
const BEFORE_MS = 3_600_000;

function* addRemembered(
  { remembered }: TurnFacts,
  room: RoomId,
  since: number,
  turns: ReadonlySet<string>,
): db.Verb<void> {
  const { chatId } = roomParts(room);
  for (const row of yield* db.all<VersionRow>(VERSIONS, { chatId, since: since - BEFORE_MS })) {
    const { id: version, personaId, file, tier, before, after } = row;
    const { turnId }: Cause = JSON.parse(row.cause);
    const [line] = changedLines(before, after).came;
    if (turnId === null || !turns.has(turnId) || line === undefined) continue;
    add(remembered, turnId, { version, chatId, personaId, file, tier, line });
  }
}

function add<Value>(map: Map<string, Value[]>, key: string, value: Value): void {
  const values = map.get(key);
  if (values) values.push(value);
  else map.set(key, [value]);
}

/** The turn that speaks in an entry. */
function turnOf(entry: LogEntry): string | null {
  if (entry.source === 'turn') return entry.id;
  return entry.source === 'message' && entry.authorKind === 'persona' ? entry.turnId : null;
}

function isOver(state = ''): boolean {
  return ['answered', 'failed', 'parked', 'aborted'].includes(state);
}

// ── Rows ────────────────────────────────────────────────────────────────────────────────────────────────────

const ASKED = `select ${APPROVAL} from asked_call where id = ?`;
const HAS_TURN = 'select 1 from turn where id = ?';
const OPEN_OFFER = 'select 1 from offer where key = ? and ended_at is null';

export function* logRows(room: RoomId, entries: readonly LogEntry[]): db.Verb<LoggedRow[]> {
  const facts = yield* factsOf(room, entries);
  const replaced = new Set(entries.flatMap((entry) => anewIn(entry)?.messageId ?? []));
  const rows: LoggedRow[] = [];
  for (const entry of entries) {
    if (entry.source === 'message' && replaced.has(entry.id)) continue;
    const row =
      entry.source === 'outbox'
        ? yield* sendRow(room, entry)
        : entry.source === 'command'
          ? commandRow(entry)
          : spoken(room, entry, facts);
    if (row !== null) rows.push(row);
  }
  yield* goOn(rows, entries);
  yield* numberVersions(room, rows, entries);
  return rows;
}

function anewIn(entry: LogEntry): Anew | null {
  return entry.source === 'turn' && entry.anew ? (JSON.parse(entry.anew) as Anew) : null;
}

/** An answer that is continued stays until more of it is there. */
function* goOn(rows: LoggedRow[], entries: readonly LogEntry[]): db.Verb<void> {
  for (const entry of entries) {
    const anew = anewIn(entry);
    const row = anew?.how === 'more' ? rows.find(({ turn }) => turn === turnOf(entry)) : undefined;
    if (row?.text !== '' || anew === null) continue;
    row.text = (yield* db.value<string>('select text from message where id = ?', anew.messageId)) ?? '';
  }
}

/** Of the newest answer, in a chat of the page: elsewhere the platform has the buttons. */
function* numberVersions(room: RoomId, rows: LoggedRow[], entries: readonly LogEntry[]): db.Verb<void> {
  if (!isBoards(room)) return;
  const found = yield* numbersOfNewest(room);
  const entry = entries.find(({ source, id }) => source === 'message' && id === found?.messageId);
  const key = entry && (turnOf(entry) === null ? `m${entry.id}` : `t${turnOf(entry)}`);
  const row = rows.find((each) => each.key === key);
  if (row === undefined || found === null) return;
  row.versions = { shown: found.shown, all: found.all };
}

const NOTHING = {
  plain: false,
  state: null,
  replyTo: null,
  forwardedFrom: null,
  turn: null,
  files: [],
  calls: [],
  approvals: [],
  remembered: [],
  choices: [],
  versions: null,
} satisfies Partial<LoggedRow>;

function commandRow({ id, at, senderId, senderName, name, argument }: LoggedCommand): LoggedRow {
  const author = { kind: 'person' as const, id: senderId, name: senderName };
  return { ...NOTHING, key: `c${id}`, author, at, text: `/${name} ${argument}`.trim() };
}

function spoken(room: RoomId, entry: LoggedMessage | LoggedTurn, facts: TurnFacts): LoggedRow | null {
  const turn = turnOf(entry);
  if (turn === null) return entry.source === 'message' ? wordsRow(entry) : null;
  const sends = facts.sends.get(turn) ?? [];
  const row: LoggedRow = {
    ...NOTHING,
    key: `t${turn}`,
    author: {
      kind: 'persona',
      id: entry.source === 'message' ? entry.authorId : entry.personaId,
      name: nameIn(sends.find(({ face }) => face !== null)?.face ?? null),
    },
    at: entry.at,
    text: entry.source === 'message' ? entry.text : '',
    turn,
    state: sends.some(isUnsent) ? 'unsent' : null,
    files: sends.flatMap(({ part }) => fileOf(part)),
    calls: facts.calls.get(turn) ?? [],
    approvals: facts.approvals.get(turn) ?? [],
    remembered: facts.remembered.get(turn) ?? [],
  };
  if (entry.source === 'message') return isEmpty(row) ? null : row;
  const plain = !isBoards(room);
  if (!isOver(entry.state)) {
    const shown = facts.shown.get(turn) ?? '';
    return { ...row, text: shown, plain, state: entry.state === 'suspended' ? null : 'writing' };
  }
  const text = sends.flatMap(({ part }) => part.text || []).join('\n\n');
  return text === ''
    ? null
    : { ...row, text, plain, state: entry.state === 'aborted' ? row.state : 'failed' };
}

function wordsRow(message: LoggedMessage): LoggedRow {
  const { id, authorKind, authorId, authorName, text, words, replyTo, attachments, forwardedFrom } = message;
  const quote: StoredReply | null = replyTo === null ? null : JSON.parse(replyTo);
  return {
    ...NOTHING,
    key: `m${id}`,
    author:
      authorKind === 'persona'
        ? { kind: 'persona', id: authorId, name: null }
        : { kind: 'person', id: authorId, name: authorName },
    at: message.at,
    text: words ?? text,
    state: message.state === 'waiting' && message.quiet === 0 ? 'waiting' : null,
    replyTo: quote && { author: quote.senderName, text: quote.text },
    forwardedFrom,
    turn: message.turnId,
    files: attachments === null ? [] : (JSON.parse(attachments) as StoredAttachment[]).flatMap(attached),
  };
}

/** null: there is nothing to see of it. */
function* sendRow(room: RoomId, entry: LoggedSend): db.Verb<LoggedRow | null> {
  const part: Part = JSON.parse(entry.body);
  const approvals: LoggedApproval[] = [];
  const [kind, callId = ''] = entry.origin.split(':');
  if (kind === 'asked') {
    const call = yield* db.one<ApprovalRow>(ASKED, callId);
    // The row of the turn that asks here shows the call.
    if (call?.roomId === room && (yield* db.one(HAS_TURN, call.turnId)) !== undefined) return null;
    if (call) approvals.push(approvalOf(call));
  }
  const isPersonas = entry.personaId !== '';
  const row: LoggedRow = {
    ...NOTHING,
    key: `o${entry.id}`,
    author: isPersonas
      ? { kind: 'persona', id: entry.personaId, name: nameIn(entry.face) }
      : { kind: 'gateway' },
    at: entry.at,
    text: part.reaction ? reactionText(part.reaction.emoji) : part.text,
    plain: !isBoards(room),
    turn: entry.turnId,
    state: isUnsent(entry) ? 'unsent' : null,
    files: fileOf(part),
    approvals,
    choices: approvals.length === 0 ? yield* openChoices(part.choices ?? []) : [],
  };
  return isEmpty(row) ? null : row;
}

function* openChoices(choices: Choice[]): db.Verb<Choice[]> {
  const key = choices[0]?.value.replace(/\.\d+$/, '');
  return key !== undefined && (yield* db.one(OPEN_OFFER, key)) !== undefined ? choices : [];
}

/** Other channels split a text into words and marks. */
function isBoards(room: RoomId): boolean {
  return channelOf(room) === BOARD;
}

function isEmpty({ text, files, calls, approvals }: LoggedRow): boolean {
  return text === '' && files.length + calls.length + approvals.length === 0;
}

/** Given up, or still to be sent after a failure. */
function isUnsent({ state, error }: Sent): boolean {
  return ['refused', 'unconfirmed', 'parked'].includes(state) || (state === 'waiting' && error !== null);
}

function nameIn(face: string | null): string | null {
  return face === null ? null : (JSON.parse(face) as Appearance).name;
}

function fileOf({ file }: Part): LoggedFile[] {
  if (file === undefined) return [];
  const { name, path } = file;
  return [{ name, type: typeOf(name) ?? null, bytes: null, place: { path } }];
}

function attached({ name, kind, mimeType, bytes, outcome, ofReply }: StoredAttachment): LoggedFile[] {
  // It stands at the message that it came with.
  if (ofReply) return [];
  const place = outcome?.kind === 'kept' ? { media: outcome.file } : null;
  const type = outcome?.kind === 'kept' ? outcome.mimeType : mimeType;
  return [{ name: name ?? kind, type, bytes, place }];
}
