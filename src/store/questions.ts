/**
 * Open questions to people, offers (buttons, one of which may be chosen, once), and tool calls that wait for a person.
 * All writes are to be called within a transaction.
 */

import {
  type AccessStore,
  type CallDecision,
  type NewQuestion,
  type Offer,
  offerKeyOf,
  type Question,
} from '../core/access.js';
import { type ChatId, type RoomId, roomParts } from '../core/ids.js';
import type { NewCommand } from '../core/receipt.js';
import type { CommandEffect } from '../core/store.js';
import * as db from './db.js';
import { putDelivery } from './outbox.js';
import type { offer } from './schema.js';
import { bound, columns, insertInto, type Row } from './sql.js';

const ADD_OFFER = `
  insert into offer (key, room_id, sender_id, options, until, n)
  values (@key, @room, @senderId, @options, @until, (select coalesce(max(n), 0) + 1 from offer))`;
type OfferRow = Omit<Row<typeof offer>, 'endedAt' | 'n'>;

const offersWhere = (which: string) => `
  select ${columns('key roomId senderId options until')} from offer where ${which} and ended_at is null and until > @now order by n desc`;
const WITH_KEY = offersWhere('key = @key');
const IN_ROOM = offersWhere(`room_id = @room and sender_id in ('', @senderId)`);
// The options are deleted too: they may hold text of the commands, which is kept only while one can be chosen.
const endOffers = (which: string) => `
  update offer set ended_at = @now, options = '[]' where ${which} and ended_at is null`;

/** The open ones of a room, to a person or to anybody, or the one with this key. */
export function* offers(which: Parameters<AccessStore['offers']>[0], now: number): db.Verb<Offer[]> {
  const rows = yield* db.all<OfferRow>('key' in which ? WITH_KEY : IN_ROOM, { ...which, now });
  return rows.map(({ key, roomId: room, senderId, options, until }) => {
    return { key, room, senderId: senderId === '' ? null : senderId, options: JSON.parse(options), until };
  });
}

export function* addOffer(added: Offer): db.Verb<void> {
  yield* db.tell(ADD_OFFER, bound({ ...added, senderId: added.senderId ?? '' }));
}

export function* endOffer(key: string, now: number): db.Verb<void> {
  yield* db.tell(endOffers('key = @key'), { key, now });
}

/** Ends the buttons below the newest answer. False if there are none. */
export function* endOffersOf(room: RoomId, now: number): db.Verb<boolean> {
  const where = `room_id = @room and sender_id = '' and options like '%{"name":"again"%'`;
  return (yield* db.run(endOffers(where), { room, now })) > 0;
}

/** Ends the offers to one person; the others are not part of the room's conversation. */
export function* endPersonalOffers(room: RoomId, now: number): db.Verb<void> {
  yield* db.tell(endOffers(`room_id = @room and sender_id <> ''`), { room, now });
}

/** The option chosen by `value`, if its offer is open to the person who chose it. */
export function* chosenOption(
  value: string,
  by: { chatId: ChatId; senderId: ChatId },
  now: number,
): db.Verb<{ key: string; room: RoomId; command: NewCommand | null } | 'over' | 'not yours'> {
  const [, key = '', number = ''] = /^(.+)\.(\d{1,3})$/.exec(value) ?? [];
  const [found] = yield* offers({ key }, now);
  if (found === undefined) return 'over';
  const { room, senderId, options } = found;
  const option = options[Number(number)];
  // A forged button value may name an offer of another chat.
  if (option === undefined || roomParts(room).chatId !== by.chatId) return 'over';
  if (senderId !== null && senderId !== by.senderId) return 'not yours';
  return { key, room, command: option.command };
}

const ASK = insertInto('question', 'roomId senderId askedBy name argument until offer');
const QUESTION = `
  select ${columns('id askedBy name argument')} from question
  where room_id = @room and sender_id = @senderId and until > @now`;

export function* findQuestion(ask: Parameters<AccessStore['question']>[0]): db.Verb<Question | null> {
  const found = yield* db.one<Omit<Question, 'ifYes'> & NewCommand>(QUESTION, ask);
  if (found === undefined) return null;
  const { id, askedBy, ...ifYes } = found;
  return { id, askedBy, ifYes };
}

/** Replaces the previous question. */
export function* askQuestion(asked: CommandEffect & { kind: 'ask' }): db.Verb<void> {
  const { room: roomId, senderId } = asked;
  yield* db.tell('delete from question where room_id = ? and sender_id = ?', roomId, senderId);
  yield* db.tell(ASK, bound({ offer: null, ...asked, ...asked.ifYes, roomId }));
}

/** The key of the offer with the same question, or null; undefined if the question had already ended. */
export function* endQuestion(id: number): db.Verb<string | null | undefined> {
  return yield* db.value<string | null>('delete from question where id = ? returning offer', id);
}

/** The offer with the same question was answered. */
export function* endOfferedQuestion(room: RoomId, key: string): db.Verb<void> {
  yield* db.tell('delete from question where room_id = @room and offer = @key', { room, key });
}

/** The columns of a waiting call; its arguments are kept only until it is decided. */
export const ASKED_CALL =
  'id waitsFor roomId chatId personaId turnId callId tool arguments why askedAt until';

const DECIDE = `
  update asked_call set decision = @decision, decided_by = @by, command_id = @commandId, decided_at = @now,
    arguments = '', why = ''
  where id = @id`;
const OPEN_CALLS =
  'select id from asked_call where chat_id = @chatId and turn_id = @turnId and decision is null';

/** The chats in which a question is put: their entries are delivered in the order of their ids. */
export function askedIn(question: NewQuestion | undefined): ChatId[] {
  return question?.posts.map(({ chatId }) => chatId) ?? [];
}

export function* askPeople({ call, posts, offers }: NewQuestion): db.Verb<void> {
  const { room: roomId, ...row } = call;
  yield* db.tell(insertInto('asked_call', ASKED_CALL), { ...row, roomId });
  for (const post of posts) yield* putDelivery(post, post.delivery);
  for (const offer of offers) yield* addOffer(offer);
}

/** Also ends the call's buttons, in every chat. */
export function* endCall(
  id: string,
  how: { decision: CallDecision; by?: ChatId | null; commandId?: number | null },
  now: number,
): db.Verb<void> {
  yield* db.tell(DECIDE, { by: null, commandId: null, ...how, id, now });
  const from = offerKeyOf(id);
  yield* db.tell(endOffers('key > @from and key < @upTo'), { from, upTo: `${from}~`, now });
}

/** The turn or task of these calls was ended. */
export function* endCallsOf(chatId: ChatId, turnId: string, now: number): db.Verb<void> {
  for (const id of yield* db.column<string>(OPEN_CALLS, { chatId, turnId })) {
    yield* endCall(id, { decision: 'ended' }, now);
  }
}
