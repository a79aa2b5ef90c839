/** The origin of words in a prompt: one untrusted piece taints the request. And the elements that fence such words. */
import type { ChatId } from './ids.js';
import { lookOf } from './likeness.js';

/** `outside` (untrusted): from a page, file, server, stranger or other chat, or written by a model after it. */
export type Origin = 'inside' | 'outside';

/** `test/conversation/origins.test.ts` covers each. */
export const WAYS_IN = {
  frame: 'inside: the gateway, the operator’s files (principles, personas) and the names of this chat',
  tools: 'inside: descriptions, also of servers that the operator configured',
  skills: 'inside: the operator installed them',
  memory: 'marked lines of MEMORY.md, read whole, and of the days that are shown',
  workspace: 'marked lines of its files',
  clipboard: 'items that say so',
  summary: 'the view: tainted if anything was that has left the window',
  message: 'the message: tainted when it was received, or when its files were read',
  quote: 'the message that is quoted; outside where nobody here has heard it in a group',
  reaction: 'its sender, as for a message',
  picture: 'outside, as a document is',
  reply: 'the turn that said it',
  event: 'what is told: a digest is outside, a schedule and a task as those who gave them',
  recalled: 'the message, or marked lines of the file',
  result: 'its tool (`isFromOutside`), or what the tool has read (`outside`)',
  request: 'of an agent: who gave the task, and marked lines of what it is shown',
} as const;

export type WayIn = keyof typeof WAYS_IN;

export interface PromptPiece {
  way: WayIn;
  text: string;
  origin: Origin;
}

export function originOf(pieces: readonly { origin: Origin }[]): Origin {
  return pieces.some(({ origin }) => origin === 'outside') ? 'outside' : 'inside';
}

/** Untrusted lines in files, by their path below the data folder: `groups/test_1/luna/MEMORY.md`. */
export interface Origins {
  /** While the lines are in the file; null: the whole file, permanently. */
  markOutside(file: string, lines: readonly string[] | null): Promise<void>;
  /** Calls `text` only if the file has marks. */
  originIn(file: string, text: () => string | Promise<string>): Promise<Origin>;
}

export interface PromptFiles {
  /** Runs `write` and marks the lines that it added. `agent`: also watches this agent's spaces. */
  watched<Result>(
    agent: { id: string; chatId: ChatId } | null,
    write: () => Promise<Result>,
  ): Promise<Result>;
}

export function memoryPath(chatId: ChatId, file: string): string {
  return `groups/${chatId}/${file}`;
}

const IMPORTED = /^groups\/[^/]+\/archive\/[^/]*\.imported-[0-9a-f]+\.md$/;

/** By its name (groups/archives.ts), which outlives the database: a history from elsewhere, full of words of anybody. */
export function isImported(path: string): boolean {
  return IMPORTED.test(path);
}

export function workspacePath(file: string): string {
  return `workspace/${file}`;
}

/** `chatId` null: the shared space. */
export function spacePath(agent: string, chatId: ChatId | null, file: string): string {
  return `agents/${agent}/${chatId === null ? 'internal_space' : `chats/${chatId}`}/${file}`;
}

/** Appended to notes that outlive the turn. */
const NOTE = '[written after reading words from outside]';

export function noted(line: string, origin: Origin): string {
  return origin === 'outside' ? `${line} ${NOTE}` : line;
}

export function originOfNotes(text: string): Origin {
  return text.includes(NOTE) ? 'outside' : 'inside';
}

// Elements show a model the words of people, models, files and tools. A `<` that would open or close one becomes an
// entity; all else stays as written. Text not written by the gateway is always in an element or a fence.

const NAMES = [
  'user_message',
  'forwarded',
  'in_reply_to',
  'event',
  'task_completed',
  'recalled',
  'memory_now',
  'lore',
  'scene',
  'people',
  'reminder',
  'note',
  'summary',
  'summary_so_far',
  'conversation',
  'own_message',
  'first_message',
  'tool_result',
  'possible_speaker',
] as const;

type ElementName = (typeof NAMES)[number];

export const UNTRUSTED = { untrusted: 'yes' };

/** Also full-width and small forms. */
const ENTITIES: Record<string, string> = { '<': '&lt;', '＜': '&#xFF1C;', '﹤': '&#xFE64;' };
const SIGNS = new Map(Object.entries(ENTITIES).map(([sign, entity]) => [entity, sign]));
const OPENING = /[<＜﹤]/gu;
const OPENING_ENTITY = /&(?:lt|#xFF1C|#xFE64);/gu;

export function element(name: ElementName, attributes: Record<string, string>, words: string): string {
  return elementAround(name, attributes, escaped(words));
}

/** On lines of its own. */
export function block(name: ElementName, words: string, attributes: Record<string, string> = {}): string {
  return elementAround(name, attributes, `\n${escaped(words)}\n`);
}

/** `inside` is not escaped. */
export function elementAround(name: ElementName, attributes: Record<string, string>, inside: string): string {
  const own = Object.entries(attributes).map(([key, value]) => ` ${key}="${nameInPrompt(value)}"`);
  return `<${name}${own.join('')}>${inside}</${name}>`;
}

export function escaped(words: string): string {
  return words.replaceAll(OPENING, (sign, at: number) =>
    readsAsTag(words, at + sign.length) ? (ENTITIES[sign] ?? sign) : sign,
  );
}

/** Except for entities in the original text. */
export function unescaped(words: string): string {
  return words.replaceAll(OPENING_ENTITY, (entity, at: number) =>
    readsAsTag(words, at + entity.length) ? (SIGNS.get(entity) ?? entity) : entity,
  );
}

/** A model's rewrite of a text that it was shown: unchanged lines as they were, others `unescaped`. */
export function writtenBack(words: string, original: string): string {
  const lines = original.split('\n');
  const shown = new Map(
    escaped(original)
      .split('\n')
      .map((line, n) => [line, lines[n] ?? '']),
  );
  return words
    .split('\n')
    .map((line) => shown.get(line) ?? unescaped(line))
    .join('\n');
}

/** One line that cannot open or close anything. */
export function nameInPrompt(name: string): string {
  return escaped(name)
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll(/[\p{Zl}\p{Zp}\p{Cc}]+/gu, ' ');
}

const LOOKS = NAMES.map(lookOf);
/** Ignored by a lenient reader, such as a model. */
const BEFORE_NAME = /[\s\p{C}\p{M}\p{DI}/\\／∕⁄⧸]/u;
const UNSEEN = /\p{C}/u;
const OF_NAME = /^[\p{L}\p{N}_.:-]/u;

/** Ignores case, invisible and look-alike characters. */
function readsAsTag(text: string, from: number): boolean {
  let look = '';
  for (let at = from; at < text.length; ) {
    const character = String.fromCodePoint(text.codePointAt(at) ?? 0);
    at += character.length;
    if (look === '' && BEFORE_NAME.test(character)) continue;
    const seen = UNSEEN.test(character) ? '' : lookOf(character.toLowerCase());
    if (!OF_NAME.test(seen)) {
      // The name ends here, or continues after an invisible character.
      if (LOOKS.includes(look)) return true;
      if (seen !== '') return false;
    }
    look += seen;
    if (!LOOKS.some((name) => name.startsWith(look))) return false;
  }
  return LOOKS.includes(look);
}

/** In a fence longer than any in the text. */
export function fenced(text: string): string {
  const longest = Math.max(2, ...Array.from(text.matchAll(/`+/g), (run) => run[0].length));
  const fence = '`'.repeat(longest + 1);
  return `${fence}text\n${escaped(text)}\n${fence}`;
}
