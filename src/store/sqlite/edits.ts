/** Step 1 of the route: what becomes of a message that its author changes or deletes. */
import { DEFAULT_PERSONA, type RoomId } from '../../core/ids.js';
import type { ReceiptOf } from '../../core/receipt.js';
import type { Chats } from './chats.js';
import { assigned, bound, columns, insertInto, type Row } from './columns.js';
import type { Connection } from './connection.js';
import { type Journal, sourceOf } from './journal.js';
import type { message } from './schema.js';
import { IS_MESSAGE, MESSAGE, REVISE_ROOM } from './transcript.js';

interface Found extends Omit<Row<typeof message>, 'turnId'> {
  /** Whether a running turn is answering it. */
  isTaken: number;
}

/** To be called within a transaction. */
export function editsOf({ raw }: Connection, chats: Chats, journal: Journal) {
  const find = (edited: 0 | 1) =>
    raw.prepare<[object], Found>(`
      select id, ${columns(MESSAGE)}, state = 'done' and exists (
          select 1 from turn where turn.id = message.turn_id and turn.state = 'running') as isTaken
      from message where ${IS_MESSAGE} and edited = ${edited} and platform_message_id is not null
      order by id desc limit 1`);
  const findEdited = find(1);
  const findFirst = find(0);
  const copy = raw.prepare<[object]>(insertInto('message', MESSAGE));
  const noteNewest = raw.prepare<[object]>('update room set newest_message = @id where id = @room');
  const setText = raw.prepare<[object]>(
    `update message set ${assigned('text attachments words mentions mentionsBot')} where id = @id`,
  );
  const withdraw = raw
    .prepare<[object], RoomId>(`
      update message set state = 'done'
      where chat_id = @chatId and account = @account and moves = @moves
        and platform_message_id in (select value from json_each(@ids)) and edited in (0, 1)
        and state = 'waiting' and coalesce(@senderId, author_id) = author_id
      returning room_id`)
    .pluck();
  const revise = raw.prepare<[RoomId]>(REVISE_ROOM);
  /** The waiting messages have changed since a run may have looked at the room. */
  const moveFenceOn = raw.prepare<[RoomId]>(`
    update room set fence = fence + 1, lease_owner = null
    where id = ? and not exists (select 1 from turn where room_id = room.id and state = 'running')`);

  const movesOf = (chatId: string) => chats.find(chatId)?.moves ?? 0;

  return {
    /** Returns the room in which there is now something else to answer, if any. */
    change(edit: ReceiptOf<'edit'>, { account, now }: { account: string; now: number }): RoomId | null {
      const { chatId, senderId, platformMessageId, editedAt, mentionsBot } = edit;
      const key = { chatId, account, moves: movesOf(chatId), platformMessageId };
      const found = findEdited.get(key) ?? findFirst.get(key);
      if (!found || found.authorId !== senderId) return null;
      const { text, attachments, words, mentions } = edit;
      // Platforms report edits for other changes, too (a link preview): the same text needs no new answer.
      if ((found.words ?? found.text) === (words ?? text)) return null;
      const { id, roomId: room } = found;
      const edited = { text, attachments, words, mentions };
      if (found.isTaken) {
        const waits = { edited: true, state: 'waiting', sentAt: editedAt, receivedAt: now };
        const added = copy.run(bound({ ...found, ...edited, ...waits, mentionsBot }));
        noteNewest.run({ room, id: added.lastInsertRowid });
        journal.happened({
          ...{ messageId: Number(added.lastInsertRowid), room, type: 'NewInboxMessage', at: now },
          agent: chats.find(chatId)?.activePersona ?? DEFAULT_PERSONA,
          ...{ source: sourceOf(chatId), content: text, from: senderId },
        });
        return room;
      }
      setText.run(bound({ id, ...edited, mentionsBot: found.mentionsBot === 1 || mentionsBot }));
      const isWaiting = found.state === 'waiting';
      (isWaiting ? moveFenceOn : revise).run(room);
      return isWaiting ? room : null;
    },

    withdraw(deleted: ReceiptOf<'deleted'>, { account }: { account: string }): void {
      const { chatId, platformMessageIds, senderId = null } = deleted;
      const ids = JSON.stringify(platformMessageIds);
      const rooms = withdraw.all({ chatId, account, moves: movesOf(chatId), senderId, ids });
      for (const room of new Set(rooms)) moveFenceOn.run(room);
    },
  };
}
