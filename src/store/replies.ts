/**
 * Step 1 of the route: the message that is replied or reacted to (ours or somebody else's, as it was said), and edits
 * and deletions. To be called within a transaction.
 */

import type { Appearance, Part } from '../core/channel.js';
import { type ChatId, DEFAULT_PERSONA, type PersonaId, type RoomId, roomId } from '../core/ids.js';
import type { StoredAttachment } from '../core/media.js';
import type { Attachment } from '../core/message.js';
import { BY_REACTION, type ReceiptOf } from '../core/receipt.js';
import { reactionText, type StoredReply, whoseWords } from '../core/transcript.js';
import { findChat } from './chats.js';
import * as db from './db.js';
import type { message, outbox } from './schema.js';
import { assigned, bound, columns, type Row, type Some } from './sql.js';
import { type Arriving, IS_MESSAGE, MESSAGE, moveFence, type NewMessage, reviseRoom } from './transcript.js';
import { beganBefore } from './views.js';

/** The scope within which a platform id is unique. */
interface MessagePlace {
  chatId: ChatId;
  account: string;
  moves: number;
}

/** The quoted message; `isTainted` is undefined if nobody here has heard it. */
interface Quoted {
  reply: StoredReply;
  isTainted: boolean | undefined;
}

/** One of our own messages, by its platform id. */
const SENT_COLUMNS = 'personaId face turnId speaker threadId body';
const SENT = `
  select ${columns(SENT_COLUMNS)}
  from outbox where chat_id = ? and platform_message_id = ? order by id desc limit 1`;
type SentRow = Some<typeof outbox, typeof SENT_COLUMNS>;
const newest = (edited: 0 | 1) => `(
  select max(id) from message
  where ${IS_MESSAGE} and edited = ${edited} and platform_message_id is not null)`;
/** A person's message, by its platform id: the row that the last edit of it became, or else its first one. */
const IS_CALLED = `id = coalesce(${newest(1)}, ${newest(0)})`;
const HEARD_COLUMNS = 'authorName text forwardedFrom tainted';
const HEARD = `select ${columns(HEARD_COLUMNS)} from message where ${IS_CALLED}`;
type RepliedRow = Some<typeof message, typeof HEARD_COLUMNS>;
/** The turn that said it, if a reset has forgotten the messages it answered. */
const FORGOTTEN = `
  select 1 from turn join view on view.room_id = turn.room_id and view.persona_id = turn.persona_id
  where turn.id = @turnId and ${beganBefore('view.reset_at')}`;
/** The turn's reply, found through its persona's hearings; newest first, as people mostly reply to recent ones. */
const REPLY_OF_TURN = `
  select message.tainted from turn
    join heard on heard.room_id = turn.room_id and heard.persona_id = turn.persona_id and heard.addressed = 1
    join message on message.id = heard.message_id
  where turn.id = @turnId and message.turn_id = @turnId and message.author_kind = 'persona'
  order by heard.heard_after desc, heard.message_id desc limit 1`;
const FILES = `
  select attachments from message
  where ${IS_MESSAGE} and edited = 0 and platform_message_id is not null
    -- The files of what a reset has forgotten go by night.
    and id > coalesce((select max(reset_at) from view where view.room_id = message.room_id), 0)`;

function* sentWith(chatId: ChatId, platformMessageId: string): db.Verb<SentRow | undefined> {
  return yield* db.one<SentRow>(SENT, chatId, platformMessageId);
}

function* isForgotten({ turnId }: SentRow): db.Verb<boolean> {
  return (yield* db.one(FORGOTTEN, { turnId })) !== undefined;
}

/** Whether its turn had read untrusted text or is no longer stored; false for the gateway's messages. */
function* isFromOutside({ turnId }: SentRow): db.Verb<boolean> {
  if (turnId === null) return false;
  return (yield* db.value<number>(REPLY_OF_TURN, { turnId })) !== 0;
}

