/** The content of one memory flush: the whole window, or as much as fits; and where a window may be cut. */
import { cutAt, cutWithMarker, estimateTokens } from '../../core/cut.js';
import type { PersonaId } from '../../core/ids.js';
import type { ModelMessage } from '../../core/model.js';
import { element, escaped } from '../../core/origin.js';
import { isAfter, type Position } from '../../core/position.js';
import type { HeardMessage, Span, ViewRecord } from '../../core/transcript.js';
import { historyEntries, type Perspective, type Shortening } from '../context/history.js';
import type { Knowledge } from '../context/knowledge.js';
import { presentIn } from '../participants.js';
import type { Services, Subject } from '../services.js';
import { tokensOf } from '../turn/tokens.js';

export interface Chunk {
  messages: ModelMessage[];
  shown: HeardMessage[];
  /** Position of its last message; everything shown up to here counts as seen. */
  to: Position;
  /** Messages that no flush has seen yet, oldest first. */
  fresh: HeardMessage[];
  /** A message exceeded the model's whole window and is shown shortened. */
  cut: boolean;
}

const MOST_ROWS = 500;

export async function nextChunk(
  services: Services,
  view: ViewRecord,
  to: Position,
  tokens: number,
  perspective: Perspective,
): Promise<Chunk | null> {
  const { room, personaId } = view;
  const span = (after: Position) =>
    services.store.span({
      room,
      personaId,
      after,
      upTo: to,
      limit: MOST_ROWS,
      overheard: services.settings.overheardMessages,
    });
  const isFresh = ({ addressed, position }: HeardMessage) => addressed && isAfter(position, view.flushedTo);

  if (isAfter(view.flushedTo, view.windowAfter)) {
    // The window also holds messages that an earlier flush has seen. They are included as context while they fit.
    const window = await span(view.windowAfter);
    const messages = asTold(window, perspective);
    if (!window.more && tokensOf(messages) <= tokens) {
      return { messages, shown: window.messages, to, fresh: window.messages.filter(isFresh), cut: false };
    }
  }
  const rest = await span(view.flushedTo);
  if (rest.messages.length === 0) return null;
  const end = lastThatFits(rest, perspective, tokens);
  const part: Span = { ...rest, messages: rest.messages.slice(0, end + 1) };
  const whole = end === rest.messages.length - 1 && !rest.more;
  const chunk = {
    shown: part.messages,
    to: whole ? to : placeOf(part),
    fresh: part.messages.filter(isFresh),
  };
  const messages = asTold(part, perspective);
  if (tokensOf(messages) <= tokens) return { ...chunk, messages, cut: false };
  return {
    ...chunk,
    messages: shortened(part, perspective, Math.floor(tokens / messages.length)),
    cut: true,
  };
}

function asTold(span: Span, perspective: Perspective, shortening?: Shortening): ModelMessage[] {
  return historyEntries(span.messages, span.steps, perspective, shortening).flat();
}

/** The last boundary that fits; the first one even if it does not fit. */
function lastThatFits(span: Span, perspective: Perspective, tokens: number): number {
  const ends = boundaries(span.messages);
  const last = span.messages.length - 1;
  if (!span.more && !ends.includes(last)) ends.push(last);
  const [first = last] = ends;
  let fits = first;
  let used = 0;
  let from = 0;
  for (const end of ends) {
    used += tokensOf(asTold({ ...span, messages: span.messages.slice(from, end + 1) }, perspective));
    if (used > tokens) break;
    fits = end;
    from = end + 1;
  }
  return fits;
}

function placeOf({ messages }: Span): Position {
  const last = messages.at(-1);
  if (!last) throw new Error('a chunk without messages');
  return last.position;
}

const LIMIT = 'flush-max-chars';

/** Limits every message to this many tokens, with a marker at the cut. */
function shortened(span: Span, perspective: Perspective, share: number): ModelMessage[] {
  const most = Math.max(100, share * 2);
  const isTooLong = (text: string) => estimateTokens(text) > share && text.length > most;
  // People's text is cut before it is wrapped in elements, which stay whole.
  const mostOf = (text: string) => (isTooLong(text) ? most : text.length);
  return asTold(span, perspective, { mostOf, limit: LIMIT }).map((message) => {
    if (message.role === 'user' || !isTooLong(message.content)) return message;
    // Escaped again: a cut may turn a longer name into one of our element names.
    return { ...message, content: escaped(cutWithMarker(message.content, most, LIMIT)) };
  });
}

