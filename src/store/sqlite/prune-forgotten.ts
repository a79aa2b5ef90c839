/**
 * Upkeep: deletes, at any age, what `/reset` made personas forget and nobody else may still see: message texts, replies
 * as sent, tool calls and results. The ids of messages that a platform may deliver again are kept that long, without
 * text.
 */
import type { RoomId } from '../../core/ids.js';
import type { StoredAttachment } from '../../core/media.js';
import { FORGOTTEN_FILES, type UpkeepStore } from '../../core/store.js';
import type { Connection } from './connection.js';
import type { Journal } from './journal.js';
import { NO_WORDS } from './outbox.js';
import { stillHeardIn } from './still-heard.js';
import { type Walk, walkOf } from './strides.js';
import { beganBefore } from './views.js';

type Ask = Parameters<UpkeepStore['prune']>[0];

/** Platforms redeliver unacknowledged messages for about a day. */
const REDELIVERED_FOR_MS = 2 * 86_400_000;

interface Candidate {
  id: number;
  room: RoomId;
  attachments: string | null;
  /** It still has text. */
  speaks: number;
  /** Its row is not needed for deduplication. */
  mayGo: number;
}

export function forgottenWalks(connection: Connection, journal: Journal): Walk<Ask>[] {
  const { raw, write } = connection;
  const stillHeard = stillHeardIn(connection);
  const lastReset = raw.prepare<[], number | null>('select max(reset_at) from view').pluck();
  const removeHearings = raw.prepare<[object]>(`
    delete from heard where (room_id, persona_id, addressed, heard_after, message_id) in (
      select heard.room_id, heard.persona_id, addressed, heard_after, message_id
      from view cross join heard on heard.room_id = view.room_id and heard.persona_id = view.persona_id
        and addressed in (0, 1) and heard_after < view.reset_at
      where view.reset_at > 0 limit @most + 0)`);

  const forgottenTurns = raw
    .prepare<[object], string>(`
      select turn.id from turn
        cross join view on view.room_id = turn.room_id and view.persona_id = turn.persona_id
      where turn.id > @after and turn.id <= @upTo and turn.state not in ('running', 'suspended', 'ready')
        and ${beganBefore('view.reset_at')}`)
    .pluck();
  const removeSteps = raw.prepare<[object]>(`
    delete from step where (turn_id, n) in (
      select turn_id, n from json_each(@turns) cross join step on step.turn_id = json_each.value
      limit @most + 0)`);
  // Keeps the row, so that a reply to it on the platform still addresses the persona that said it.
  const silence = (isOf: string) =>
    raw.prepare<[object]>(`
      update outbox set body = '${NO_WORDS}' where id in (
        select outbox.id from json_each(@turns) cross join outbox on ${isOf}
        where finished_at is not null and body <> '${NO_WORDS}' limit @most + 0)`);
  const silenceAnswers = silence(`outbox.origin = 'turn:' || json_each.value`);
  const silenceAsides = silence(`
    outbox.origin > 'tool:' || json_each.value || ':' and outbox.origin < 'tool:' || json_each.value || ';'`);

  const candidates = raw.prepare<[object], Candidate>(`
    select id, room_id as room, attachments,
      text <> '' or words is not null or attachments is not null or reply_to is not null as speaks,
      (platform_message_id is null or received_at < @redeliveredSince)
        and id < (select max(id) from message) as mayGo
    from message
    where id > @after and id <= @upTo and state = 'done'
      and id <= (select max(reset_at) from view where view.room_id = message.room_id)`);
  const removeMessages = raw.prepare<[string]>(
    'delete from message where id in (select value from json_each(?))',
  );
  const silenceMessages = raw.prepare<[string]>(`
    update message set text = '', words = null, attachments = null, reply_to = null
    where id in (select value from json_each(?))`);
  const noted = raw.prepare<[], string>(`select value from setting where key = '${FORGOTTEN_FILES}'`).pluck();
  const noteFiles = raw.prepare<[string]>(`
    insert into setting (key, value) values ('${FORGOTTEN_FILES}', ?)
    on conflict do update set value = excluded.value`);

  function forgottenBetween(ask: object): Candidate[] {
    const byRoom = new Map<RoomId, Candidate[]>();
    for (const each of candidates.all(ask)) byRoom.set(each.room, [...(byRoom.get(each.room) ?? []), each]);
    return [...byRoom].flatMap(([room, ofRoom]) => {
      const heard = stillHeard(
        room,
        ofRoom.map(({ id }) => id),
      );
      return ofRoom.filter(({ id, mayGo, speaks }) => (mayGo || speaks) && !heard.has(id));
    });
  }

  function forgetMessages(forgotten: Candidate[]): number {
    const ids = (which: (each: Candidate) => boolean) =>
      JSON.stringify(forgotten.filter(which).map(({ id }) => id));
    const files = forgotten.flatMap(({ attachments }) => filesOf(attachments));
    if (files.length > 0) noteFiles.run(JSON.stringify([...JSON.parse(noted.get() ?? '[]'), ...files]));
    if (forgotten.length > 0) journal.forgetMessages(forgotten.map(({ id }) => id));
    silenceMessages.run(ids(({ mayGo }) => !mayGo));
    removeMessages.run(ids(({ mayGo }) => mayGo === 1));
    return forgotten.length;
  }

  return [
    ({ most }) => write(() => removeHearings.run({ most }).changes, 'single'),

    walkOf<Ask>(
      connection,
      { table: 'turn', key: 'id', first: '' },
      {
        isDone: () => (lastReset.get() ?? 0) === 0,
        work({ after, upTo, most }) {
          const turns = JSON.stringify(forgottenTurns.all({ after, upTo }));
          return [removeSteps, silenceAnswers, silenceAsides].reduce(
            (sum, statement) => sum + statement.run({ turns, most: most - sum }).changes,
            0,
          );
        },
      },
    ),

    walkOf<Ask>(
      connection,
      { table: 'message', key: 'id', first: 0 },
      {
        isDone: ({ after }) => Number(after) >= (lastReset.get() ?? 0),
        work({ after, upTo, most, now }) {
          const redeliveredSince = now - REDELIVERED_FOR_MS;
          return forgetMessages(forgottenBetween({ after, upTo, redeliveredSince }).slice(0, most));
        },
      },
    ),
  ];
}

function filesOf(attachments: string | null): string[] {
  if (attachments === null) return [];
  return (JSON.parse(attachments) as StoredAttachment[]).flatMap(({ outcome }) =>
    outcome?.kind === 'kept' ? [outcome.file] : [],
  );
}