/** The platform gave only the id of the message replied to. */
function* replyTold(sent: SentRow | undefined, found: RepliedRow | undefined): db.Verb<Quoted> {
  if (sent !== undefined) {
    const isGone = yield* isForgotten(sent);
    const text = isGone ? '' : asSaid(JSON.parse(sent.body).text, sent);
    const reply = { senderName: sent.speaker, text, ours: true, personaId: sent.personaId || null };
    return { reply, isTainted: !isGone && (yield* isFromOutside(sent)) };
  }
  const senderName = found === undefined ? '' : whoseWords(found.authorName, found.forwardedFrom);
  const reply = { senderName, text: found?.text ?? '', ours: false, personaId: null };
  return { reply, isTainted: taintOf(found, reply.text) };
}

/** The message replied to, as the platform quoted it, completed with what is stored. */
export function* quoted(
  replyTo: NonNullable<ReceiptOf<'message'>['replyTo']>,
  there: MessagePlace,
): db.Verb<Quoted> {
  const { platformMessageId, senderName, text, ours, told, elsewhere, forwardedFrom } = replyTo;
  const sent = yield* sentWith(there.chatId, platformMessageId);
  const found = yield* db.one<RepliedRow>(HEARD, { ...there, platformMessageId });
  const isSilent = !ours && senderName === '' && text === '';
  if (isSilent || (told && (sent ?? found))) return yield* replyTold(sent, found);
  const personaId = replyTo.personaId ?? null;
  if (told || elsewhere) {
    const reply: StoredReply = { senderName: whoseWords(senderName, forwardedFrom), text, ours, personaId };
    if (told) reply.told = true;
    return { reply, isTainted: text !== '' };
  }
  if (!ours) {
    const from = forwardedFrom ?? found?.forwardedFrom;
    const isTainted = from !== undefined && from !== null ? true : taintOf(found, text);
    return { reply: { senderName: whoseWords(senderName, from), text, ours, personaId }, isTainted };
  }
  const saidText = sent ? asSaid(text, sent) : text;
  const reply = { senderName, text: saidText, ours, personaId: sent?.personaId || personaId };
  // If the text is no longer stored, its origin is unknown.
  return { reply, isTainted: text !== '' && (sent === undefined || (yield* isFromOutside(sent))) };
}

function taintOf(found: RepliedRow | undefined, text: string): boolean | undefined {
  if (text === '') return false;
  return found && found.tainted === 1;
}

/** If the files match those of the message replied to, they are verified, and an earlier download is reused. */
export function* filesWith(
  attachments: Attachment[],
  replied: MessagePlace & { platformMessageId: string },
): db.Verb<StoredAttachment[]> {
  if (!attachments.some(({ ofReply }) => ofReply)) return attachments;
  const known: StoredAttachment[] = JSON.parse((yield* db.value<string | null>(FILES, replied)) ?? '[]');
  return attachments.map((each) => {
    const same = each.ofReply && known.find(({ source }) => source === each.source);
    if (!same) return each;
    const { told: _proved, ...file } = each;
    return same.outcome?.kind === 'kept' ? { ...file, outcome: same.outcome } : file;
  });
}

/** The quiet message that records a reaction to a persona's message; undefined if there is no such message. */
export function* reactionTo(
  receipt: ReceiptOf<'reaction'>,
  chat: { title: string; moves: number },
  { account, now }: { account: string; now: number },
): db.Verb<{ room: RoomId; personaId: PersonaId; said: NewMessage } | undefined> {
  const { chatId, sender, sign, sentAt, platformMessageIds, tainted } = receipt;
  for (const platformMessageId of platformMessageIds) {
    const sent = yield* sentWith(chatId, platformMessageId);
    if (!sent?.personaId || (yield* isForgotten(sent))) continue;
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
      platformMessageId: `${BY_REACTION}${platformMessageId}:${sender.id}:${sign}`,
      replyTo: { senderName, text, ours: true, personaId },
      quiet: true,
      reaction: true,
      tainted: tainted === true || (yield* isFromOutside(sent)),
    };
    return { room: roomId(chatId, sent.threadId), personaId, said };
  }
  return undefined;
}

