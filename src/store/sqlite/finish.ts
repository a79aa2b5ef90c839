/** Step 6 of the route: a turn ends, all or nothing, and what its persona said is in the transcript and in the outbox. */
import { type PersonaId, type RoomId, roomParts } from '../../core/ids.js';
import type { PromptMemory } from '../../core/memory-history.js';
import type { Usage } from '../../core/model.js';
import type { RouteStore } from '../../core/route-store.js';
import type { AddUsage } from './amounts.js';
import { CHAT_COLUMNS, type ChatRow } from './chats.js';
import { FREE_ROOM, IS_HELD } from './claims.js';
import { columns, excluded, insertInto } from './columns.js';
import type { Connection } from './connection.js';
import type { Journal } from './journal.js';
import type { Deliver } from './outbox.js';
import { withShown } from './shown.js';
import { RUNS } from './steps.js';
import { GIVEN } from './versions.js';

const NO_TOKENS: Usage = { inputTokens: 0, outputTokens: 0 };

type Given = { [Name in keyof PromptMemory]: string | null };

interface RunningRow extends ChatRow, Given {
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
      ${columns(GIVEN, 'given')}
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

export interface Spoken {
  room: RoomId;
  personaId: PersonaId;
  text: string;
  /** It is a reaction, not words. */
  wordless?: boolean;
  /** It answers words from outside. */
  tainted?: boolean;
  turnId: string | null;
  /** The other personas to whom it is addressed, and those who overhear it. */
  addressed: PersonaId[];
  hearers: PersonaId[];
  now: number;
}

/** Adds words of a persona to the transcript: its reply, or its greeting. To be called within a transaction. Returns the message's id. */
export type Speak = (chat: Pick<ChatRow, 'chatId' | 'account' | 'moves'>, spoken: Spoken) => number;

export function speakOf({ raw }: Pick<Connection, 'raw'>): Speak {
  const say = raw.prepare<[object]>(`
    insert into message (room_id, chat_id, account, moves, author_kind, author_id, author_name, administrator, text,
      sent_at, received_at, mentions_bot, edited, state, turn_id, reaction, tainted)
    values (@room, @chatId, @account, @moves, 'persona', @personaId, @personaId, 0, @text,
      @now, @now, 0, 0, 'done', @turnId, @reaction, @tainted)`);
  const hear = raw.prepare<[object]>(`
    insert into heard (room_id, persona_id, addressed, heard_after, message_id)
    select @room, value->>0, value->>1, @id - 1, @id from json_each(@rows)`);

  return (
    { chatId, account, moves },
    { room, personaId, text, wordless, tainted, turnId, addressed, hearers, now },
  ) => {
    const said = {
      ...{ room, chatId, account, moves, personaId, text, now, turnId },
      reaction: wordless ? 1 : 0,
      tainted: tainted ? 1 : 0,
    };
    const id = Number(say.run(said).lastInsertRowid);
    const toWhom = new Set([personaId, ...addressed]);
    const overheard = hearers.filter((hearer) => !toWhom.has(hearer));
    const rows = [...[...toWhom].map((hearer) => [hearer, 1]), ...overheard.map((hearer) => [hearer, 0])];
    hear.run({ room, id, rows: JSON.stringify(rows) });
    return id;
  };
}
