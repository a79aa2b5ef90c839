/**
 * Steps 5 and 6 of the route: steps of a turn in a claimed room, suspension (until a result or a person's decision
 * comes), resumption, and the atomic end, which adds the reply to the transcript and the outbox.
 */

import { type ApprovalStore, waitsForCall } from '../core/access.js';
import type { Anew } from '../core/anew.js';
import type { Zone } from '../core/dates.js';
import type { PersonaId, RoomId } from '../core/ids.js';
import type { PromptMemory } from '../core/memory.js';
import type { Usage } from '../core/model.js';
import type { ReceiptOf } from '../core/receipt.js';
import type { Claim, TurnStore } from '../core/store.js';
import type { Step } from '../core/transcript.js';
import {
  keepVersions,
  leaveAnswer,
  leftOver,
  makeWay,
  numberVersion,
  saidBefore,
  shownAtFirst,
} from './anew.js';
import { CHAT_COLUMNS, type ChatRow, targetIn } from './chats.js';
import * as db from './db.js';
import { callCameBack, interruptTurn, writeJournal } from './journal.js';
import { PROMPT_SNAPSHOT } from './memory-history.js';
import { putDeliveries, putDelivery, removeShown, withShown } from './outbox.js';
import { ASKED_CALL, askedIn, askPeople, endCall } from './questions.js';
import { freeRoom, IS_HELD } from './rooms.js';
import type { askedCall } from './schema.js';
import { bound, columns, excluded, insertInto, type Row, upsert } from './sql.js';
import { reviseRoom, speak } from './transcript.js';
import { addUsage } from './values.js';

/** The turn is running, under a valid claim of its room. */
const RUNS = `
  select used_tools as usedTools, room.lease_owner as owner from room join turn on turn.room_id = room.id
  where turn.id = @turnId and turn.state = 'running' and ${IS_HELD}`;

function* runningTurn({ room, fence }: Claim, turnId: string) {
  return yield* db.one<{ usedTools: number; owner: string | null }>(RUNS, { room, fence, turnId });
}

// ── Steps ───────────────────────────────────────────────────────────────────────────────────────────────────

const ADD_STEP = `
  insert into step (turn_id, n, body)
  values (@turnId, (select coalesce(max(n), 0) + 1 from step where turn_id = @turnId), @body)`;
const SUSPEND = `
  update turn set state = 'suspended', used_tools = 1, waits_for = @waitsFor, waits_until = @until
  where id = @turnId`;

function* addStep(turnId: string, step: Step): db.Verb<void> {
  yield* db.tell(ADD_STEP, { turnId, body: JSON.stringify(step) });
}

function usesTools(step: Step): boolean {
  return step.kind !== 'answer' || step.calls.length > 0;
}

// ── Resuming a suspended turn ──────────────────────────────────────────────────────────────────────────────

const SUSPENDED = `
  select id, room_id as room, persona_id as personaId from turn
  where waits_for = ? and waits_for is not null and state = 'suspended'`;
const LAST_STEP = 'select body from step where turn_id = ? order by n desc limit 1';
const MAKE_READY = `
  update turn set state = 'ready', waits_for = null, waits_until = null where id = ? and state = 'suspended'`;

/** Ends the wait with this step. Returns the turn's room; null if no turn waits for it. */
function* goOn(waitsFor: string, next: (callId: string) => Step, now: number): db.Verb<RoomId | null> {
  const turn = yield* db.one<{ id: string; room: RoomId; personaId: PersonaId }>(SUSPENDED, waitsFor);
  const last = turn && (yield* db.value<string>(LAST_STEP, turn.id));
  if (!turn || last === undefined) return null;
  const waiting: Step = JSON.parse(last);
  if (waiting.kind !== 'waiting') return null;
  const step = next(waiting.callId);
  const { id: turnId, room, personaId } = turn;
  yield* addStep(turnId, step);
  if (step.kind === 'result') yield* callCameBack({ turnId, room, personaId, ...step, at: now });
  yield* db.tell(MAKE_READY, turnId);
  // While it was suspended, cached windows may have shown its messages as unanswered.
  yield* reviseRoom(room);
  return room;
}

