/**
 * Step 4 of the route: renders a persona's heard messages for a model. The items of an album are stored separately and shown as the
 * one message that people see. Pure.
 */
import { cutAt, cutMarker } from '../../core/cut.js';
import type { Zone } from '../../core/dates.js';
import type { PersonaId } from '../../core/ids.js';
import type { ModelImage, ModelMessage, ToolCall } from '../../core/model.js';
import { element, elementAround, escaped, UNTRUSTED } from '../../core/origin.js';
import type { Position } from '../../core/position.js';
import { TASK_COMPLETED } from '../../core/task.js';
import {
  type HeardMessage,
  isOfPerson,
  mostInPart,
  type Step,
  type StoredMessage,
} from '../../core/transcript.js';
import { stepMessages } from '../turn/steps.js';

/** Inserted where a turn ended without an answer. */
const UNANSWERED = '(I gave no answer to this.)';

/** Tool results in the history are shortened so that they do not crowd out the conversation. */
const OLD_RESULT_CHARS = 2_000;

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
}

/** The model messages for one message of the window; kept or dropped together when the window is cut. */
export type RenderedMessages = ModelMessage[];

/** The shown length of a person's text, and the setting or rule behind it. */
export interface Shortening {
  mostOf(text: string): number;
  limit: string;
}

const WHOLE: Shortening = { mostOf: ({ length }) => length, limit: '' };

/** One entry per message or album, in order; without images. */
export function historyEntries(
  heard: HeardMessage[],
  steps: ReadonlyMap<string, Step[]>,
  perspective: Perspective,
  shortening: Shortening = WHOLE,
): RenderedMessages[] {
  const messages = albumsOf(heard).map(asOne);
  const answered = answeredTurns(messages);
  return messages.map((message, n) =>
    entryOf(message, {
      perspective,
      steps: message.turnId === null ? undefined : steps.get(message.turnId),
      isUnanswered: isUnanswered(messages, n, answered),
      shortening,
    }),
  );
}

export function entryOf(
  message: StoredMessage,
  {
    perspective,
    steps,
    images,
    isUnanswered,
    shortening = WHOLE,
  }: {
    perspective: Perspective;
    /** Steps of the persona's own turn, if it used tools. */
    steps: Step[] | undefined;
    images?: ModelImage[] | undefined;
    isUnanswered: boolean;
    shortening?: Shortening;
  },
): RenderedMessages {
  if (message.author.kind === 'persona' && message.author.id === perspective.personaId) {
    const worked = steps ? earlierSteps(steps) : [];
    // Only a reaction: as words of its own, the model would write such a line instead of reacting.
    if (message.reaction) return worked.length > 0 ? worked : [reactionLine(message.text)];
    return [...worked, { role: 'assistant', content: escaped(message.text), calls: [] }];
  }
  const { mostOf, limit } = shortening;
  const said = userMessage(userLineWithin(message, mostOf(message.text), perspective, limit), images);
  // The turn was stopped, failed or parked: without this note, the model would answer the old question now.
  return isUnanswered ? [said, { role: 'assistant', content: UNANSWERED, calls: [] }] : [said];
}

type AnswerStep = Step & { kind: 'answer' };

/** The outcome of a call of each of these tools, in a few words. */
const TOLD_IN_A_LINE: Record<string, (asked: Record<string, unknown>) => string> = {
  read_tiered_memory: ({ tier }) => `read ${tierOf(tier)}`,
  write_tiered_memory: ({ tier }) => `wrote ${tierOf(tier)}`,
  read_memory: ({ scope, date }) => `read memory (${[scope, date].filter(isShort).join(', ')})`,
  write_memory: ({ date }) => `added to the daily log${isShort(date) ? ` of ${date}` : ''}`,
  react: ({ emoji }) => `reacted with ${isShort(emoji) ? emoji : 'an emoji'}`,
};

/**
 * The tool calls of an earlier turn. Reactions and memory calls become one line each: every prompt shows the current memory, and an
 * older copy would contradict it. The line is a note beside the persona's words, because a model repeats the form of its own words.
 */
function earlierSteps(steps: Step[]): ModelMessage[] {
  const inALine = (step: Step): step is AnswerStep =>
    step.kind === 'answer' &&
    step.calls.length > 0 &&
    // An answer that also called other tools stays as it was: servers want its calls back complete.
    step.calls.every(({ name }) => Object.hasOwn(TOLD_IN_A_LINE, name));
  const calls = steps.filter(inALine).flatMap((step) => step.calls);
  const others = stepMessages(
    steps.filter((step) => !inALine(step)),
    OLD_RESULT_CHARS,
  );
  if (calls.length === 0) return others;
  const lines = calls.map((call) => callLine(call, steps));
  // Before the other calls, because some servers refuse a user message right after a tool result.
  return [{ role: 'user', content: lines.join('\n') }, ...others];
}

const REACTION = 'your reaction';

/** A reaction whose call is no longer kept. */
function reactionLine(text: string): ModelMessage {
  return { role: 'user', content: element('event', { about: REACTION }, text) };
}

