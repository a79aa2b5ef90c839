/** Step 4 of the route: renders a persona's heard messages for a model. Pure. */
import { cutAt, cutMarker } from '../../core/cut.js';
import type { Zone } from '../../core/dates.js';
import type { PersonaId } from '../../core/ids.js';
import type { ModelImage, ModelMessage } from '../../core/model.js';
import { element, elementAround, escaped, UNTRUSTED } from '../../core/origin.js';
import type { ChatNotes } from '../../core/persona.js';
import { TASK_COMPLETED } from '../../core/task.js';
import { type HeardMessage, isOfPerson, type Step, type StoredMessage } from '../../core/transcript.js';
import { earlierSteps, reactionLine } from '../turn/steps.js';
import { inAlbums, type ShownMessage } from './albums.js';

/** Inserted where a turn ended without an answer. */
const UNANSWERED = '(I gave no answer to this.)';
/** Number of following messages checked to tell whether a message was answered. */
const LOOK_AHEAD = 20;

/** The persona from whose perspective a transcript is rendered. */
export interface Perspective {
  personaId: PersonaId;
  zone: Zone;
  /** Whether messages of people carry their ids, so that the persona can refer to them. */
  namesIds: boolean;
  /** The names of other personas. */
  nameOf(personaId: PersonaId): string;
  /** How people call themselves here, where they have said so. */
  people?: ChatNotes['people'];
}

/** The shown length of a person's text, and the setting or rule behind it. */
export interface Shortening {
  mostOf(text: string): number;
  limit: string;
}

/** Messages as people see them: an album is one message. */
export function asShown<M extends StoredMessage>(messages: readonly M[]): ShownMessage<M>[] {
  if (messages.some(({ album }) => album !== undefined)) return inAlbums(messages);
  return messages.map((message) => ({ message, items: [message] }));
}

/** For each shown message the model's messages, which are kept or dropped together. `images` by message id. */
export function historyEntries(
  heard: HeardMessage[],
  steps: ReadonlyMap<string, Step[]>,
  perspective: Perspective,
  { images, shortening }: { images?: ReadonlyMap<number, ModelImage[]>; shortening?: Shortening } = {},
): ModelMessage[][] {
  const messages = asShown(heard).map(({ message }) => message);
  const answered = new Set(
    messages.flatMap(({ author, turnId }) => (author.kind === 'persona' ? [turnId] : [])),
  );
  return messages.map((message, n) => {
    const { author, turnId, text } = message;
    if (author.kind === 'persona' && author.id === perspective.personaId) {
      const own = turnId === null ? undefined : steps.get(turnId);
      const worked = own ? earlierSteps(own) : [];
      // Only a reaction: as words of its own, the model would write such a line instead of reacting.
      if (message.reaction) return worked.length > 0 ? worked : [reactionLine(text)];
      return [...worked, { role: 'assistant', content: escaped(text), calls: [] }];
    }
    const line = shortening
      ? userLineWithin(message, shortening.mostOf(text), perspective, shortening.limit)
      : userLine(message, perspective);
    const said = userMessage(line, images?.get(message.id));
    // The turn was stopped, failed or parked: without this note, the model would answer the old question now.
    const isOpen = turnId !== null && !answered.has(turnId) && isUnanswered(messages, n, turnId);
    return isOpen ? [said, { role: 'assistant', content: UNANSWERED, calls: [] }] : [said];
  });
}

/** Whether it is the last message of a turn that ended without a reply. */
function isUnanswered(messages: StoredMessage[], n: number, turnId: string): boolean {
  if (messages[n]?.author.kind === 'persona') return false;
  for (const { author, turnId: other } of messages.slice(n + 1, n + 1 + LOOK_AHEAD)) {
    // With several personas, another may have answered it, or this one in a different turn.
    if (author.kind === 'persona') return false;
    // Overheard messages may lie between those of a turn.
    if (other !== null) return other !== turnId;
  }
  return true;
}