function resultOf(content: string, failed: boolean): (callId: string) => Step {
  return (callId) => ({ kind: 'result', callId, content, failed });
}

/** The rooms of turns that wait for these results. */
export function* roomsWaitingFor(results: readonly ReceiptOf<'resume'>[]): db.Verb<RoomId[]> {
  const sql = 'select room_id from turn where waits_for is not null and text_in(waits_for, ?)';
  return yield* db.column<RoomId>(sql, JSON.stringify(results.map(({ waitsFor }) => waitsFor)));
}

/** The awaited result has come. Returns the turn's room; null if no turn waits for it (yet). */
export function* resumeTurn(result: ReceiptOf<'resume'>, now: number): db.Verb<RoomId | null> {
  const { waitsFor, content, failed, isTimeout } = result;
  const room = yield* goOn(waitsFor, resultOf(content, failed), now);
  if (room === null && !isTimeout) {
    const keep = `${insertInto('early_result', 'waitsFor content failed at')} on conflict do nothing`;
    yield* db.tell(keep, bound({ waitsFor, content, failed, at: now }));
  }
  return room;
}

/** The result may have come before the turn was suspended. */
function* resumeWithEarly(waitsFor: string, now: number): db.Verb<void> {
  const take = 'delete from early_result where waits_for = ? returning content, failed';
  const early = yield* db.one<{ content: string; failed: number }>(take, waitsFor);
  if (early) yield* goOn(waitsFor, resultOf(early.content, early.failed === 1), now);
}

// ── Calls that wait for a person ────────────────────────────────────────────────────────────────────────────

type CallRow = Omit<Row<typeof askedCall>, 'decidedBy' | 'decidedAt'> & { isOpen: number; isOfTask: number };

/** The call belongs to a running task, which does not suspend. */
const IS_OF_TASK = `exists (select 1 from task where task.id = asked_call.turn_id and task.status = 'running')`;
/** Undecided, and its turn or task still waits for it. */
const IS_OPEN = `decision is null and until > @now and (${IS_OF_TASK} or exists (
  select 1 from turn where turn.id = asked_call.turn_id and turn.state = 'suspended'
    and turn.waits_for = asked_call.waits_for))`;
const callsWhere = (which: string) => `
  select ${columns(`${ASKED_CALL} decision commandId`)}, ${IS_OPEN} as isOpen, ${IS_OF_TASK} as isOfTask
  from asked_call where ${which}`;
const OPEN_CALLS = callsWhere(`decision is null and ${IS_OPEN} order by asked_at, id`);

function* findCall({ id, now }: { id: string; now: number }): db.Verb<CallRow | undefined> {
  return yield* db.one<CallRow>(callsWhere('id = @id'), { id: id.toUpperCase(), now });
}

function* decide(asked: Parameters<ApprovalStore['decide']>[0]): db.Verb<RoomId | null> {
  const { by, refusal, now } = asked;
  const commandId = asked.by === null ? null : asked.commandId;
  const row = yield* findCall(asked);
  if (row === undefined) return null;
  const { id, roomId, waitsFor, arguments: given, decision } = row;
  if (row.commandId === commandId && (decision === 'approved' || decision === 'denied')) return roomId;
  const isOpen = by === null ? decision === null : row.isOpen === 1 && waitsForCall(row) === waitsFor;
  if (!isOpen) return null;
  const step = (callId: string): Step =>
    refusal === null
      ? { kind: 'approved', callId, arguments: given, by: by ?? '' }
      : { kind: 'result', callId, content: refusal.content, failed: true };
  // A task looks for the decision by itself.
  const goesOn = row.isOfTask === 1 || (yield* goOn(waitsFor, step, now)) !== null;
  const decided = by === null ? 'expired' : refusal === null ? 'approved' : 'denied';
  yield* endCall(id, { decision: goesOn ? decided : 'ended', by, commandId }, now);
  if (!goesOn) return null;
  if (refusal?.told) yield* putDelivery(refusal.told, refusal.told.delivery);
  return roomId;
}

