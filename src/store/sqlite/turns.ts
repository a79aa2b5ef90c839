/** Turns that wait for something outside of them, and how they go on: a result, a person's decision, or their time. */

import { type ApprovalStore, type AskedCall, waitsForCall } from '../../core/access.js';
import { type PersonaId, type RoomId, roomParts } from '../../core/ids.js';
import type { PromptMemory } from '../../core/memory.js';
import type { Usage } from '../../core/model.js';
import type { ReceiptOf } from '../../core/receipt.js';
import type { RouteStore } from '../../core/route-store.js';
import type { Step } from '../../core/transcript.js';
import { CHAT_COLUMNS, type ChatRow } from './chats.js';
import type { Connection } from './connection.js';
import type { Journal } from './journal.js';
import { withShown } from './live.js';
import { PROMPT_SNAPSHOT } from './memory-history.js';
import type { Deliver } from './outbox.js';
import { ASKED_CALL, type AskedCalls, type CallRow } from './questions.js';
import { FREE_ROOM, IS_HELD } from './rooms.js';
import type { askedCall } from './schema-work.js';
import { bound, columns, excluded, insertInto, type Row } from './sql.js';
import type { TaskSignal } from './task-events.js';
import { REVISE_ROOM, type Speak } from './transcript.js';
import type { AddUsage } from './values.js';

const ADD_STEP = `
  insert into step (turn_id, n, body)
  values (@turnId, (select coalesce(max(n), 0) + 1 from step where turn_id = @turnId), @body)`;

export type Suspended = ReturnType<typeof suspendedOf>;

/** To be called within a transaction. */
export function suspendedOf({ raw }: Connection, journal: Journal) {
  const find = raw.prepare<[string], { id: string; room: RoomId; personaId: PersonaId }>(`
    select id, room_id as room, persona_id as personaId from turn
    where waits_for = ? and waits_for is not null and state = 'suspended'`);
  const lastStep = raw
    .prepare<[string], string>('select body from step where turn_id = ? order by n desc limit 1')
    .pluck();
  const addStep = raw.prepare<[object]>(ADD_STEP);
  const makeReady = raw.prepare<[string]>(`
    update turn set state = 'ready', waits_for = null, waits_until = null where id = ?`);
  const revise = raw.prepare<[RoomId]>(REVISE_ROOM);
  const keepEarly = raw.prepare<[object]>(`
    ${insertInto('early_result', 'waitsFor content failed at')} on conflict do nothing`);
  const takeEarly = raw.prepare<[string], { content: string; failed: number }>(
    'delete from early_result where waits_for = ? returning content, failed',
  );

  function goOn(waitsFor: string, next: (callId: string) => Step, now: number): RoomId | null {
    const turn = find.get(waitsFor);
    const last = turn && lastStep.get(turn.id);
    if (!turn || last === undefined) return null;
    const waiting: Step = JSON.parse(last);
    if (waiting.kind !== 'waiting') return null;
    const step = next(waiting.callId);
    addStep.run({ turnId: turn.id, body: JSON.stringify(step) });
    if (step.kind === 'result') {
      const { id: turnId, room, personaId } = turn;
      journal.cameBack({ turnId, room, personaId, ...step, at: now });
    }
    makeReady.run(turn.id);
    // While it was suspended, copies may have rendered its messages for good, as unanswered.
    revise.run(turn.room);
    return turn.room;
  }

  const resultOf = (content: string, failed: boolean) => (callId: string) =>
    ({ kind: 'result', callId, content, failed }) as const;

  return {
    /** What the turn waits for has come to this step. Returns its room; null if no turn waits for it. */
    goOn,
    /** The awaited result has come: the turn is to resume. Returns its room; null if no turn waits for it (yet). */
    resume(result: ReceiptOf<'resume'>, now: number): RoomId | null {
      const { waitsFor, content, failed, isTimeout } = result;
      const room = goOn(waitsFor, resultOf(content, failed), now);
      if (room === null && !isTimeout) keepEarly.run(bound({ waitsFor, content, failed, at: now }));
      return room;
    },
    /** A turn was just suspended: its result may have come before. */
    resumeWithEarly(waitsFor: string, now: number): void {
      const early = takeEarly.get(waitsFor);
      if (early) goOn(waitsFor, resultOf(early.content, early.failed === 1), now);
    },
  };
}

