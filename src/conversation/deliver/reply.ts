/**
 * What a persona says as its channel can show it, for steps 5 to 7: the messages it becomes, what they answer, under
 * which appearance. One function for the reply that is final, the one that still grows, and what is said beside it.
 */
import type { Appearance, Channel, OutgoingFile, Recipient } from '../../core/channel.js';
import { type PersonaId, type RoomId, roomParts } from '../../core/ids.js';
import type { ChatRecord, NewDelivery } from '../../core/store.js';
import type { StoredMessage } from '../../core/transcript.js';

export interface Said {
  turnId: string;
  personaId: PersonaId;
  speaker: string;
  /** Where it is to be seen who of several speaks. */
  appearance: Appearance | undefined;
  kind: 'direct' | 'group';
  /** What it answers. */
  batch: StoredMessage[];
  lateByHours: number | null;
}

/** What a persona says as it is delivered: the same while it is written and when it is final. */
export function replyOf(channel: Channel, ask: Said, text: string): NewDelivery[] {
  const said = ask.lateByHours === null ? text : `${lateNotice(ask.lateByHours)}\n\n${text}`;
  return deliveriesOf(channel, said, {
    origin: `turn:${ask.turnId}`,
    personaId: ask.personaId,
    speaker: ask.speaker,
    // In a group it is shown what is being answered; between two people that would be noise.
    replyTo: ask.kind === 'group' ? asked(ask.batch) : null,
    ...(ask.appearance === undefined ? {} : { appearance: ask.appearance }),
  });
}

/** Where the replies of a room go, and where it is shown that one is on its way. */
export function recipientIn({ address, kind }: ChatRecord, room: RoomId): Recipient {
  return { address, kind, threadId: roomParts(room).threadId };
}

/** A text as the messages its channel can show, then the files, a message each; only the first is shown as a reply. */
export function deliveriesOf(
  channel: Channel,
  markdown: string,
  from: Omit<NewDelivery, 'part' | 'body'>,
  files: OutgoingFile[] = [],
): NewDelivery[] {
  const sent = files.map((file) => ({ text: '', marks: [], file }));
  return [...channel.compose(markdown, spareFor(from.appearance)), ...sent].map((body, part) => ({
    ...from,
    part,
    body,
    replyTo: part === 0 ? from.replyTo : null,
  }));
}

/** A channel that cannot show a appearance puts the name on a line before the text. */
function spareFor(appearance: Appearance | undefined): number {
  return appearance === undefined ? 0 : appearance.name.length + 1;
}

/** The last message of a person; what personas say has no single message on the platform. */
function asked(batch: StoredMessage[]): string | null {
  return batch.findLast(({ author }) => author.kind === 'person')?.platformMessageId ?? null;
}

function lateNotice(hours: number): string {
  return `_This answer is late: I was away for a while, and your message waited ${hours} hours._`;
}