export function approvalStore(database: db.Database): ApprovalStore {
  return {
    askedCalls: (which, now) =>
      database.look(function* () {
        const found =
          which === 'open'
            ? yield* db.all<CallRow>(OPEN_CALLS, { now })
            : [(yield* findCall({ ...which, now })) ?? []].flat();
        return found.map(({ roomId: room, isOpen, isOfTask, commandId, ...call }) => {
          return { ...call, room, isOpen: isOpen === 1 };
        });
      }),
    async decide(decision) {
      const of = 'select room_id from asked_call where id = ?';
      const room = await database.look(() => db.value<RoomId>(of, decision.id.toUpperCase()));
      return database.write([db.WAITS, room, decision.refusal?.told?.chatId], () => decide(decision));
    },
  };
}

// ── The end ─────────────────────────────────────────────────────────────────────────────────────────────────

type Finish = Parameters<TurnStore['finish']>[0];
interface FinishedRow extends ChatRow, Record<keyof PromptMemory, string | null> {
  personaId: PersonaId;
  anew: string | null;
  anewInRoom: number | null;
  isBusy: number;
  shown: string | null;
  shownCrashes: number | null;
}

const NO_TOKENS: Usage = { inputTokens: 0, outputTokens: 0 };
const GIVEN_UP = 'The turn was given up before its outcome was known.';

// Everything needed to end a turn, in one query.
const FINISHED = `
  select turn.persona_id as personaId, turn.anew, room.anew as anewInRoom, ${CHAT_COLUMNS}, shown.parts as shown, shown.crashes as shownCrashes,
    exists (select 1 from outbox where chat_id = room.chat_id and finished_at is null) as isBusy,
    ${columns(PROMPT_SNAPSHOT, 'given')}
  from room join turn on turn.id = @turnId and turn.room_id = room.id and turn.state = 'running'
    join chat on chat.id = room.chat_id left join shown on shown.turn_id = turn.id
    left join given on given.room_id = room.id and given.persona_id = turn.persona_id
  where ${IS_HELD}`;
const END = 'update turn set state = @outcome, finished_at = @now where id = @turnId';
const LEAVE = 'update room set exchange = @exchange, lease_owner = null where id = @room';
const LEAVE_AFTER_WORDS = `
  update room set exchange = @exchange, lease_owner = null, last_persona = @personaId, last_reply_at = @now,
    newest_message = @id where id = @room`;
const MEASURE = `
  insert into view (room_id, persona_id, reset_at, counted, estimated)
  values (@room, @personaId, 0, @counted, @estimated)
  on conflict (room_id, persona_id) do update set ${excluded('counted estimated')}`;
const SET_SNAPSHOT = upsert('given', 'roomId personaId', PROMPT_SNAPSHOT);

/** Adds the reply to the transcript and the exchange, and releases the room. */
function* sayAndLeave(row: FinishedRow, anew: Anew | null, finish: Finish): db.Verb<void> {
  const { claim, turnId, reply, exchange, offer, now } = finish;
  const { room } = claim;
  if (reply === null) {
    yield* db.tell(LEAVE, { room, exchange: exchange && JSON.stringify(exchange) });
    return;
  }
  const { personaId } = row;
  const { wordless = false, tainted = false } = finish;
  const { addressed, hearers } = anew ? yield* makeWay(room, turnId, anew) : finish;
  const said = { room, personaId, text: reply, wordless, tainted, turnId, addressed, hearers, now };
  const id = yield* speak(row, said);
  if (anew) yield* numberVersion(id, anew);
  // It is not the newest any more, though nobody has spoken since.
  if (row.anewInRoom !== null && !anew) yield* leaveAnswer(room, row.anewInRoom, now);
  if (anew || offer) yield* keepVersions(room, id, offer, now);
  const goesOn = exchange && { ...exchange, said: [...exchange.said, { id, by: personaId }] };
  yield* db.tell(LEAVE_AFTER_WORDS, { room, exchange: goesOn && JSON.stringify(goesOn), personaId, now, id });
}

