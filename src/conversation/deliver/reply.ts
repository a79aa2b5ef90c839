/**
 * Steps 5 to 7 of the route: turns a persona's words into deliveries for its channel, with parts, reply reference and appearance.
 * Used for final replies, replies still being written, and side messages. Pure.
 */

import type { Offer, OfferedOption } from '../../core/access.js';
import type { Appearance, Channel, NewDelivery, OutgoingFile, Part, Recipient } from '../../core/channel.js';
import type { ChatRecord } from '../../core/chat-record.js';
import { cutAt } from '../../core/cut.js';
import { type PersonaId, type RoomId, roomParts } from '../../core/ids.js';
import type { StoredMessage } from '../../core/transcript.js';
import { roomForNote, withNote } from './memory-note.js';

/** About twenty messages on a platform that takes four thousand characters each. */
const MOST_CHARS = 64_000;
/** A text with much markup takes more messages than its length suggests. */
const MOST_PARTS = 30;
/** The last paragraph or line break is searched within this many characters. */
const LOOK_BACK = 4_000;

const LONGER =
  '_(This is only the beginning: it is longer than I may send at once. Ask for the part you want.)_';

export interface ReplyInfo {
  turnId: string;
  personaId: PersonaId;
  speaker: string;
  /** Set if replies must show which of several personas is speaking. */
  appearance: Appearance | undefined;
  kind: 'direct' | 'group';
  /** The messages it answers. */
  batch: StoredMessage[];
  lateByHours: number | null;
  /** The gateway's own line below the reply, on what it saved; null for none. */
  note: string | null;
}

/** A reply's deliveries: the same function while it is written and when it is final. */
export function replyOf(channel: Channel, ask: ReplyInfo, text: string): NewDelivery[] {
  const said = ask.lateByHours === null ? text : `${lateNotice(ask.lateByHours)}\n\n${text}`;
  const from = { origin: `turn:${ask.turnId}`, ...speaking(channel, ask) };
  if (ask.note === null) return deliveriesOf(channel, said, from);
  const spare = spareFor(ask.appearance) + roomForNote(ask.note);
  return entriesOf(withNote(partsOf(channel, said, spare), ask.note), from);
}

/**
 * Files that belong to a reply, after its words or alone. They have their own origin, because parts of the words may have been
 * shown while they were written, and these never were.
 */
export function filesOfReply(
  channel: Channel,
  ask: ReplyInfo,
  files: OutgoingFile[],
  words: readonly NewDelivery[],
): NewDelivery[] {
  const from = { origin: `tool:${ask.turnId}:made`, ...speaking(channel, ask) };
  const parts = files.map((file) => ({ text: '', marks: [], file }));
  return entriesOf(parts, words.length === 0 ? from : { ...from, replyTo: null });
}

function speaking(channel: Channel, { personaId, speaker, kind, batch, appearance }: ReplyInfo) {
  // In a direct chat, a reply reference would be noise. A native command waits for its answer everywhere.
  const answered = asked(batch);
  const isWaiting = answered !== null && channel.awaitsAnswer?.(answered) === true;
  const replyTo = kind === 'group' || isWaiting ? answered : null;
  return { personaId, speaker, replyTo, ...(appearance === undefined ? {} : { appearance }) };
}

/** Recipient of a room's replies and typing indicators. */
export function recipientIn({ address, kind }: ChatRecord, room: RoomId): Recipient {
  return { address, kind, threadId: roomParts(room).threadId };
}

/** Splits a text into the parts its channel can show, then one part per file; only the first is shown as a reply. */
export function deliveriesOf(
  channel: Channel,
  markdown: string,
  from: Omit<NewDelivery, 'part' | 'body'>,
  files: OutgoingFile[] = [],
): NewDelivery[] {
  const sent = files.map((file) => ({ text: '', marks: [], file }));
  return entriesOf([...partsOf(channel, markdown, spareFor(from.appearance)), ...sent], from);
}

function entriesOf(parts: Part[], from: Omit<NewDelivery, 'part' | 'body'>): NewDelivery[] {
  return parts.map((body, part) => ({ ...from, part, body, replyTo: part === 0 ? from.replyTo : null }));
}

/**
 * Space for the speaker's name, which a channel that cannot show an appearance puts on a line before the text. Always reserved, so
 * that the split does not depend on the channel.
 */
function spareFor(appearance: Appearance | undefined): number {
  return appearance === undefined ? 0 : appearance.name.length + 1;
}

/** The last message by a person; a persona's may consist of several platform messages. */
function asked(batch: StoredMessage[]): string | null {
  return batch.findLast(({ author }) => author.kind === 'person')?.platformMessageId ?? null;
}

function lateNotice(hours: number): string {
  return `_This answer is late: I was away for a while, and your message waited ${hours} hours._`;
}

/**
 * Splits a text into parts its channel can show, keeping `spare` characters free in each. The number is limited to what people read
 * and a chat's rate limit allows: five hundred messages would block a group for half an hour. For a longer text only the beginning
 * is composed and sent, also for the live view, with a note that there is more.
 */
export function partsOf(channel: { compose: Channel['compose'] }, markdown: string, spare: number): Part[] {
  const parts = channel.compose(isLong(markdown) ? beginningOf(markdown) : markdown, spare);
  if (!isLong(markdown) && parts.length <= MOST_PARTS) return parts;
  return [...parts.slice(0, MOST_PARTS), ...channel.compose(LONGER, spare)];
}

export function isLong({ length }: string): boolean {
  return length > MOST_CHARS;
}

/** Up to the end of a paragraph, else of a line, if there is one near the end. */
function beginningOf(markdown: string): string {
  const most = cutAt(markdown, MOST_CHARS);
  const tail = most.slice(-LOOK_BACK);
  const at = ['\n\n', '\n'].map((end) => tail.lastIndexOf(end)).find((found) => found >= 0);
  return at === undefined ? most : most.slice(0, most.length - tail.length + at);
}

/**
 * Without buttons, the text explains how to answer. A number alone may mean something else, so an offer that anybody with the right
 * can decide also asks for its code.
 */
export function withNumbers(channel: Channel, markdown: string, { options, senderId }: Offer): string {
  if (channel.buttons) return markdown;
  const code = senderId === null && options[0] ? codeOf(options[0]) : '';
  const numbered = options.map(({ label }, n) => `${n + 1} ${label}`).join('\n');
  const how = code ? `Answer with a number and the code: \`1 ${code}\`.` : 'Answer with a number.';
  return `${markdown}\n\n${numbered}\n\n${how}`;
}

/** The last word of a command's argument, which identifies it among others of its kind. */
export function codeOf({ command }: OfferedOption): string {
  return command?.argument.split(' ').at(-1) ?? '';
}

/** On a channel with buttons, they are attached to the last message that is not a file. */
export function withButtons(
  channel: Channel,
  deliveries: NewDelivery[],
  { key, options }: Offer,
): NewDelivery[] {
  if (!channel.buttons) return deliveries;
  const choices = options.map(({ label }, n) => ({ label, value: `${key}.${n}` }));
  const last = deliveries.findLast(({ body }) => body.file === undefined);
  return deliveries.map((each) => (each === last ? { ...each, body: { ...each.body, choices } } : each));
}
