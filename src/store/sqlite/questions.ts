/**
 * Open questions to people, offers (buttons, one of which may be chosen, once), and tool calls that wait for a person.
 * All writes are to be called within a transaction.
 */
import { type NewQuestion, type Offer, type OfferedOption, offerKeyOf } from '../../core/access.js';
import { type ChatId, type RoomId, roomParts } from '../../core/ids.js';
import type { NewCommand } from '../../core/receipt.js';
import type { CommandEffect } from '../../core/store.js';
import type { Database, Statements } from './connection.js';
import { putDelivery } from './outbox.js';
import type { offer, question } from './schema.js';
import { columns, insertInto, type Row } from './sql.js';

const OFFER = 'key roomId senderId options until';
type OfferRow = Omit<Row<typeof offer>, 'endedAt'>;

const offersWhere = (which: string) => `
  select ${columns(OFFER)} from offer where ${which} and ended_at is null order by rowid desc`;
// The options are deleted too: they may hold text of the commands, which is kept only while one can be chosen.
const endOffers = (which: string) => `
  update offer set ended_at = @now, options = '[]' where ${which} and ended_at is null`;

export function findOffer(db: Statements, key: string): Offer | undefined {
  const row = db.get<OfferRow>(offersWhere('key = ?'), key);
  return row && toOffer(row);
}

/** The open offers of a room, newest first. */
export function offersIn(db: Statements, room: RoomId): Offer[] {
  return db.all<OfferRow>(offersWhere('room_id = ?'), room).map(toOffer);
}

function toOffer({ key, roomId: room, senderId, options, until }: OfferRow): Offer {
  return { key, room, senderId: senderId === '' ? null : senderId, options: JSON.parse(options), until };
}

export function addOffer(db: Statements, { key, room, senderId, options, until }: Offer): void {
  const row = { key, roomId: room, senderId: senderId ?? '', options: JSON.stringify(options), until };
  db.run(insertInto('offer', OFFER), row);
}

export function endOffer(db: Statements, key: string, now: number): void {
  db.run(endOffers('key = @key'), { key, now });
}

/** Ends the offers to one person; the others are not part of the room's conversation. */
export function endPersonalOffers(db: Statements, room: RoomId, now: number): void {
  db.run(endOffers(`room_id = @room and sender_id <> ''`), { room, now });
}

/** The option chosen by `value`, if its offer is open to the person who chose it. */
export function chosenOption(
  db: Statements,
  { value, chatId, senderId, now }: { value: string; chatId: ChatId; senderId: ChatId; now: number },
): { key: string; room: RoomId; command: NewCommand | null } | 'over' | 'not yours' {
  const [, key = '', number = ''] = /^(.+)\.(\d{1,3})$/.exec(value) ?? [];
  const found = findOffer(db, key);
  if (found === undefined || found.until <= now) return 'over';
  const { room, options } = found;
  const option: OfferedOption | undefined = options[Number(number)];
  // A forged button value may name an offer of another chat.
  if (option === undefined || roomParts(room).chatId !== chatId) return 'over';
  if (found.senderId !== null && found.senderId !== senderId) return 'not yours';
  return { key, room, command: option.command };
}

type QuestionRow = Row<typeof question>;

export function findQuestion(db: Statements, room: RoomId, senderId: ChatId) {
  return db.get<QuestionRow>(
    `select ${columns('id askedBy name argument until')} from question where room_id = ? and sender_id = ?`,
    room,
    senderId,
  );
}

/** Replaces the previous question. */
export function askQuestion(db: Statements, effect: CommandEffect & { kind: 'ask' }): void {
  const { room, senderId, askedBy, ifYes, until, offer: key = null } = effect;
  const sql = `
    insert or replace into question (room_id, sender_id, asked_by, name, argument, until, offer)
    values (@room, @senderId, @askedBy, @name, @argument, @until, @key)`;
  db.run(sql, { room, senderId, askedBy, ...ifYes, until, key });
}

/** The key of the offer with the same question, or null; undefined if the question had already ended. */
export function endQuestion(db: Statements, id: number): string | null | undefined {
  return db.value<string | null>('delete from question where id = ? returning offer', id);
}

/** The offer with the same question was answered. */
export function endOfferedQuestion(db: Statements, room: RoomId, key: string): void {
  db.run('delete from question where room_id = @room and offer = @key', { room, key });
}

/** The columns of a waiting call; its arguments are kept only until it is decided. */
export const ASKED_CALL =
  'id waitsFor roomId chatId personaId turnId callId tool arguments why askedAt until';

const DECIDE = `
  update asked_call set decision = @decision, decided_by = @by, command_id = @commandId, decided_at = @now,
    arguments = '', why = ''
  where id = @id`;
const OFFERED = 'select key from offer where key > @from and key < @upTo and ended_at is null';
const OPEN_CALLS =
  'select id from asked_call where chat_id = @chatId and turn_id = @turnId and decision is null';

export function askPeople(db: Database, { call, posts, offers }: NewQuestion): void {
  const { room: roomId, ...row } = call;
  db.run(insertInto('asked_call', ASKED_CALL), { ...row, roomId });
  for (const post of posts) putDelivery(db, post, post.delivery);
  for (const offer of offers) addOffer(db, offer);
}

/** Also ends the call's buttons, in every chat. */
export function endCall(
  db: Statements,
  id: string,
  how: { decision: 'approved' | 'denied' | 'expired' | 'ended'; by?: ChatId; commandId?: number },
  now: number,
): void {
  db.run(DECIDE, { by: null, commandId: null, ...how, id, now });
  const from = offerKeyOf(id);
  for (const key of db.column<string>(OFFERED, { from, upTo: `${from}~` })) endOffer(db, key, now);
}

/** The turn or task of these calls was ended. */
export function endCallsOf(db: Statements, chatId: ChatId, turnId: string, now: number): void {
  for (const id of db.column<string>(OPEN_CALLS, { chatId, turnId })) {
    endCall(db, id, { decision: 'ended' }, now);
  }
}
