/**
 * Step 1 of the route: commands, and choices that become one. They are stored beside the messages, and are known when they
 * come again. To be called within a transaction.
 */
import type { ChoiceOutcome } from '../../core/channel.js';
import { type RoomId, roomParts } from '../../core/ids.js';
import type { NewCommand, PendingCommand, ReceiptOf } from '../../core/receipt.js';
import type { Chats } from './chats.js';
import { bound, insertIf } from './columns.js';
import type { Connection } from './connection.js';
import type { Questions } from './door.js';
import type { Offers } from './offers.js';
import { IS_MESSAGE, isIn } from './transcript.js';

type When = { account: string; now: number };

/** What became of a choice; the room in which it was made, and the command to run, if there is one. */
interface Chosen {
  became: ChoiceOutcome;
  used?: RoomId;
  command?: PendingCommand;
}

const COMMAND = `roomId chatId account moves platformMessageId senderId senderName administrator name argument
  afterMessage receivedAt state twin persona finishedAt`;

export function receivedCommandsOf({ raw }: Connection, chats: Chats, questions: Questions, offers: Offers) {
  const add = raw.prepare<[object]>(`
    ${insertIf('command', COMMAND)} where not (${isIn('message', 'and edited = 0')}) on conflict do nothing`);
  const isKnown = raw.prepare<[object]>(`select 1 from command where ${IS_MESSAGE}`);
  const newestMessage = raw.prepare<[RoomId], number>('select newest_message from room where id = ?').pluck();

  /** Its id; undefined for a duplicate. Without a command there is nothing to run, but it is known when it comes again. */
  function addTo(
    room: RoomId,
    said: ReceiptOf<'command'> | ReceiptOf<'choice'>,
    command: NewCommand | null,
    { account, now }: When,
  ): number | undefined {
    const { chat, sender, platformMessageId, twin } = said;
    const row = {
      roomId: room,
      chatId: roomParts(room).chatId,
      account,
      moves: chats.movesAt(chats.find(chat.id), chat.address),
      platformMessageId,
      senderId: sender.id,
      senderName: sender.name,
      administrator: sender.administrator,
      ...(command ?? { name: 'choice', argument: '' }),
      afterMessage: newestMessage.get(room) ?? 0,
      receivedAt: now,
      state: command === null ? 'done' : 'waiting',
      finishedAt: command === null ? now : null,
      twin,
      persona: said.kind === 'command' ? said.persona : undefined,
    };
    const { changes, lastInsertRowid } = add.run(bound(row));
    return changes === 0 ? undefined : Number(lastInsertRowid);
  }

  return {
    /** Its id; undefined for a duplicate, and for a yes to a question that is over. */
    add(said: ReceiptOf<'command'>, room: RoomId, when: When): number | undefined {
      const { command, answers } = said;
      if (answers !== undefined) {
        const offered = questions.end(answers);
        // Another process may have ended the question meanwhile.
        if (offered === undefined) return undefined;
        if (offered !== null) offers.end(offered, when.now);
      }
      return addTo(room, said, command, when);
    },

    choose(said: ReceiptOf<'choice'>, when: When): Chosen {
      const { chat, sender, platformMessageId, value } = said;
      const { account, now } = when;
      const moves = chats.movesAt(chats.find(chat.id), chat.address);
      if (isKnown.get({ chatId: chat.id, account, moves, platformMessageId })) return { became: 'taken' };
      const chosen = offers.choose({ value, chatId: chat.id, senderId: sender.id, now });
      if (typeof chosen === 'string') return { became: chosen };
      const { key, room, command } = chosen;
      const id = addTo(room, said, command, when);
      if (id === undefined) return { became: 'over' };
      offers.end(key, now);
      questions.endOffered(room, key);
      if (said.endsQuestion !== undefined) questions.end(said.endsQuestion);
      return { became: 'taken', used: room, ...(command === null ? {} : { command: { id, room } }) };
    },
  };
}