/** The persona's text, from what a platform shows: without its name above it and the gateway's note below it. */
function asSaid(shown: string, { body, face }: SentRow): string {
  const appearance: Appearance | null = face === null ? null : JSON.parse(face);
  const isNamed = appearance !== null && !appearance.alone && shown.startsWith(`${appearance.name}\n`);
  const text = isNamed ? shown.slice(appearance.name.length + 1) : shown;
  const part: Part = JSON.parse(body);
  if (part.note === undefined) return text;
  const said = part.text.slice(0, part.note).trimEnd();
  // The quote may be only a part of it.
  return text.length > said.length ? said : text;
}

// ── Edits and deletions ─────────────────────────────────────────────────────────────────────────────────────

interface EditedRow extends Omit<Row<typeof message>, 'turnId'> {
  /** A running turn is answering it. */
  isTaken: number;
}
const EDITED = `
  select id, ${columns(MESSAGE)}, state = 'done' and exists (
      select 1 from turn where turn.id = message.turn_id and turn.state = 'running') as isTaken
  from message where ${IS_CALLED}`;
const WITHDRAW = `
  update message set state = 'done'
  where chat_id = @chatId and account = @account and moves = @moves
    and text_in(platform_message_id, @ids) and edited in (0, 1)
    and state = 'waiting' and coalesce(@senderId, author_id) = author_id
  returning room_id`;

/** `room`: there is something new to answer in it; `anew`: as a message of its own, because a turn answers the first. */
interface Changed {
  room: RoomId | null;
  agent: PersonaId;
  anew?: Arriving;
}

export function* changeMessage(
  edit: ReceiptOf<'edit'>,
  { account, now }: { account: string; now: number },
): db.Verb<Changed> {
  const { chatId, senderId, platformMessageId, editedAt, mentionsBot } = edit;
  const chat = yield* findChat(chatId);
  const key = { chatId, account, moves: chat?.moves ?? 0, platformMessageId };
  const agent = chat?.activePersona ?? DEFAULT_PERSONA;
  const found = yield* db.one<EditedRow>(EDITED, key);
  if (!found || found.authorId !== senderId || found.state === 'unsaid') return { room: null, agent };
  const { text, attachments, words, mentions } = edit;
  // Platforms also report other changes as edits (a link preview): the same text needs no new answer.
  if ((found.words ?? found.text) === (words ?? text)) return { room: null, agent };
  const { id, roomId: room } = found;
  const edited = { text, attachments, words, mentions };
  if (found.isTaken) {
    const waits = { edited: 1, state: 'waiting' as const, sentAt: editedAt, receivedAt: now };
    const anew = { ...found, ...edited, ...waits, mentionsBot };
    return { room, agent, anew };
  }
  const names = 'text attachments words mentions mentionsBot';
  const row = bound({ id, ...edited, mentionsBot: found.mentionsBot === 1 || mentionsBot });
  yield* db.tell(`update message set ${assigned(names)} where id = @id`, row);
  const isWaiting = found.state === 'waiting';
  yield* isWaiting ? moveFence(room) : reviseRoom(room);
  return { room: isWaiting ? room : null, agent };
}

export function* withdrawMessages(
  deleted: ReceiptOf<'deleted'>,
  { account }: { account: string },
): db.Verb<void> {
  const { chatId, platformMessageIds, senderId = null } = deleted;
  const ids = JSON.stringify(platformMessageIds);
  const moves = (yield* findChat(chatId))?.moves ?? 0;
  const rooms = yield* db.column<RoomId>(WITHDRAW, { chatId, account, moves, senderId, ids });
  for (const room of new Set(rooms)) yield* moveFence(room);
}
