/** Step 1 of the route: adds messages that wait to be answered. To be called within a transaction. */
import { type ChatId, type PersonaId, type RoomId, roomParts } from '../../core/ids.js';
import { DIGESTS } from '../../core/journal.js';
import type { Receipt } from '../../core/receipt.js';
import { TASK_COMPLETED } from '../../core/task.js';
import type { StoredReply } from '../../core/transcript.js';
import type { Chats } from './chats.js';
import { bound, insertIf, type Row } from './columns.js';
import type { Connection } from './connection.js';
import { type Happening, type Journal, sourceOf } from './journal.js';
import type { message } from './schema.js';
import { IS_MESSAGE, MESSAGE } from './transcript.js';

/** A message that waits, as far as it differs from what nobody typed. */
export interface NewMessage
  extends Pick<
    Row<typeof message>,
    'account' | 'moves' | 'authorKind' | 'authorId' | 'authorName' | 'text' | 'sentAt' | 'receivedAt'
  > {
  platformMessageId: string;
  replyTo?: StoredReply | null;
  [column: string]: unknown;
}

/** Of the event that a message becomes in the journal: as far as the message does not tell it. */
type SaidEvent = { agent: PersonaId } & Partial<Pick<Happening, 'type' | 'source' | 'content' | 'actionId'>>;

type Event = Extract<Receipt, { kind: 'event' }>;

/** What an event is in the journal, by its `about`; any other is an alarm clock. */
const KINDS: Record<string, Pick<Happening, 'type' | 'source'> | undefined> = {
  digest: { type: 'SocialDigest', source: DIGESTS },
  [TASK_COMPLETED]: { type: 'TaskCompleted', source: 'GUPPI' },
};

const NOBODY_TYPED = {
  administrator: false,
  mentionsBot: false,
  replyTo: null,
  edited: false,
  state: 'waiting',
  attachments: null,
  words: null,
  quiet: false,
  addresses: null,
  twin: null,
  bot: false,
  reaction: false,
  forwardedFrom: null,
  album: null,
  tainted: false,
};

/** Whether the other table has the same platform message: under its id, or as another copy of it. */
export const isIn = (table: 'message' | 'command', which: string) => `
  exists (select 1 from ${table} where ${IS_MESSAGE} ${which})
  or @twin is not null and exists (
    select 1 from ${table} where chat_id = @chatId and moves = @moves and twin = @twin and twin is not null ${which})`;

export type Waiting = ReturnType<typeof waitingOf>;

export function waitingOf({ raw }: Connection, chats: Chats, journal: Journal) {
  const addMessage = raw.prepare<[object]>(`
    ${insertIf('message', MESSAGE)} where not (${isIn('command', '')}) on conflict do nothing`);
  const addRoom = raw.prepare<[object]>(`
    insert into room (id, chat_id, newest_platform_id, newest_message)
    values (@room, @chatId, @platformMessageId, @id)
    on conflict do update set newest_message = max(newest_message, excluded.newest_message),
      newest_platform_id = coalesce(excluded.newest_platform_id, newest_platform_id)`);

  /** Its id, or undefined for a duplicate. `newest`: its platform id, if it is what a person wrote last in the room. */
  function say(
    room: RoomId,
    said: NewMessage,
    event: SaidEvent,
    newest: string | null = null,
  ): number | undefined {
    const { chatId } = roomParts(room);
    const row = bound({ ...NOBODY_TYPED, ...said, roomId: room, chatId });
    const { changes, lastInsertRowid } = addMessage.run(row);
    if (changes === 0) return undefined;
    const id = Number(lastInsertRowid);
    addRoom.run({ room, chatId, platformMessageId: newest, id });
    const { text, authorId, receivedAt } = said;
    const isPerson = said.authorKind === 'person';
    journal.happened({
      ...{ messageId: id, room, type: 'NewInboxMessage', at: receivedAt },
      source: isPerson ? sourceOf(chatId) : authorId,
      content: text,
      ...(isPerson && { from: authorId }),
      ...event,
    });
    return id;
  }

  return {
    say,

    /** The room was used, other than by a message. */
    use(room: RoomId, chatId: ChatId, platformMessageId: string): void {
      addRoom.run({ room, chatId, platformMessageId, id: 0 });
    },

    /** It becomes a message of the room, whichever persona it is for; undefined for a duplicate, and where the chat is unknown. */
    event({ room, about, personaId, text, at, id, content, actionId, tainted }: Event): number | undefined {
      const chat = chats.find(roomParts(room).chatId);
      if (chat === undefined) return undefined;
      const happening: SaidEvent = {
        agent: personaId ?? chat.activePersona,
        ...(KINDS[about] ?? { type: 'AlarmClock' }),
        ...(content && { content }),
        ...(actionId !== undefined && { actionId }),
      };
      const said: NewMessage = {
        // Not tied to account and moves, so the same event is recognised wherever the chat is now.
        account: '',
        moves: 0,
        authorKind: 'gateway',
        authorId: about,
        authorName: about,
        text,
        sentAt: at,
        receivedAt: at,
        platformMessageId: `event:${id}`,
        mentionsBot: true,
        addresses: personaId === null ? null : [personaId],
        tainted: tainted ?? false,
      };
      return say(room, said, happening);
    },
  };
}
