/** Offers: options of which one may be chosen, once. To be called within a transaction, except what only reads. */
import type { Offer, OfferedOption } from '../../core/access.js';
import { type ChatId, type RoomId, roomParts } from '../../core/ids.js';
import type { NewCommand } from '../../core/receipt.js';
import { columns, insertInto, type Row } from './columns.js';
import type { Connection } from './connection.js';
import type { offer } from './schema-work.js';

export type Offers = ReturnType<typeof offersOf>;

/** Who chooses, where and what. */
interface Choosing {
  value: string;
  chatId: ChatId;
  senderId: ChatId;
  now: number;
}

/** The option that is chosen with a value, of an offer that is open to whoever chooses it. */
interface Chosen {
  key: string;
  room: RoomId;
  command: NewCommand | null;
}

const OFFER = 'key roomId senderId options until';
type OfferRow = Pick<Row<typeof offer>, 'key' | 'roomId' | 'senderId' | 'options' | 'until'>;

export function offersOf({ raw, memory }: Connection) {
  const open = (which: string) =>
    raw.prepare<[string], OfferRow>(`
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

    choose({ value, chatId, senderId, now }: Choosing): Chosen | 'over' | 'not yours' {
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

function asOffer({ key, roomId: room, senderId, options, until }: OfferRow): Offer {
  return { key, room, senderId: senderId === '' ? null : senderId, options: JSON.parse(options), until };
}
