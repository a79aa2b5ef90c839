/** Offers: options of which one may be chosen, once. To be called within a transaction, except what only reads. */
import {
  type NewQuestion,
  type Offer,
  type OfferedOption,
  offerKeyOf,
  type Question,
} from '../../core/access.js';
import { type ChatId, type RoomId, roomParts } from '../../core/ids.js';
import type { NewCommand } from '../../core/receipt.js';
import type { CommandEffect } from '../../core/route-store.js';
import type { Connection } from './connection.js';
import type { Deliver } from './outbox.js';
import type { offer, question } from './schema.js';
import type { askedCall } from './schema-work.js';
import { columns, insertInto, type Row } from './sql.js';

export type Offers = ReturnType<typeof offersOf>;

/** Who chooses, where and what. */
interface OfferChoice {
  value: string;
  chatId: ChatId;
  senderId: ChatId;
  now: number;
}

/** The option that is chosen with a value, of an offer that is open to whoever chooses it. */
interface ChosenOption {
  key: string;
  room: RoomId;
  command: NewCommand | null;
}

const OFFER = 'key roomId senderId options until';
type OpenOfferRow = Pick<Row<typeof offer>, 'key' | 'roomId' | 'senderId' | 'options' | 'until'>;

export function offersOf({ raw, memory }: Connection) {
  const open = (which: string) =>
    raw.prepare<[string], OpenOfferRow>(`
      select ${columns(OFFER)} from offer where ${which} and ended_at is null order by rowid desc`);
  const openWith = open('key = ?');
  const openIn = open('room_id = ?');
  const add = raw.prepare<[object]>(insertInto('offer', OFFER));
  // What a command was to be told is not kept for longer than it can be chosen.
  const end = (which: string) =>
    raw.prepare<[object], { room: RoomId }>(`
      update offer set ended_at = @now, options = '[]' where ${which} and ended_at is null
      returning room_id as room`);
  const endWith = end('key = @key');
  const endPersonal = end(`room_id = @room and sender_id <> ''`);
  const nameOf = (room: RoomId) => `offers ${room}`;

  function find(key: string): Offer | undefined {
    const row = openWith.get(key);
    return row && asOffer(row);
  }

  function touch(ended: { room: RoomId }[]): void {
    for (const { room } of ended) memory.touch(nameOf(room));
  }

  return {
    /** The open ones of a room, newest first. */
    in: (room: RoomId): Offer[] => memory.get(nameOf(room), () => openIn.all(room).map(asOffer)),
    find,
    add({ key, room, senderId, options, until }: Offer): void {
      add.run({ key, roomId: room, senderId: senderId ?? '', options: JSON.stringify(options), until });
      memory.touch(nameOf(room));
    },
    end: (key: string, now: number) => touch(endWith.all({ key, now })),
    /** Those to somebody; the others are not part of the room's conversation. */
    endPersonal: (room: RoomId, now: number) => touch(endPersonal.all({ room, now })),

    choose({ value, chatId, senderId, now }: OfferChoice): ChosenOption | 'over' | 'not yours' {
      const [, key = '', number = ''] = /^(.+)\.(\d{1,3})$/.exec(value) ?? [];
      const found = find(key);
      if (found === undefined || found.until <= now) return 'over';
      const { room, options } = found;
      const option: OfferedOption | undefined = options[Number(number)];
      // Who alters what a button sends may name an offer of another chat.
      if (option === undefined || roomParts(room).chatId !== chatId) return 'over';
      if (found.senderId !== null && found.senderId !== senderId) return 'not yours';
      return { key, room, command: option.command };
    },
  };
}

function asOffer({ key, roomId: room, senderId, options, until }: OpenOfferRow): Offer {
  return { key, room, senderId: senderId === '' ? null : senderId, options: JSON.parse(options), until };
}

export type AskEffect = Extract<CommandEffect, { kind: 'ask' }>;

export type Questions = ReturnType<typeof questionsOf>;

/** Questions that people have not answered yet. To be called within a transaction, except `find`. */
export function questionsOf({ raw, memory }: Connection) {
  const find = raw.prepare<[RoomId, ChatId], Omit<Row<typeof question>, 'roomId' | 'senderId' | 'offer'>>(`
    select ${columns('id askedBy name argument until')} from question where room_id = ? and sender_id = ?`);
  const ask = raw.prepare<[object]>(`
    insert or replace into question (room_id, sender_id, asked_by, name, argument, until, offer)
    values (@room, @senderId, @askedBy, @name, @argument, @until, @offer)`);
  const end = (which: string) =>
    raw.prepare<[object], { room: RoomId; senderId: ChatId; offer: string | null }>(
      `delete from question where ${which} returning room_id as room, sender_id as senderId, offer`,
    );
  const endOne = end('id = @id');
  const endOffered = end('room_id = @room and offer = @key');
  const nameOf = (room: RoomId, senderId: ChatId) => `question ${room} ${senderId}`;

  return {
    find: (room: RoomId, senderId: ChatId): (Question & { until: number }) | undefined =>
      memory.get(nameOf(room, senderId), () => {
        const row = find.get(room, senderId);
        if (!row) return undefined;
        const { id, askedBy, name, argument, until } = row;
        return { id, askedBy, ifYes: { name, argument }, until };
      }),
    /** Replaces the previous question. */
    ask({ room, senderId, askedBy, ifYes, until, offer }: AskEffect): void {
      ask.run({ room, senderId, askedBy, ...ifYes, until, offer: offer ?? null });
      memory.touch(nameOf(room, senderId));
    },
    /** The key of the offer that asks the same, or null; undefined if the question had ended already. */
    end(id: number): string | null | undefined {
      const ended = endOne.get({ id });
      if (ended) memory.touch(nameOf(ended.room, ended.senderId));
      return ended?.offer;
    },
    /** The offer that asks the same was answered. */
    endOffered(room: RoomId, key: string): void {
      for (const { senderId } of endOffered.all({ room, key })) memory.touch(nameOf(room, senderId));
    },
  };
}

// Tool calls that wait for a person: asked within the transaction that suspends their turn, and decided within the one
// that makes it ready. What was asked is kept only as long as it can be decided.

export const ASKED_CALL =
  'id waitsFor roomId chatId personaId turnId callId tool arguments why askedAt until';
export type CallRow = Pick<
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

export type AskedCalls = ReturnType<typeof askedCallsOf>;

/** To be called within a transaction. */
export function askedCallsOf({ raw }: Pick<Connection, 'raw'>, deliver: Deliver, offers: Offers) {
  const add = raw.prepare<[object]>(insertInto('asked_call', ASKED_CALL));
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