interface Keep {
  /** `conversation.keep_recent_messages`: maximum number of addressed messages that stay. */
  messages: number;
  /** Maximum number of tokens that stay. */
  tokens: number;
  tokensOf(message: HeardMessage): number;
}

/**
 * Indexes after which a window may be cut, ascending. A question stays with its answer, a tool call with its result,
 * and no message heard later may get a position before the cut.
 */
export function boundaries(messages: HeardMessage[]): number[] {
  const lastOfTurn = new Map<string, number>();
  messages.forEach(({ addressed, turnId }, n) => {
    if (addressed && turnId !== null) lastOfTurn.set(turnId, n);
  });
  const found: number[] = [];
  let openUntil = -1;
  messages.forEach((message, n) => {
    if (message.addressed && message.turnId !== null) {
      openUntil = Math.max(openUntil, lastOfTurn.get(message.turnId) ?? n);
    }
    if (openUntil > n) return;
    const next = messages[n + 1];
    // Messages heard later get positions after a reply; after an unanswered question one may still be inserted.
    const closed = next
      ? next.position.heardAfter > message.position.heardAfter
      : message.author.kind === 'persona';
    if (closed) found.push(n);
  });
  return found;
}

/** Position of the last message that leaves, so that the rest is within the limits; null if none can leave. */
export function cutPlace(messages: HeardMessage[], keep: Keep): Position | null {
  let kept = 0;
  let tokens = 0;
  let from = messages.length;
  while (from > 0) {
    const message = messages[from - 1];
    if (!message) break;
    tokens += keep.tokensOf(message);
    if (message.addressed) kept++;
    if (kept > keep.messages || tokens > keep.tokens) break;
    from--;
  }
  if (from === 0) return null;
  const possible = boundaries(messages);
  // The newest exchange always stays, whatever its size: a persona must not forget the last question.
  const inner = possible.filter((n) => n < messages.length - 1);
  const at = inner.find((n) => n >= from - 1) ?? inner.at(-1);
  return at === undefined ? null : (messages[at]?.position ?? null);
}

/**
 * The daily log is in the prompt of every persona of the chat, so it must not reveal messages heard by only some of
 * them. A persona that was never here (e.g. `default` in a chat of others) does not count.
 */
export async function wasHeardByAll(
  { store }: Services,
  { chat, room, personaId, personas }: Subject,
  { shown }: Chunk,
): Promise<boolean> {
  const present = presentIn(chat, personas);
  const others: PersonaId[] = [];
  for (const { id } of personas) {
    if (id === personaId) continue;
    if (present.includes(id) || (await store.roomsHeard(chat.id, id)).length > 0) others.push(id);
  }
  const ids = shown.map(({ id }) => id);
  return others.length === 0 || store.allHeard(room, others, ids);
}

const DAILY_LINE =
  'into the tier it belongs to, or as a line of the daily log (write_memory) under the date of the day it happened, unless it stands there already.';
const NO_DAILY_LINE =
  'into the tier it belongs to, with its date. Nothing into the daily log this time: other personas of this chat read it and did not hear all of this.';
const OPENING_CHARS = 80;

/** The last message of a flush's request. */
export function flushMessage(
  { fresh }: Chunk,
  { perspective, memoryNow }: Knowledge,
  isPrivate: boolean,
): ModelMessage {
  const [first] = fresh;
  const since = first
    ? ` What is new since the last time begins at ${perspective.zone.time(first.sentAt)} with ${element('first_message', {}, opening(first.text))}.`
    : '';
  return {
    role: 'user',
    content: `Memory flush. The conversation above is about to leave your sight. Afterwards you know of it only what stands in your memory, and a short summary.${since}

Save now what will matter later and is not in your memory yet: ${isPrivate ? NO_DAILY_LINE : DAILY_LINE} What was only forwarded is not what its sender said, thinks or is: name whose words they are, or leave them out. Only the memory tools work now. No transcripts. Nobody reads what you answer here, so talk to nobody. When all is saved, or nothing is worth it, answer: done${memoryNow && `\n\n${memoryNow}`}`,
  };
}

function opening(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ').trim();
  return line.length <= OPENING_CHARS ? line : `${cutAt(line, OPENING_CHARS)}…`;
}