function callLine(call: ToolCall, steps: Step[]): string {
  const result = steps.find((step) => step.kind === 'result' && step.callId === call.id);
  const end =
    result?.kind !== 'result' ? ' (interrupted, outcome unknown)' : result.failed ? ' (refused)' : '';
  return element(
    'event',
    { about: call.name === 'react' ? REACTION : 'your memory' },
    `you ${TOLD_IN_A_LINE[call.name]?.(argumentsOf(call))}${end}`,
  );
}

function argumentsOf({ arguments: text }: ToolCall): Record<string, unknown> {
  try {
    const parsed: unknown = JSON.parse(text);
    return typeof parsed === 'object' && parsed !== null ? (parsed as Record<string, unknown>) : {};
  } catch {
    // Such a call did nothing, and its result said why.
    return {};
  }
}

function tierOf(tier: unknown): string {
  return tier === undefined ? 'your tiers' : `tier ${isShort(tier) ? tier : '?'}`;
}

function isShort(value: unknown): value is string | number {
  return (typeof value === 'string' || typeof value === 'number') && String(value).length <= 20;
}

/** The turns that have a reply among the messages. */
export function answeredTurns(messages: StoredMessage[]): Set<string | null> {
  return new Set(messages.flatMap(({ author, turnId }) => (author.kind === 'persona' ? [turnId] : [])));
}

/** Whether it is the last message of a turn that ended without a reply. */
export function isUnanswered(
  messages: StoredMessage[],
  n: number,
  answered: ReadonlySet<string | null>,
): boolean {
  const turnId = messages[n]?.turnId ?? null;
  if (turnId === null || messages[n]?.author.kind === 'persona' || answered.has(turnId)) return false;
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
 * before it; a forward has its own element, because the words are somebody else's.
 */
export function userLine(message: StoredMessage, perspective: Perspective): string {
  const { author, replyTo } = message;
  const at = perspective.zone.time(message.sentAt);
  if (author.kind === 'gateway') return eventLine(message, author.about, at);
  const sender = author.kind === 'person' ? author.name : perspective.nameOf(author.id);
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

/** An agent's report has an element of its own, as it may contain untrusted text. */
function eventLine({ text, tainted }: StoredMessage, about: string, at: string): string {
  const trust = tainted ? UNTRUSTED : {};
  if (about !== TASK_COMPLETED) return element('event', { about, at, ...trust }, text);
  return element('task_completed', { at, ...trust }, text);
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

/** The position is known for messages that the persona has heard. */
type Placed = StoredMessage & { position?: Position };

/**
 * Groups neighbours that are shown as one message, and parts of a paste even with other messages in between. Only messages heard
 * together are grouped: a late item changes nothing that was shown before.
 */
export function albumsOf<M extends Placed>(messages: readonly M[]): M[][] {
  const groups: M[][] = [];
  for (const message of messages) {
    const isPart = message.album !== undefined && mostInPart(message.album) !== null;
    const near = groups.slice(isPart ? -BETWEEN_PARTS : -1);
    const same = near.findLast(([first]) => first !== undefined && isSameAlbum(first, message));
    if (same === undefined) groups.push([message]);
    else same.push(message);
  }
  return groups;
}

/** Number of preceding messages searched for the earlier parts. */
const BETWEEN_PARTS = 10;

/** Its captions first, then a line for each file, in order of arrival. */
export function asOne<M extends Placed>(items: readonly M[]): M {
  const [first, ...others] = items;
  if (first === undefined) throw new Error('an album without items');
  if (others.length === 0) return first;
  const most = first.album === undefined ? null : mostInPart(first.album);
  if (most !== null) return { ...first, text: parts(items, most) };
  const captions = items.flatMap(({ words = '' }) => (words === '' ? [] : [words]));
  return {
    ...first,
    text: [...captions, ...items.map(withoutWords)].filter((line) => line !== '').join('\n'),
    words: captions.join('\n'),
    attachments: items.flatMap(({ attachments = [] }) => attachments),
    replyTo: items.find(({ replyTo }) => replyTo !== null)?.replyTo ?? null,
  };
}

/** A client cuts at the last character that fits, or at white space before it, which is lost. */
function parts(items: readonly StoredMessage[], most: number): string {
  return items.reduce((whole, { text }, n) => {
    const before = items[n - 1]?.text ?? '';
    const isWhole = n === 0 || before.length >= most - 1 || /\s$/.test(before) || /^\s/.test(text);
    return whole + (isWhole ? '' : ' ') + text;
  }, '');
}

function isSameAlbum(one: Placed, other: Placed): boolean {
  return (
    one.album !== undefined &&
    one.album === other.album &&
    one.author.kind === 'person' &&
    other.author.kind === 'person' &&
    one.author.id === other.author.id &&
    one.turnId === other.turnId &&
    one.position?.heardAfter === other.position?.heardAfter &&
    one.forwardedFrom === other.forwardedFrom &&
    !one.edited &&
    !other.edited
  );
}

function withoutWords({ text, words = '' }: StoredMessage): string {
  if (words === '' || text === words) return words === '' ? text : '';
  return text.startsWith(`${words}\n`) ? text.slice(words.length + 1) : text;
}