/** The deliveries with the parts that show them already. */
function* entriesOf(row: FinishedRow, anew: Anew | null, { claim, turnId, reply, deliveries }: Finish) {
  const turn = { id: turnId, personaId: row.personaId };
  if (row.shown === null && anew === null) return deliveries;
  if (row.shown !== null) yield* removeShown(turnId);
  const noted = row.shown === null ? null : { parts: JSON.parse(row.shown), crashes: row.shownCrashes ?? 0 };
  if (anew === null) return noted ? withShown(turn, noted, deliveries) : deliveries;
  if (reply === null) {
    // If another version was shown already, the old one is shown again.
    const before = noted ? withShown(turn, noted, yield* saidBefore(claim.room, turn, anew)) : [];
    return [...before, ...deliveries];
  }
  const shown = noted ?? (yield* shownAtFirst(claim.room, turnId, anew));
  return [...withShown(turn, shown, deliveries), ...(yield* leftOver(claim.room, turnId, anew))];
}

function* keepSnapshot(room: RoomId, row: FinishedRow, given: PromptMemory): db.Verb<void> {
  const isSame = (Object.keys(given) as (keyof PromptMemory)[]).every((name) => row[name] === given[name]);
  // Usually nothing has changed.
  if (!isSame) yield* db.tell(SET_SNAPSHOT, { roomId: room, personaId: row.personaId, lore: '', ...given });
}

function* finish(zone: Zone, ending: Finish): db.Verb<Awaited<ReturnType<TurnStore['finish']>>> {
  const { claim, turnId, outcome, usage, measured, given, personId, now } = ending;
  const { room } = claim;
  const row = yield* db.one<FinishedRow>(FINISHED, { room, fence: claim.fence, turnId });
  if (!row) return 'lost';
  const { personaId } = row;
  yield* db.tell(END, { turnId, outcome, now });
  // Only a turn that was given up leaves calls without a stored outcome.
  if (outcome !== 'answered') yield* interruptTurn(turnId, GIVEN_UP, now);
  const anew: Anew | null = row.anew === null ? null : JSON.parse(row.anew);
  const entries = yield* entriesOf(row, anew, ending);
  yield* sayAndLeave(row, anew, ending);
  const first = yield* putDeliveries(
    targetIn(room, row, now),
    entries,
    row.isBusy === 0 ? ending.send : null,
  );
  if (usage || outcome === 'answered') {
    yield* addUsage(zone, { room, personaId, personId }, { turns: 1, ...(usage ?? NO_TOKENS) }, now);
  }
  if (measured) yield* db.tell(MEASURE, { room, personaId, ...measured });
  if (given) yield* keepSnapshot(room, row, given);
  return { first };
}

export function turnStore(database: db.Database): TurnStore {
  return {
    addStep: (claim, turnId, step, now, { entries = [], question } = {}) =>
      database.write(
        step.kind === 'waiting' ? [claim.room, db.WAITS, ...askedIn(question)] : claim.room,
        function* () {
          const row = yield* runningTurn(claim, turnId);
          if (!row) return false;
          yield* addStep(turnId, step);
          yield* writeJournal(entries, row.owner);
          if (step.kind === 'waiting') {
            yield* db.tell(SUSPEND, { turnId, waitsFor: step.waitsFor, until: step.until });
            if (question) yield* askPeople(question);
            yield* resumeWithEarly(step.waitsFor, now);
            yield* freeRoom(claim.room);
          } else if (usesTools(step) && row.usedTools === 0) {
            yield* db.tell('update turn set used_tools = 1 where id = ?', turnId);
          }
          return true;
        },
      ),
    finish: (ending) =>
      database.write([ending.claim.room, ending.personId], () => finish(database.zone, ending)),
    fail: (claim, turnId) =>
      database.write(claim.room, function* () {
        if (yield* runningTurn(claim, turnId)) {
          yield* db.tell('update turn set attempts = attempts + 1 where id = ?', turnId);
          yield* freeRoom(claim.room);
        }
        return (yield* db.value<number>('select attempts from turn where id = ?', turnId)) ?? 0;
      }),
  };
}
