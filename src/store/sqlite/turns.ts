/** Steps 5 and 6 of the route: the turn that runs in a claimed room, until it is suspended or ends, and how it resumes. */
import { type PersonaId, type RoomId, roomParts } from '../../core/ids.js';
import type { PromptMemory } from '../../core/memory-history.js';
import type { Usage } from '../../core/model.js';
import type { RouteStore } from '../../core/route-store.js';
import type { Step } from '../../core/transcript.js';
import type { AddUsage } from './amounts.js';
import type { AskedCalls } from './approvals.js';
import { CHAT_COLUMNS, type ChatRow } from './chats.js';
import { columns, excluded, insertInto } from './columns.js';
import type { Connection } from './connection.js';
import type { Journal } from './journal.js';
import type { Deliver } from './outbox.js';
import { IS_HELD } from './rooms.js';
import { withShown } from './shown.js';
import type { Speak } from './speak.js';
import { ADD_STEP, type Suspended } from './suspended.js';
import { GIVEN } from './versions.js';

const NO_TOKENS: Usage = { inputTokens: 0, outputTokens: 0 };

type TurnVerbs = Pick<RouteStore, 'addStep' | 'suspend' | 'finish' | 'fail'>;

type Given = { [Name in keyof PromptMemory]: string | null };

interface RunningRow extends ChatRow, Given {
  personaId: PersonaId;
  isBusy: number;
  shown: string | null;
  shownCrashes: number | null;
}

export function turnStore(
  connection: Connection,
  deliver: Deliver,
  addUsage: AddUsage,
  suspended: Suspended,
  speak: Speak,
  journal: Journal,
  asked: AskedCalls,
): TurnVerbs {
  const { raw, write } = connection;
  // Everything that `finish` needs, in one query.
  const running = raw.prepare<[object], RunningRow>(`
    select turn.persona_id as personaId, ${CHAT_COLUMNS}, shown.parts as shown, shown.crashes as shownCrashes,
      exists (select 1 from outbox where chat_id = room.chat_id and finished_at is null) as isBusy,
      ${columns(GIVEN, 'given')}
    from room join turn on turn.id = @turnId and turn.room_id = room.id and turn.state = 'running'
      join chat on chat.id = room.chat_id left join shown on shown.turn_id = turn.id
      left join given on given.room_id = room.id and given.persona_id = turn.persona_id
    where ${IS_HELD}`);
  const runs = raw.prepare<[object], { usedTools: number; owner: string | null }>(`
    select used_tools as usedTools, room.lease_owner as owner from room join turn on turn.room_id = room.id
    where turn.id = @turnId and turn.state = 'running' and ${IS_HELD}`);
  const release = raw.prepare<[RoomId]>('update room set lease_owner = null where id = ?');
  const addStep = raw.prepare<[object]>(ADD_STEP);
  const usedTools = raw.prepare<[string]>('update turn set used_tools = 1 where id = ?');
  const suspend = raw.prepare<[object]>(`
    update turn set state = 'suspended', used_tools = 1, waits_for = @waitsFor, waits_until = @until
    where id = @turnId`);
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
    ${insertInto('given', `roomId personaId ${GIVEN}`)}
    on conflict do update set ${excluded(GIVEN)}`);
  const countAttempt = raw.prepare<[string]>('update turn set attempts = attempts + 1 where id = ?');
  const attempts = raw.prepare<[string], number>('select attempts from turn where id = ?').pluck();

  function noteGiven(room: RoomId, row: RunningRow, given: PromptMemory): void {
    const isSame = (Object.keys(given) as (keyof PromptMemory)[]).every((name) => row[name] === given[name]);
    // Usually nothing has changed.
    if (!isSame) setGiven.run({ roomId: room, personaId: row.personaId, ...given });
  }

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
          leave.run({ room, exchange: asJson(finish.exchange) });
        } else {
          const { addressed, hearers, wordless = false, tainted = false } = finish;
          const said = { room, personaId, text: reply, wordless, tainted, turnId, addressed, hearers, now };
          const id = speak(row, said);
          const { exchange } = finish;
          const goesOn = exchange && { ...exchange, said: [...exchange.said, { id, by: personaId }] };
          leaveAfterWord.run({ room, exchange: asJson(goesOn), personaId, now, id });
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

function usesTools(step: Step): boolean {
  return step.kind !== 'answer' || step.calls.length > 0;
}

function asJson(value: object | null): string | null {
  return value === null ? null : JSON.stringify(value);
}
