/**
 * Step 6 of the route: how a turn ends, as one transaction. Its messages count as answered, the reply becomes
 * transcript and deliveries, the room is free. What is delivered is decided here and nowhere else.
 */
import type { Channel, Face, OutgoingFile } from '../core/channel.js';
import type { Exchange } from '../core/exchange.js';
import type { PersonaId } from '../core/ids.js';
import type { Given } from '../core/keeping.js';
import type { Usage } from '../core/model.js';
import type { Claim, NewDelivery, TurnStore } from '../core/store.js';
import type { StoredMessage } from '../core/transcript.js';
import type { Measured } from '../core/view.js';

export interface Ending {
  outcome: 'answered' | 'failed' | 'parked';
  /** What the persona said; for a turn that failed, the one plain sentence. */
  text: string;
  usage: Usage | null;
}

export interface FinishAsk {
  claim: Claim;
  turnId: string;
  personaId: PersonaId;
  /** Who is present and hears the reply too, and to whom of them it is said. */
  hearers: PersonaId[];
  addressed: PersonaId[];
  /** What goes on between personas behind it. */
  exchange: Exchange | null;
  speaker: string;
  /** Where it is to be seen who of several speaks. */
  face: Face | undefined;
  kind: 'direct' | 'group';
  batch: StoredMessage[];
  lateByHours: number | null;
  /** The size of its last request, and what of memory it was given; where there was an answer. */
  measured: Measured | null;
  given: Given | null;
  now: number;
}

export async function finish(
  parts: { store: TurnStore; channel: Channel },
  ask: FinishAsk,
  ending: Ending,
): Promise<'finished' | 'lost'> {
  const answered = ending.outcome === 'answered';
  return parts.store.finishTurn({
    claim: ask.claim,
    turnId: ask.turnId,
    outcome: ending.outcome,
    reply: answered ? ending.text : null,
    hearers: ask.hearers,
    addressed: answered ? ask.addressed : [],
    exchange: ask.exchange,
    deliveries: replyOf(parts.channel, answered ? ask : { ...ask, lateByHours: null }, ending.text),
    usage: ending.usage,
    measured: ask.measured,
    given: answered ? ask.given : null,
    now: ask.now,
  });
}

/** What a persona says as it is delivered: the same while it is written and when it is final. */
export function replyOf(
  channel: Channel,
  ask: Pick<FinishAsk, 'turnId' | 'personaId' | 'speaker' | 'face' | 'kind' | 'batch' | 'lateByHours'>,
  text: string,
): NewDelivery[] {
  const said = ask.lateByHours === null ? text : `${lateNotice(ask.lateByHours)}\n\n${text}`;
  return deliveriesOf(channel, said, {
    origin: `turn:${ask.turnId}`,
    personaId: ask.personaId,
    speaker: ask.speaker,
    // In a group it is shown what is being answered; between two people that would be noise.
    replyTo: ask.kind === 'group' ? asked(ask.batch) : null,
    ...(ask.face === undefined ? {} : { face: ask.face }),
  });
}

/** A text as the messages its channel can show, then the files, a message each; only the first is shown as a reply. */
export function deliveriesOf(
  channel: Channel,
  markdown: string,
  from: Omit<NewDelivery, 'part' | 'body'>,
  files: OutgoingFile[] = [],
): NewDelivery[] {
  const sent = files.map((file) => ({ text: '', marks: [], file }));
  return [...channel.compose(markdown, spareFor(from.face)), ...sent].map((body, part) => ({
    ...from,
    part,
    body,
    replyTo: part === 0 ? from.replyTo : null,
  }));
}

/** A channel that cannot show a face puts the name on a line before the text. */
function spareFor(face: Face | undefined): number {
  return face === undefined ? 0 : face.name.length + 1;
}

/** The last message of a person; what personas say has no single message on the platform. */
function asked(batch: StoredMessage[]): string | null {
  return batch.findLast(({ author }) => author.kind === 'person')?.platformMessageId ?? null;
}

function lateNotice(hours: number): string {
  return `_This answer is late: I was away for a while, and your message waited ${hours} hours._`;
}
