/** Steps 5 to 7 of the route, pure: words as deliveries, the same while they are written and when they are final; options below them. */
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
  batch: StoredMessage[];
  lateByHours: number | null;
  /** The gateway's own line below the reply, on what it saved; null for none. */
  note: string | null;
}

type Speaking = Omit<NewDelivery, 'part' | 'body'>;

export function replyOf(channel: Channel, info: ReplyInfo, text: string): NewDelivery[] {
  const { lateByHours, note, appearance } = info;
  const late =
    lateByHours === null
      ? ''
      : `_This answer is late: I was away for a while, and your message waited ${lateByHours} hours._\n\n`;
  const from = speaking(channel, info, `turn:${info.turnId}`);
  if (note === null) return deliveriesOf(channel, late + text, from);
  return entriesOf(
    withNote(partsOf(channel, late + text, spareFor(appearance) + roomForNote(note)), note),
    from,
  );
}

/** Files of a reply. They have their own origin, because its words may have been shown while they were written. */
export function filesOfReply(
  channel: Channel,
  info: ReplyInfo,
  files: OutgoingFile[],
  isAlone: boolean,
): NewDelivery[] {
  const from = speaking(channel, info, `tool:${info.turnId}:made`);
  return entriesOf(files.map(asPart), isAlone ? from : { ...from, replyTo: null });
}

function speaking(channel: Channel, info: ReplyInfo, origin: string): Speaking {
  const { personaId, speaker, kind, batch, appearance } = info;
  // The last message by a person; a persona's may consist of several platform messages.
  const answered = batch.findLast(({ author }) => author.kind === 'person')?.platformMessageId ?? null;
  return { origin, personaId, speaker, replyTo: replyIn(channel, kind, answered), appearance };
}

/** The message that an answer is shown as a reply to; in a direct chat that would be noise. A native command waits for its answer everywhere. */
export function replyIn(channel: Channel, kind: ChatRecord['kind'], messageId: string | null): string | null {
  const isWaiting = messageId !== null && channel.awaitsAnswer?.(messageId) === true;
  return kind === 'group' || isWaiting ? messageId : null;
}

export function recipientIn({ address, kind }: ChatRecord, room: RoomId): Recipient {
  return { address, kind, threadId: roomParts(room).threadId };
}

/** Splits a text into the parts its channel can show, then one part per file; only the first is shown as a reply. */
export function deliveriesOf(
  channel: Channel,
  markdown: string,
  from: Speaking,
  files: OutgoingFile[] = [],
): NewDelivery[] {
  return entriesOf([...partsOf(channel, markdown, spareFor(from.appearance)), ...files.map(asPart)], from);
}

/** As many messages as it takes. */
export function wholeDeliveriesOf(channel: Channel, markdown: string, from: Speaking): NewDelivery[] {
  return entriesOf(channel.compose(markdown, spareFor(from.appearance)), from);
}

function asPart(file: OutgoingFile): Part {
  return { text: '', marks: [], file };
}

function entriesOf(parts: Part[], from: Speaking): NewDelivery[] {
  return parts.map((body, part) => ({ ...from, part, body, replyTo: part === 0 ? from.replyTo : null }));
}

/** Space for the speaker's name on a line before the text. Always reserved, so that the split does not depend on the channel. */
function spareFor(appearance: Appearance | undefined): number {
  return appearance === undefined ? 0 : appearance.name.length + 1;
}

/** The parts that a channel can show, with `spare` characters free in each. Nobody reads five hundred: a note says that there is more. */
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

/** Without buttons, the text says how to answer. An offer to anybody also asks for its code, since a number may mean more. */
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
export function withButtons(channel: Channel, deliveries: NewDelivery[], offer: Offer): NewDelivery[] {
  if (!channel.buttons) return deliveries;
  const choices = offer.options.map(({ label }, n) => ({ label, value: `${offer.key}.${n}` }));
  const last = deliveries.findLast(({ body }) => body.file === undefined);
  return deliveries.map((each) => (each === last ? { ...each, body: { ...each.body, choices } } : each));
}
