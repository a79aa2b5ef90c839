/** An exchange that is taken back: nobody has heard it any more, and its words are gone. */

import { roomParts } from '../core/ids.js';
import type { CommandEffect } from '../core/store.js';
import { batchOf, isUntouched, onScreen, removalOf, unsay } from './anew.js';
import { findChat, targetIn } from './chats.js';
import * as db from './db.js';
import { putDeliveries } from './outbox.js';
import { endOffersOf } from './questions.js';
import { moveFence, reviseRoom } from './transcript.js';
import { forgetFiles } from './values.js';

/** Of the exchange: the messages of people that no other answer answers, too. */
const QUESTIONS = `
  select id from message
  where number_in(id, @batch) and author_kind <> 'persona' and turn_id = @turnId and not exists (
    select 1 from message as other
    where other.room_id = @room and other.author_kind = 'persona' and other.state = 'done'
      and other.id > message.id and other.id <> @messageId)`;
const WITHOUT_WORDS = `
  update message set state = 'unsaid', text = '', words = null, attachments = null, reply_to = null, mentions = null
  where number_in(id, ?)`;
const ALL_VERSIONS = `
  select id from message where id = @messageId or saying is not null and saying = (
    select saying from message where id = @messageId)`;

/** False if it is refused. */
export function* takeBack(
  { room, messageId }: CommandEffect & { kind: 'unsay' },
  now: number,
): db.Verb<boolean> {
  const chat = yield* findChat(roomParts(room).chatId);
  if (!chat || !(yield* isUntouched(room, messageId))) return false;
  const { words, others } = yield* onScreen(room, messageId);
  const turnId = yield* db.value<string | null>('select turn_id from message where id = ?', messageId);
  const questions = turnId
    ? yield* db.column<number>(QUESTIONS, { room, batch: yield* batchOf(turnId), turnId, messageId })
    : [];
  for (const id of [messageId, ...questions]) yield* unsay(room, id);
  const versions = yield* db.column<number>(ALL_VERSIONS, { messageId });
  const gone = JSON.stringify([...versions, ...questions]);
  yield* forgetFiles(
    yield* db.column<string | null>('select attachments from message where number_in(id, ?)', gone),
  );
  yield* db.tell(WITHOUT_WORDS, gone);
  yield* endOffersOf(room, now);
  yield* db.tell('update room set anew = null where id = ?', room);
  yield* moveFence(room);
  yield* reviseRoom(room);
  const entries = [...words, ...others].map((part, n) => removalOf(`undo:${messageId}`, part, n));
  yield* putDeliveries(targetIn(room, chat, now), entries);
  return true;
}