export function approvalStore(
  { raw, withBusyRetry: patiently, read, write }: Connection,
  deliver: Deliver,
  asked: AskedCalls,
  suspended: Suspended,
  tasks: TaskSignal,
): ApprovalStore {
  const find = raw.prepare<[object], DecidedRow & { isOpen: number }>(`
    select ${columns(`${ASKED_CALL} decision commandId`)}, ${IS_OPEN} as isOpen, ${IS_OF_TASK} as isOfTask
    from asked_call where id = @id`);
  const open = raw.prepare<[object], CallRow>(`
    select ${columns(ASKED_CALL)} from asked_call
    where decision is null and chat_id = coalesce(@chatId, chat_id) and ${IS_OPEN} order by asked_at, id`);

  /** Ends the waiting with this step; a task reads what was decided by itself. */
  function goOn({ waitsFor, isOfTask }: DecidedRow, next: (callId: string) => Step, now: number): boolean {
    if (isOfTask === 1) tasks.changed();
    return isOfTask === 1 || suspended.goOn(waitsFor, next, now) !== null;
  }

  return {
    askedCall: (id, now) =>
      patiently(() => {
        const row = find.get({ id: id.toUpperCase(), now });
        return row ? { ...toCall(row), isOpen: row.isOpen === 1 } : null;
      }),

    askedCalls: (now, chatId) => read(() => open.all({ now, chatId: chatId ?? null }).map(toCall)),

    decide: ({ id: typed, by, commandId, now, refusal }) =>
      write(() => {
        const row = find.get({ id: typed.toUpperCase(), now });
        if (!row) return { kind: 'unknown' };
        const { id, roomId: wakes, arguments: given } = row;
        if (row.commandId === commandId && (row.decision === 'approved' || row.decision === 'denied')) {
          return { kind: row.decision, wakes };
        }
        if (row.isOpen === 0 || waitsForCall(row) !== row.waitsFor) return { kind: 'over' };
        const step = (callId: string): Step =>
          refusal === null
            ? { kind: 'approved', callId, arguments: given, by }
            : { kind: 'result', callId, content: refusal.content, failed: true };
        if (!goOn(row, step, now)) return { kind: 'over' };
        const decision = refusal === null ? 'approved' : 'denied';
        asked.end(id, { decision, by, commandId }, now);
        if (refusal?.told) deliver.putOnce(refusal.told, refusal.told.delivery);
        return { kind: decision, wakes };
      }),

    expire: ({ id, now, refusal }) =>
      write(() => {
        const row = find.get({ id, now });
        if (!row || row.decision !== null) return null;
        const step = (callId: string): Step => ({
          kind: 'result',
          callId,
          content: refusal.content,
          failed: true,
        });
        const isOver = goOn(row, step, now);
        asked.end(id, { decision: isOver ? 'expired' : 'ended' }, now);
        if (!isOver) return null;
        if (refusal.told) deliver.putOnce(refusal.told, refusal.told.delivery);
        return row.roomId;
      }),
  };
}

function toCall({ roomId: room, ...row }: CallRow): AskedCall {
  const { id, waitsFor, chatId, personaId, turnId, callId, tool, why, askedAt, until } = row;
  return {
    ...{ id, waitsFor, room, chatId, personaId, turnId, callId, tool },
    ...{ arguments: row.arguments, why, askedAt, until },
  };
}

type DecidedRow = CallRow & Pick<Row<typeof askedCall>, 'decision' | 'commandId'> & { isOfTask: number };

