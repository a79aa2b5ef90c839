/** Rows of the tables as the words of the port, where the two differ. */
import { type SQL, type SQLWrapper, sql } from 'drizzle-orm';
import type { ChatRecord, Delivery } from '../../core/store.js';
import type { StoredMessage } from '../../core/transcript.js';
import { type chat, type message, type outbox, turn } from './schema.js';

const DAY_MS = 86_400_000;

export function toChat(row: typeof chat.$inferSelect): ChatRecord {
  const { id, channel, account, address, kind, title, activePersona, invited, away } = row;
  return {
    ...{ id, channel, account, address, kind, title, activePersona },
    ...(invited === null ? {} : { invited }),
    ...(away === null ? {} : { away }),
  };
}

type MessageRow = Omit<typeof message.$inferSelect, 'chatId' | 'account' | 'moves' | 'state' | 'twin'>;

export function toMessage(row: MessageRow): StoredMessage {
  const stored: StoredMessage = {
    id: row.id,
    room: row.roomId,
    author:
      row.authorKind === 'persona'
        ? { kind: 'persona', id: row.authorId }
        : { kind: 'person', id: row.authorId, name: row.authorName, administrator: row.administrator },
    text: row.text,
    sentAt: row.sentAt,
    receivedAt: row.receivedAt,
    platformMessageId: row.platformMessageId,
    mentionsBot: row.mentionsBot,
    replyTo: row.replyTo === null ? null : JSON.parse(row.replyTo),
    edited: row.edited,
    turnId: row.turnId,
  };
  if (row.attachments !== null) stored.attachments = JSON.parse(row.attachments);
  if (row.words !== null) stored.words = row.words;
  if (row.quiet) stored.quiet = true;
  if (row.addresses !== null) stored.addresses = row.addresses;
  if (row.bot && stored.author.kind === 'person') stored.author.bot = true;
  return stored;
}

export function toDelivery(row: typeof outbox.$inferSelect): Delivery {
  return {
    id: row.id,
    origin: row.origin,
    personaId: row.personaId === '' ? null : row.personaId,
    speaker: row.speaker,
    part: row.part,
    body: row.body,
    ...(row.face === null ? {} : { face: row.face }),
    replyTo: row.replyTo,
    chatId: row.chatId,
    channel: row.channel,
    address: row.address,
    threadId: row.threadId,
    kind: row.kind,
    createdAt: row.createdAt,
    attempts: row.attempts,
    uncertainCuts: row.uncertainCuts,
    uncertainCrashes: row.uncertainCrashes,
    notBefore: row.notBefore,
  };
}

/** The turn that said what came to be so: as its answer, or beside it through a tool (`tool:<turn>:<key>`). */
export function turnOf(origin: SQLWrapper): SQL {
  return sql`case
    when ${origin} like 'turn:%' then substr(${origin}, 6)
    when ${origin} like 'tool:%' then substr(${origin}, 6, instr(substr(${origin}, 6), ':') - 1)
    end`;
}

/** A turn that answers something up to there belongs, as a whole, to what a reset forgets. */
export function beganBefore(upTo: number | SQLWrapper): SQL {
  return sql`json_extract(${turn.batch}, '$[0]') <= ${upTo}`;
}

/** Usage is summed by day, UTC; a day is named by its first millisecond. */
export function startOfDay(time: number): number {
  return Math.floor(time / DAY_MS) * DAY_MS;
}
