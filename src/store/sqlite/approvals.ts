/**
 * Tool calls that wait for a person: asked within the transaction that suspends their turn, and decided within the one
 * that makes it ready. What was asked is kept only as long as it can be decided.
 */
import {
  type ApprovalStore,
  type AskedCall,
  type NewQuestion,
  offerKeyOf,
  waitsForCall,
} from '../../core/approval.js';
import type { ChatId } from '../../core/ids.js';
import type { Step } from '../../core/transcript.js';
import { columns, insertInto, type Row } from './columns.js';
import type { Connection } from './connection.js';
import type { Offers } from './offers.js';
import type { Deliver } from './outbox.js';
import type { askedCall } from './schema-record.js';
import type { Suspended } from './suspended.js';
import type { TaskSignal } from './task-signal.js';

const CALL = 'id waitsFor roomId chatId personaId turnId callId tool arguments why askedAt until';
type CallRow = Pick<
  Row<typeof askedCall>,
  | 'id'
  | 'waitsFor'
  | 'roomId'
  | 'chatId'
  | 'personaId'
  | 'turnId'
  | 'callId'
  | 'tool'
  | 'arguments'
  | 'why'
  | 'askedAt'
  | 'until'
>;
type DecidedRow = CallRow & Pick<Row<typeof askedCall>, 'decision' | 'commandId'> & { isOfTask: number };

/** A task asked, which goes on while it waits. */
const IS_OF_TASK = `exists (select 1 from task where task.id = asked_call.turn_id and task.status = 'running')`;
/** Nobody has decided, and its turn still waits for it. */
const IS_OPEN = `decision is null and until > @now and (${IS_OF_TASK} or exists (
  select 1 from turn where turn.id = asked_call.turn_id and turn.state = 'suspended'
    and turn.waits_for = asked_call.waits_for))`;

export type AskedCalls = ReturnType<typeof askedCallsOf>;

/** To be called within a transaction. */
export function askedCallsOf({ raw }: Pick<Connection, 'raw'>, deliver: Deliver, offers: Offers) {
  const add = raw.prepare<[object]>(insertInto('asked_call', CALL));
  const openOf = raw
    .prepare<[object], string>(
      'select id from asked_call where chat_id = @chatId and turn_id = @turnId and decision is null',
    )
    .pluck();
  const decide = raw.prepare<[object]>(`
    update asked_call set decision = @decision, decided_by = @by, command_id = @commandId, decided_at = @now,
      arguments = '', why = ''
    where id = @id`);
  const offered = raw
    .prepare<[object], string>('select key from offer where key > @from and key < @upTo and ended_at is null')
    .pluck();

  /** Its buttons are over with it, in every chat. */
  function end(
    id: string,
    how: { decision: 'approved' | 'denied' | 'expired' | 'ended'; by?: ChatId; commandId?: number },
    now: number,
  ): void {
    decide.run({ by: null, commandId: null, ...how, id, now });
    const from = offerKeyOf(id);
    for (const key of offered.all({ from, upTo: `${from}~` })) offers.end(key, now);
  }

  return {
    ask({ call, posts, offers: offering }: NewQuestion): void {
      const { room: roomId, ...row } = call;
      add.run({ ...row, roomId });
      for (const post of posts) deliver.putOnce(post, post.delivery);
      for (const offer of offering) offers.add(offer);
    },
    end,
    /** Its turn was ended. */
    endOf(chatId: ChatId, turnId: string, now: number): void {
      for (const id of openOf.all({ chatId, turnId })) end(id, { decision: 'ended' }, now);
    },
  };
}

export function approvalStore(
  { raw, patiently, read, write }: Connection,
  deliver: Deliver,
  asked: AskedCalls,
  suspended: Suspended,
  tasks: TaskSignal,
): ApprovalStore {
  const find = raw.prepare<[object], DecidedRow & { isOpen: number }>(`
    select ${columns(`${CALL} decision commandId`)}, ${IS_OPEN} as isOpen, ${IS_OF_TASK} as isOfTask
    from asked_call where id = @id`);
  const open = raw.prepare<[object], CallRow>(`
    select ${columns(CALL)} from asked_call
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
