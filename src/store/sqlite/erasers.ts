/**
 * Removes a phrase from the text of a column in whatever format it is stored: plain text, our own JSON (only the fields
 * that hold text), and what models and tools wrote, which is often JSON, too.
 */
import type { Part } from '../../core/channel.js';
import { isNestedDeeper } from '../../core/nesting.js';
import type { Phrase } from '../../core/phrase.js';
import type { TaskRequest } from '../../core/task.js';

/** The phrase to remove, and its replacement. */
export interface Eraser {
  instead: string;
  /** It is only looked for. */
  looksOnly: boolean;
  isIn(words: string): boolean;
  /** The identical string if the phrase does not occur. */
  without(words: string): string;
}

/** Removes the phrase from one column's text; the identical string if it does not occur. */
export type Clean = (source: string, eraser: Eraser) => string;

/** Removing a phrase may join the text around it into the phrase again; more than one repetition is rare. */
const MOST_PASSES = 20;

/** `by`: null to look for the phrase only. */
export function eraserOf(phrase: Phrase, by: string | null): Eraser {
  const instead = by === null || phrase.isIn(by) ? '' : by;
  return {
    instead,
    looksOnly: by === null,
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

export const plain: Clean = (source, eraser) => eraser.without(source);

/** Our own JSON, as `JSON.stringify` wrote it: only the strings under these names are text. */
export function json(fields: Record<string, Clean>): Clean {
  return (source, eraser) =>
    JSON.stringify(JSON.parse(source), (name, value: unknown) => {
      if (typeof value === 'string') return fields[name]?.(value, eraser) ?? value;
      // What a server sent along is partly sealed: nobody can tell whether the phrase is in it, so all of it goes.
      if (name === 'echo' && (!eraser.looksOnly || fromValue(value, eraser) !== value)) return undefined;
      return isPart(value) ? withoutVoidMarks(value, eraser) : value;
    });
}

function isPart(value: unknown): value is Part {
  return typeof value === 'object' && value !== null && 'text' in value && 'marks' in value;
}

/**
 * Marks are offsets into the text, so they are void when it changes; the gateway's note begins elsewhere then. Older
 * versions kept the Markdown of a text beside it (`source`): that goes.
 */
function withoutVoidMarks(part: Part & { source?: string }, eraser: Eraser): Part {
  const { source, ...rest } = part;
  const inLink = part.marks.some((mark) => mark.kind === 'link' && eraser.isIn(mark.url));
  const isTold = inLink || eraser.isIn(part.text) || (source !== undefined && eraser.isIn(source));
  const cleaned: Part = isTold ? { ...rest, marks: [] } : { ...part };
  if (part.note !== undefined) cleaned.note = eraser.without(part.text.slice(0, part.note)).length;
  return cleaned;
}

/** Text written by others. In JSON, the phrase may be escaped, or be a key or a number. */
export const foreign: Clean = (words, eraser) => {
  const value = asJson(words);
  if (value !== undefined) {
    const without = fromValue(value, eraser);
    return eraser.without(without === value ? words : JSON.stringify(without));
  }
  const rest = eraser.without(words);
  // Broken or quoted JSON that cannot be parsed is replaced as a whole.
  return rest.includes('\\') && eraser.isIn(withoutEscapes(rest)) ? eraser.instead : rest;
};

/** The identical value if the phrase does not occur. */
function fromValue(value: unknown, eraser: Eraser): unknown {
  if (typeof value === 'string') return foreign(value, eraser);
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

/** An entry of the journal: what was said and done, but not which tool it was, when, and in which chat. */
export const entryWords: Clean = (source, eraser) => {
  const entry: Record<string, unknown> = JSON.parse(source);
  const { tool, chat_id, ...given } = Object(entry.action);
  const words = { ...entry, ...(entry.action !== undefined && { action: given }) };
  const named = ['content', 'reasoning', 'thought_signature', 'action'].filter((name) => name in entry);
  const without = Object.fromEntries(
    named.map((name) => [name, fromValue(words[name as keyof typeof words], eraser)]),
  );
  if (named.every((name) => without[name] === words[name as keyof typeof words])) return source;
  const action = { tool, ...(chat_id !== undefined && { chat_id }), ...Object(without.action) };
  return JSON.stringify({ ...entry, ...without, ...(entry.action !== undefined && { action }) });
};

/** What a task was asked for. Who said a message and how far a step is are no text. */
export const requestWords: Clean = (source, eraser) => {
  const request: TaskRequest = JSON.parse(source);
  const { viap, memory, plan, ...rest } = request;
  const words = json({ content: plain, goal: plain, title: plain });
  const cleaned = {
    ...JSON.parse(words(JSON.stringify(rest), eraser)),
    plan: typeof plan === 'string' ? plain(plan, eraser) : JSON.parse(words(JSON.stringify(plan), eraser)),
    memory: memory.map((text) => plain(text, eraser)),
    viap: fromValue(viap, eraser),
  };
  return JSON.stringify({ ...request, ...cleaned });
};

export const taskResult: Clean = json({ text: foreign, summary: foreign, title: plain });

function asJson(words: string): object | undefined {
  if (!/^\s*[[{]/.test(words)) return undefined;
  try {
    const value: unknown = JSON.parse(words);
    // What is too deep to be gone through is looked at as a text.
    return typeof value === 'object' && value !== null && !isNestedDeeper(value) ? value : undefined;
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