/** A task asked, which goes on while it waits. */
const IS_OF_TASK = `exists (select 1 from task where task.id = asked_call.turn_id and task.status = 'running')`;
/** Nobody has decided, and its turn still waits for it. */
const IS_OPEN = `decision is null and until > @now and (${IS_OF_TASK} or exists (
  select 1 from turn where turn.id = asked_call.turn_id and turn.state = 'suspended'
    and turn.waits_for = asked_call.waits_for))`;

// Step 5 of the route: the steps of a turn that runs in a claimed room, until it ends or is suspended.

/** Whether the turn runs in the room, which is claimed for it. */
const RUNS = `
  select used_tools as usedTools, room.lease_owner as owner from room join turn on turn.room_id = room.id
  where turn.id = @turnId and turn.state = 'running' and ${IS_HELD}`;

export function stepStore(
  { raw, write }: Connection,
  suspended: Suspended,
  journal: Journal,
  asked: AskedCalls,
): Pick<RouteStore, 'addStep' | 'suspend'> {
  const runs = raw.prepare<[object], { usedTools: number; owner: string | null }>(RUNS);
  const addStep = raw.prepare<[object]>(ADD_STEP);
  const usedTools = raw.prepare<[string]>('update turn set used_tools = 1 where id = ?');
  const suspend = raw.prepare<[object]>(`
    update turn set state = 'suspended', used_tools = 1, waits_for = @waitsFor, waits_until = @until
    where id = @turnId`);
  const release = raw.prepare<[RoomId]>(FREE_ROOM);

  return {
    addStep: ({ room, fence }, turnId, step, entries = []) =>
      write(() => {
        const row = runs.get({ room, fence, turnId });
        if (!row) return false;
        addStep.run({ turnId, body: JSON.stringify(step) });
        if (usesTools(step) && row.usedTools === 0) usedTools.run(turnId);
        journal.write(entries, row.owner);
        return true;
      }),

    suspend: ({ room, fence }, turnId, step, now, { entries = [], question } = {}) =>
      write(() => {
        const row = runs.get({ room, fence, turnId });
        if (!row) return false;
        addStep.run({ turnId, body: JSON.stringify(step) });
        journal.write(entries, row.owner);
        suspend.run({ turnId, waitsFor: step.waitsFor, until: step.until });
        if (question) asked.ask(question);
        suspended.resumeWithEarly(step.waitsFor, now);
        release.run(room);
        return true;
      }),
  };
}

function usesTools(step: Step): boolean {
  return step.kind !== 'answer' || step.calls.length > 0;
}

// Step 6 of the route: a turn ends, all or nothing, and what its persona said is in the transcript and in the outbox.

const NO_TOKENS: Usage = { inputTokens: 0, outputTokens: 0 };

type PromptColumns = { [Name in keyof PromptMemory]: string | null };

interface RunningRow extends ChatRow, PromptColumns {
  personaId: PersonaId;
  isBusy: number;
  shown: string | null;
  shownCrashes: number | null;
}