/** Merges adjacent messages of people, and of the persona: many servers require alternating roles. */
export function joinNeighbours(messages: ModelMessage[]): ModelMessage[] {
  const joined: ModelMessage[] = [];
  for (const message of messages) {
    const last = joined.at(-1);
    if (message.role === 'user' && last?.role === 'user') {
      const images = [...(last.images ?? []), ...(message.images ?? [])];
      joined[joined.length - 1] = userMessage(`${last.content}\n${message.content}`, images);
    } else if (isPlain(message) && isPlain(last)) {
      joined[joined.length - 1] = { ...last, content: `${last.content}\n\n${message.content}` };
    } else {
      // Many servers want the first message to be a user's.
      if (message.role === 'assistant' && (last === undefined || last.role === 'system')) joined.push(BEGUN);
      joined.push(message);
    }
  }
  return joined;
}

const BEGUN: ModelMessage = { role: 'user', content: '(The conversation, as far as you see it:)' };

/** Text alone, with no calls or metadata attached. */
function isPlain(message: ModelMessage | undefined): message is ModelMessage & { role: 'assistant' } {
  return message?.role === 'assistant' && message.calls.length === 0 && message.echo === undefined;
}

export function userMessage(content: string, images: ModelImage[] = []): ModelMessage {
  return images.length === 0 ? { role: 'user', content } : { role: 'user', content, images };
}

/**
 * `<user_message sender="NAME" at="TIME">…</user_message>`: exactly what somebody said. A quote of the message it replies to comes
 * before it; a forward and an agent's report have their own elements, because the words are somebody else's.
 */
export function userLine(message: StoredMessage, perspective: Perspective): string {
  const { author, replyTo, text } = message;
  const at = perspective.zone.time(message.sentAt);
  if (author.kind === 'gateway') {
    const trust = message.tainted ? UNTRUSTED : {};
    if (author.about === TASK_COMPLETED) return element('task_completed', { at, ...trust }, text);
    return element('event', { about: author.about, at, ...trust }, text);
  }
  const called = author.kind === 'person' ? perspective.people?.[author.id]?.name || author.name : null;
  const sender = called ?? perspective.nameOf(author.id);
  const proof = replyTo?.told ? { told_by: sender } : {};
  const quoted = replyTo
    ? `${element('in_reply_to', { sender: replyTo.senderName, ...proof }, quote(replyTo.text))}\n`
    : '';
  const id = perspective.namesIds && isOfPerson(message) ? { id: String(message.id) } : {};
  const edited = message.edited ? { changes: 'an earlier message' } : {};
  // A forward is marked by its own element inside.
  const trust = message.tainted && message.forwardedFrom === undefined ? UNTRUSTED : {};
  const attributes = { sender, at, ...id, ...edited, ...trust };
  return `${quoted}${elementAround('user_message', attributes, insideOf(message))}`;
}

/** The same with at most `most` characters of its text; its element stays whole. */
export function userLineWithin(
  message: StoredMessage,
  most: number,
  perspective: Perspective,
  limit: string,
): string {
  if (most >= message.text.length) return userLine(message, perspective);
  const line = userLine({ ...message, text: cutAt(message.text, most) }, perspective);
  // The marker is the gateway's text, so it is placed outside the user's message.
  return `${line}\n\n${cutMarker(limit, most)}`;
}

function insideOf({ text, forwardedFrom }: StoredMessage): string {
  if (forwardedFrom === undefined) return escaped(text);
  const from: Record<string, string> = forwardedFrom === '' ? {} : { from: forwardedFrom };
  return element('forwarded', { ...from, ...UNTRUSTED }, text);
}

const QUOTE_CHARS = 500;

function quote(words: string): string {
  const line = words.replaceAll(/\s+/g, ' ').trim();
  return line.length <= QUOTE_CHARS ? line : `${cutAt(line, QUOTE_CHARS)} [quote shortened]`;
}
