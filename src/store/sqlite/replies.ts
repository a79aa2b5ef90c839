/** Step 1 of the route: what becomes of a message that its author changes or deletes. */

import type { Appearance, Part } from '../../core/channel.js';
import { type ChatId, DEFAULT_PERSONA, type PersonaId, type RoomId, roomId } from '../../core/ids.js';
import type { StoredAttachment } from '../../core/media.js';
import type { Attachment } from '../../core/message.js';
import type { ReceiptOf } from '../../core/receipt.js';
import { reactionText, type StoredReply, whoseWords } from '../../core/transcript.js';
import type { Chats } from './chats.js';
import type { Connection } from './connection.js';
import { type Journal, sourceOf, turnOf } from './journal.js';
import type { message } from './schema.js';
import type { outbox } from './schema-work.js';
import { assigned, bound, columns, insertInto, type Row } from './sql.js';
import { IS_MESSAGE, MESSAGE, type NewMessage, REVISE_ROOM } from './transcript.js';
import { beganBefore } from './views.js';

interface EditedRow extends Omit<Row<typeof message>, 'turnId'> {
  /** Whether a running turn is answering it. */
  isTaken: number;
}

/** To be called within a transaction. */
export function editsOf({ raw }: Connection, chats: Chats, journal: Journal) {
  const find = (edited: 0 | 1) =>
    raw.prepare<[object], EditedRow>(`
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

// Step 1 of the route: what a message replies or reacts to: one of our own, or what somebody said, as it was said. To be
// called within a transaction.

/** Within it, an id of the platform names one message. */
interface Place {
  chatId: ChatId;
  account: string;
  moves: number;
}

/** What a message replies to; whether that is words from outside is not known of what nobody has heard. */
interface Quoted {
  reply: StoredReply;
  isTainted: boolean | undefined;
}

interface Reaction {
  room: RoomId;
  personaId: PersonaId;
  said: NewMessage;
}

type RepliedRow = Pick<Row<typeof message>, 'authorName' | 'text' | 'forwardedFrom' | 'tainted'>;
type SentRow = Pick<Row<typeof outbox>, 'personaId' | 'face' | 'origin' | 'speaker' | 'threadId' | 'body'>;

export function repliesOf({ raw }: Connection) {
  /** Finds one of our own messages by its platform id. */
  const findSent = raw.prepare<[ChatId, string], SentRow>(`
    select ${columns('personaId face origin speaker threadId body')}
    from outbox where chat_id = ? and platform_message_id = ? order by id desc limit 1`);
  /** What somebody else said; `edited`: the edit of it that became a message of its own. */
  const findHeard = (edited: 0 | 1) =>
    raw.prepare<[object], RepliedRow>(`
      select ${columns('authorName text forwardedFrom tainted')} from message
      where ${IS_MESSAGE} and edited = ${edited} and platform_message_id is not null order by id desc limit 1`);
  const findEdited = findHeard(1);
  const findFirst = findHeard(0);
  /** The turn that said it, if a reset has forgotten what it answered. */
  const findForgotten = raw.prepare<[object]>(`
    select 1 from turn join view on view.room_id = turn.room_id and view.persona_id = turn.persona_id
    where turn.id = ${turnOf('@origin')} and ${beganBefore('view.reset_at')}`);
  const turnIdIn = raw.prepare<[object], string | null>(`select ${turnOf('@origin')}`).pluck();
  /** What the turn said at its end, by what its persona heard: newest first, for people mostly reply to that. */
  const findReply = raw.prepare<[object], Pick<RepliedRow, 'tainted'>>(`
    select message.tainted from turn
      cross join heard on heard.room_id = turn.room_id and heard.persona_id = turn.persona_id and heard.addressed = 1
      cross join message on message.id = heard.message_id
    where turn.id = @turnId and message.turn_id = @turnId and message.author_kind = 'persona'
    order by heard.heard_after desc, heard.message_id desc limit 1`);
  const findFiles = raw
    .prepare<[object], string | null>(`
      select attachments from message
      where ${IS_MESSAGE} and edited = 0 and platform_message_id is not null
        -- The files of what a reset has forgotten go by night.
        and id > coalesce((select max(reset_at) from view where view.room_id = message.room_id), 0)`)
    .pluck();

  /** The platform only said which message is answered. */
  function replyTold(platformMessageId: string, there: Place): Quoted {
    const sent = findSent.get(there.chatId, platformMessageId);
    if (sent !== undefined) {
      const isForgotten = findForgotten.get({ origin: sent.origin }) !== undefined;
      const text = isForgotten ? '' : asSaid(JSON.parse(sent.body).text, sent);
      const reply = { senderName: sent.speaker, text, ours: true, personaId: sent.personaId || null };
      return { reply, isTainted: !isForgotten && isFromOutside(sent.origin) };
    }
    const found = heard(platformMessageId, there);
    const senderName = found === undefined ? '' : whoseWords(found.authorName, found.forwardedFrom);
    const reply = { senderName, text: found?.text ?? '', ours: false, personaId: null };
    return { reply, isTainted: taintOf(found, reply.text) };
  }

  /** Whether a turn that had read words from outside said it, or one of which nothing is kept; what the gateway says did not. */
  function isFromOutside(origin: string): boolean {
    const turnId = turnIdIn.get({ origin }) ?? null;
    if (turnId === null) return false;
    return findReply.get({ turnId })?.tainted !== 0;
  }

  function isKnown(platformMessageId: string, there: Place): boolean {
    return (
      findSent.get(there.chatId, platformMessageId) !== undefined ||
      heard(platformMessageId, there) !== undefined
    );
  }

  function heard(platformMessageId: string, there: Place): RepliedRow | undefined {
    const which = { ...there, platformMessageId };
    return findEdited.get(which) ?? findFirst.get(which);
  }

  return {
    /** What a message replies to, as it is told with that and as it is known here. */
    quoted(
      { platformMessageId, senderName, text, ours, ...replyTo }: NonNullable<ReceiptOf<'message'>['replyTo']>,
      there: Place,
    ): Quoted {
      const isSilent = !ours && senderName === '' && text === '';
      if (isSilent || (replyTo.told && isKnown(platformMessageId, there))) {
        return replyTold(platformMessageId, there);
      }
      const personaOf = replyTo.personaId ?? null;
      if (replyTo.told || replyTo.elsewhere) {
        const told = replyTo.told && { told: true as const };
        const reply = {
          senderName: whoseWords(senderName, replyTo.forwardedFrom),
          text,
          ours,
          personaId: personaOf,
        };
        return { reply: { ...reply, ...told }, isTainted: text !== '' };
      }
      if (!ours) {
        const found = heard(platformMessageId, there);
        const from = replyTo.forwardedFrom ?? found?.forwardedFrom;
        const personaId = personaOf;
        const isTainted = from !== undefined && from !== null ? true : taintOf(found, text);
        return { reply: { senderName: whoseWords(senderName, from), text, ours, personaId }, isTainted };
      }
      const sent = findSent.get(there.chatId, platformMessageId);
      const personaId = sent?.personaId || replyTo.personaId || null;
      const reply = { senderName, text: sent ? asSaid(text, sent) : text, ours, personaId };
      // Of what is not kept any more nobody knows what led to it.
      return { reply, isTainted: text !== '' && (sent === undefined || isFromOutside(sent.origin)) };
    },

    /**
     * The files that a message came with. Those of the message that it replies to may be known with that: then they are proved,
     * and if they have been fetched already, what came of them comes along.
     */
    filesWith(attachments: Attachment[], message: Place & { platformMessageId: string }): StoredAttachment[] {
      if (!attachments.some(({ ofReply }) => ofReply)) return attachments;
      const known: StoredAttachment[] = JSON.parse(findFiles.get(message) ?? '[]');
      return attachments.map((each) => {
        const same = each.ofReply && known.find(({ source }) => source === each.source);
        if (!same) return each;
        const { told: _proved, ...file } = each;
        return same.outcome?.kind === 'kept' ? { ...file, outcome: same.outcome } : file;
      });
    },

    /** The quiet message that a reaction to a persona's message becomes; undefined where there is no such message. */
    reaction(
      { chatId, sender, sign, sentAt, platformMessageIds, tainted }: ReceiptOf<'reaction'>,
      chat: { title: string; moves: number },
      { account, now }: { account: string; now: number },
    ): Reaction | undefined {
      for (const platformMessageId of platformMessageIds) {
        const sent = findSent.get(chatId, platformMessageId);
        if (!sent?.personaId || findForgotten.get({ origin: sent.origin })) continue;
        const { speaker: senderName, personaId } = sent;
        const text = asSaid(JSON.parse(sent.body).text, sent);
        const said: NewMessage = {
          account,
          moves: chat.moves,
          authorKind: 'person',
          authorId: sender.id,
          authorName: sender.name ?? chat.title,
          text: reactionText(sign),
          sentAt,
          receivedAt: now,
          platformMessageId: `reaction:${platformMessageId}:${sender.id}:${sign}`,
          replyTo: JSON.stringify({ senderName, text, ours: true, personaId }),
          quiet: 1,
          reaction: 1,
          tainted: Number(tainted === true || isFromOutside(sent.origin)),
        };
        return { room: roomId(chatId, sent.threadId), personaId, said };
      }
      return undefined;
    },
  };
}

function taintOf(found: RepliedRow | undefined, text: string): boolean | undefined {
  if (text === '') return false;
  return found && found.tainted === 1;
}

/**
 * What the persona said, of what a platform shows of it: without its name before it and the gateway's note below it,
 * which are not part of the text.
 */
function asSaid(shown: string, { body, face }: Pick<SentRow, 'body' | 'face'>): string {
  const appearance: Appearance | null = face === null ? null : JSON.parse(face);
  const isNamed = appearance !== null && !appearance.alone && shown.startsWith(`${appearance.name}\n`);
  const text = isNamed ? shown.slice(appearance.name.length + 1) : shown;
  const part: Part = JSON.parse(body);
  if (part.note === undefined) return text;
  const said = part.text.slice(0, part.note).trimEnd();
  // Somebody may have quoted a part of it only.
  return text.length > said.length ? said : text;
}