export function finishStore(
  connection: Connection,
  deliver: Deliver,
  addUsage: AddUsage,
  speak: Speak,
  journal: Journal,
): Pick<RouteStore, 'finish' | 'fail'> {
  const { raw, write } = connection;
  // Everything that `finish` needs, in one query.
  const running = raw.prepare<[object], RunningRow>(`
    select turn.persona_id as personaId, ${CHAT_COLUMNS}, shown.parts as shown, shown.crashes as shownCrashes,
      exists (select 1 from outbox where chat_id = room.chat_id and finished_at is null) as isBusy,
      ${columns(PROMPT_SNAPSHOT, 'given')}
    from room join turn on turn.id = @turnId and turn.room_id = room.id and turn.state = 'running'
      join chat on chat.id = room.chat_id left join shown on shown.turn_id = turn.id
      left join given on given.room_id = room.id and given.persona_id = turn.persona_id
    where ${IS_HELD}`);
  const runs = raw.prepare<[object]>(RUNS);
  const release = raw.prepare<[RoomId]>(FREE_ROOM);
  const end = raw.prepare<[object]>(`
    update turn set state = @outcome, finished_at = @now where id = @turnId`);
  const leave = raw.prepare<[object]>(
    'update room set exchange = @exchange, lease_owner = null where id = @room',
  );
  const leaveAfterWord = raw.prepare<[object]>(`
    update room set exchange = @exchange, lease_owner = null, last_persona = @personaId, last_reply_at = @now,
      newest_message = @id where id = @room`);
  // How large the last request was.
  const measure = raw.prepare<[object]>(`
    insert into view (room_id, persona_id, reset_at, counted, estimated)
    values (@room, @personaId, 0, @counted, @estimated)
    on conflict do update set ${excluded('counted estimated')}`);
  const removeShown = raw.prepare<[string]>('delete from shown where turn_id = ?');
  const setGiven = raw.prepare<[object]>(`
    ${insertInto('given', `roomId personaId ${PROMPT_SNAPSHOT}`)}
    on conflict do update set ${excluded(PROMPT_SNAPSHOT)}`);
  const countAttempt = raw.prepare<[string]>('update turn set attempts = attempts + 1 where id = ?');
  const attempts = raw.prepare<[string], number>('select attempts from turn where id = ?').pluck();

  function noteGiven(room: RoomId, row: RunningRow, given: PromptMemory): void {
    const isSame = (Object.keys(given) as (keyof PromptMemory)[]).every((name) => row[name] === given[name]);
    // Usually nothing has changed.
    if (!isSame) setGiven.run({ roomId: room, personaId: row.personaId, ...given });
  }

  return {
    finish: (finish) =>
      write(() => {
        const { claim, turnId, outcome, reply, usage, measured, given, now } = finish;
        const { room } = claim;
        const row = running.get({ room, fence: claim.fence, turnId });
        if (!row) return 'lost';
        const { personaId, chatId, channel, address, kind } = row;
        end.run({ turnId, outcome, now });
        // Only a turn that was given up leaves a call behind whose outcome it has not stored.
        if (outcome !== 'answered') journal.interrupt(turnId, GIVEN_UP, now);
        if (reply === null) {
          leave.run({ room, exchange: finish.exchange && JSON.stringify(finish.exchange) });
        } else {
          const { addressed, hearers, wordless = false, tainted = false } = finish;
          const said = { room, personaId, text: reply, wordless, tainted, turnId, addressed, hearers, now };
          const id = speak(row, said);
          const { exchange } = finish;
          const goesOn = exchange && { ...exchange, said: [...exchange.said, { id, by: personaId }] };
          leaveAfterWord.run({ room, exchange: goesOn && JSON.stringify(goesOn), personaId, now, id });
        }
        const turn = { id: turnId, personaId };
        const shown =
          row.shown === null ? null : { parts: JSON.parse(row.shown), crashes: row.shownCrashes ?? 0 };
        const entries = shown ? withShown(turn, shown, finish.deliveries) : finish.deliveries;
        if (shown) removeShown.run(turnId);
        const to = { chatId, channel, address, threadId: roomParts(room).threadId, kind, now };
        const first = deliver.put(to, entries, row.isBusy === 0 ? finish.send : null);
        if (usage || outcome === 'answered') {
          addUsage(
            { room, personaId, personId: finish.personId },
            { turns: 1, ...(usage ?? NO_TOKENS) },
            now,
          );
        }
        if (measured) measure.run({ room, personaId, ...measured });
        if (given) noteGiven(room, row, given);
        return { first };
      }),

    fail: ({ room, fence }, turnId) =>
      write(() => {
        if (runs.get({ room, fence, turnId })) {
          countAttempt.run(turnId);
          release.run(room);
        }
        return attempts.get(turnId) ?? 0;
      }),
  };
}

const GIVEN_UP = 'The turn was given up before its outcome was known.';
