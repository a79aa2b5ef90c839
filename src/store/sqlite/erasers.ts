/**
 * Removes a phrase from the text of a row in whatever format it is stored: plain text, our own JSON (only the fields
 * that hold text), and what models and tools wrote, which is often JSON, too.
 */
import type { Part } from '../../core/channel.js';
import type { ShownPart } from '../../core/delivery.js';
import type { StoredAttachment } from '../../core/media.js';
import type { Phrase } from '../../core/phrase.js';
import type { Step, StoredReply } from '../../core/transcript.js';

/** The phrase to remove, and its replacement. */
export interface Eraser {
  instead: string;
  isIn(words: string): boolean;
  /** The identical string if the phrase does not occur. */
  without(words: string): string;
}

/** Removes the phrase from one column's text; the identical string if it does not occur. */
export type Clean = (source: string, eraser: Eraser) => string;

/** Removing a phrase may join the text around it into the phrase again; more than one repetition is rare. */
const MOST_PASSES = 20;

export function eraserOf(phrase: Phrase, by: string): Eraser {
  const instead = phrase.isIn(by) ? '' : by;
  return {
    instead,
    isIn: (words) => phrase.isIn(words),
    without(words) {
      let rest = words;
      for (let pass = 0; phrase.isIn(rest); pass++) {
        rest = phrase.replacedIn(rest, pass < MOST_PASSES ? instead : '');
      }
      return rest;
    },
  };
}

export const fromText: Clean = (source, eraser) => eraser.without(source);

export const fromReply = json<StoredReply>((reply, eraser) => ({
  ...reply,
  text: eraser.without(reply.text),
}));

export const fromAttachments = json<StoredAttachment[]>((attachments, eraser) =>
  attachments.map((attachment) => {
    const name = attachment.name === null ? null : eraser.without(attachment.name);
    const { outcome } = attachment;
    if (outcome?.kind !== 'kept' || outcome.read === undefined) return { ...attachment, name };
    return { ...attachment, name, outcome: { ...outcome, read: eraser.without(outcome.read) } };
  }),
);

export const fromPart = json<Part>(withoutInPart);

export const fromShown = json<ShownPart[]>((parts, eraser) =>
  parts.map((part) => ({ ...part, body: withoutInPart(part.body, eraser) })),
);

function withoutInPart(part: Part, eraser: Eraser): Part {
  const text = eraser.without(part.text);
  const inLink = part.marks.some((mark) => mark.kind === 'link' && eraser.isIn(mark.url));
  // Marks are offsets into the text, so they are void when it changes.
  const cleaned = { ...part, text, marks: inLink || text !== part.text ? [] : part.marks };
  if (part.note !== undefined) cleaned.note = eraser.without(part.text.slice(0, part.note)).length;
  return cleaned;
}

export const fromStep = json<Step>((step, eraser) => {
  switch (step.kind) {
    case 'answer': {
      const { echo, ...rest } = step;
      return {
        ...rest,
        text: eraser.without(step.text),
        calls: step.calls.map((call) => ({ ...call, arguments: fromForeign(call.arguments, eraser) })),
        // Whole or not at all: a server takes back only what it gave.
        ...(echo !== undefined && fromValue(echo, eraser) === echo && { echo }),
      };
    }
    case 'call':
    case 'waiting':
      return step;
    case 'result':
      return { ...step, content: fromForeign(step.content, eraser) };
  }
});

/** Our own JSON, as `JSON.stringify` wrote it: without a change, the result is identical. */
function json<T>(clean: (value: T, eraser: Eraser) => T): Clean {
  return (source, eraser) => JSON.stringify(clean(JSON.parse(source), eraser));
}

/** Text written by others. In JSON, the phrase may be escaped, or be a key or a number. */
function fromForeign(words: string, eraser: Eraser): string {
  const value = asJson(words);
  if (value !== undefined) {
    const without = fromValue(value, eraser);
    return eraser.without(without === value ? words : JSON.stringify(without));
  }
  const rest = eraser.without(words);
  // Broken or quoted JSON that cannot be parsed is replaced as a whole.
  return rest.includes('\\') && eraser.isIn(withoutEscapes(rest)) ? eraser.instead : rest;
}

/** The identical value if the phrase does not occur. */
function fromValue(value: unknown, eraser: Eraser): unknown {
  if (typeof value === 'string') return fromForeign(value, eraser);
  if (Array.isArray(value)) {
    const items = value.map((item) => fromValue(item, eraser));
    return items.some((item, n) => item !== value[n]) ? items : value;
  }
  if (typeof value === 'object' && value !== null) {
    const entries = Object.entries(value);
    const without = entries.map(([key, item]) => [eraser.without(key), fromValue(item, eraser)] as const);
    const same = entries.every(([key, item], n) => without[n]?.[0] === key && without[n][1] === item);
    return same ? value : Object.fromEntries(without);
  }
  return eraser.isIn(String(value)) ? eraser.instead : value;
}

function asJson(words: string): object | undefined {
  if (!/^\s*[[{]/.test(words)) return undefined;
  try {
    const value: unknown = JSON.parse(words);
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Resolves `\n`, `\"` and `\u00e9`, even if escaped several times. */
function withoutEscapes(words: string): string {
  return words.replaceAll(
    /\\+(?:u([0-9a-f]{4})|([nrtbf])|)/gi,
    (_, code: string | undefined, blank: string | undefined) => {
      if (code !== undefined) return String.fromCharCode(Number.parseInt(code, 16));
      return blank === undefined ? '' : ' ';
    },
  );
}
