/**
 * A persona's view of the transcript as messages for a model, for step 4. Malformed history is impossible by
 * construction: a tool call is only ever written together with a result.
 */
import { cutAt, cutWithMarker } from '../core/cut.js';
import type { Zone } from '../core/dates.js';
import type { PersonaId } from '../core/ids.js';
import { estimateTokens, type ModelImage, type ModelMessage } from '../core/model.js';
import type { Step, StoredMessage } from '../core/transcript.js';

/** What the model is told of a call whose result nobody stored. */
export const INTERRUPTED =
  'Interrupted: the gateway ended while this ran. Its outcome is unknown; check before you repeat it.';

/** Stands where a turn ended without an answer. */
const UNANSWERED = '(I gave no answer to this.)';

/** Tool results of turns long answered are shortened, so that they do not crowd out the conversation. */
const OLD_RESULT_CHARS = 2_000;

/** The words of a company that follow one message. */
const LOOK_AHEAD = 20;

/** What models charge for a picture of the size we send is of this order. */
const TOKENS_PER_IMAGE = 1_000;

export interface View {
  personaId: PersonaId;
  zone: Zone;
  /** What other personas are called. */
  nameOf(personaId: PersonaId): string;
}

/** One entry of the window: the messages that stand or fall together when the window is cut. */
export type Entry = ModelMessage[];

export function historyEntries(
  messages: StoredMessage[],
  steps: Map<string, Step[]>,
  view: View,
  images: ReadonlyMap<number, ModelImage[]> = new Map(),
): Entry[] {
  const answered = new Set(
    messages.flatMap(({ author, turnId }) => (author.kind === 'persona' ? [turnId] : [])),
  );
  const entries: Entry[] = [];
  messages.forEach((message, n) => {
    if (message.author.kind === 'persona' && message.author.id === view.personaId) {
      const turnSteps = message.turnId === null ? undefined : steps.get(message.turnId);
      const worked = turnSteps ? stepMessages(turnSteps, OLD_RESULT_CHARS) : [];
      entries.push([...worked, { role: 'assistant', content: message.text, calls: [] }]);
      return;
    }
    entries.push([userMessage(userLine(message, view), images.get(message.id))]);
    const { turnId } = message;
    // Stopped, failed or parked: without a word about it, the model would answer the old question now.
    const isLast = messages[n + 1]?.turnId !== turnId;
    if (turnId !== null && !answered.has(turnId) && isLast && !isFollowedByWords(messages, n)) {
      entries.push([{ role: 'assistant', content: UNANSWERED, calls: [] }]);
    }
  });
  return entries;
}

/** In company, somebody else may have answered it, or this persona in a turn of its own. */
function isFollowedByWords(messages: StoredMessage[], n: number): boolean {
  const { turnId } = messages[n] ?? {};
  for (const { author, turnId: other } of messages.slice(n + 1, n + 1 + LOOK_AHEAD)) {
    if (author.kind === 'persona') return true;
    if (other !== turnId) return false;
  }
  return false;
}

/** Neighbouring user messages become one: many servers demand that roles alternate. */
export function joinNeighbours(messages: ModelMessage[]): ModelMessage[] {
  const joined: ModelMessage[] = [];
  for (const message of messages) {
    const last = joined.at(-1);
    if (message.role === 'user' && last?.role === 'user') {
      const images = [...(last.images ?? []), ...(message.images ?? [])];
      joined[joined.length - 1] = userMessage(`${last.content}\n${message.content}`, images);
    } else {
      joined.push(message);
    }
  }
  return joined;
}

export function userMessage(content: string, images: ModelImage[] = []): ModelMessage {
  return images.length === 0 ? { role: 'user', content } : { role: 'user', content, images };
}

/** The steps of a turn: each answer that called tools, followed by a result for each of its calls. */
export function stepMessages(steps: Step[], resultChars = Number.POSITIVE_INFINITY): ModelMessage[] {
  const results = new Map(
    steps.flatMap((step) => (step.kind === 'result' ? [[step.callId, step.content]] : [])),
  );
  return steps.flatMap((step): ModelMessage[] => {
    if (step.kind !== 'answer' || step.calls.length === 0) return [];
    return [
      { role: 'assistant', content: step.text, calls: step.calls },
      ...step.calls.map(
        (call): ModelMessage => ({
          role: 'tool',
          callId: call.id,
          content: cutWithMarker(results.get(call.id) ?? INTERRUPTED, resultChars, 'history-max-chars'),
        }),
      ),
    ];
  });
}

/** About how many tokens messages take in a request. */
export function tokensOf(messages: ModelMessage[]): number {
  return messages.reduce((sum, message) => {
    const calls =
      message.role === 'assistant' ? message.calls.map((call) => call.name + call.arguments).join() : '';
    const images = message.role === 'user' ? (message.images?.length ?? 0) * TOKENS_PER_IMAGE : 0;
    return sum + estimateTokens(message.content) + estimateTokens(calls) + images + 4;
  }, 0);
}

/** `<user_message sender="NAME" at="TIME">…</user_message>`: somebody's words and nothing else. */
export function userLine(message: StoredMessage, view: View): string {
  const sender = message.author.kind === 'person' ? message.author.name : view.nameOf(message.author.id);
  const at = view.zone.time(message.sentAt);
  const quoted = message.replyTo
    ? `[in reply to ${message.replyTo.senderName}: ${quote(message.replyTo.text)}]\n`
    : '';
  const edited = message.edited ? '[changed an earlier message to] ' : '';
  return `<user_message sender="${attribute(sender)}" at="${at}">${escaped(quoted + edited + message.text)}</user_message>`;
}

const QUOTE_CHARS = 500;

function quote(words: string): string {
  const line = words.replaceAll(/\s+/g, ' ').trim();
  return line.length <= QUOTE_CHARS ? line : `${cutAt(line, QUOTE_CHARS)} [quote shortened]`;
}

/** `&`, `<` and `>` as entities, so that nothing said can end the block it stands in. */
export function escaped(words: string): string {
  return words.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

function attribute(words: string): string {
  return escaped(words)
    .replaceAll('"', '&quot;')
    .replaceAll(/[\r\n]+/g, ' ');
}
