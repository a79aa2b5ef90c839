/**
 * Where words in a prompt come from. One rule: whatever text a model is shown has come in by one of the ways below, and has
 * an origin. A request that shows one piece from outside is tainted (`conversation/turn/taint.ts` says what follows), and so is
 * what a model says or writes while it sees one. Files that prompts show keep that line by line: `Origins`. Below it: the
 * elements that fence such words in a prompt.
 */
import { createHash } from 'node:crypto';
import { piecesOf } from './cut.js';
import type { ChatId } from './ids.js';
import { lookOf } from './likeness.js';

/** `outside`: a page, a file, a picture, a server's answer, a stranger, another chat, or what a model wrote after reading such. */
export type Origin = 'inside' | 'outside';

/** Every way in, and what says where such text comes from. `test/conversation/origins.test.ts` has a case for each. */
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

/** One of the texts that a prompt is made of. */
export interface PromptPiece {
  way: WayIn;
  text: string;
  origin: Origin;
}

/** The rule for a whole: one piece decides. */
export function originOf(pieces: readonly Pick<PromptPiece, 'origin'>[]): Origin {
  return pieces.some(({ origin }) => origin === 'outside') ? 'outside' : 'inside';
}

/** What files of chats, personas and agents keep of it. `file`: its path below the folder of all data, as `groups/test_1/luna/MEMORY.md`. */
export interface Origins {
  /** These lines are from outside as long as they stand in the file; null: all of it, for good. */
  markOutside(file: string, lines: readonly string[] | null): Promise<void>;
  /** Of a text that stands in the file now, which is asked for only where anything in the file is marked. */
  originIn(file: string, text: () => string | Promise<string>): Promise<Origin>;
}

/** Files that prompts show and tools can write: what is written while words from outside are in sight is marked there. */
export interface PromptFiles {
  /** Runs what may write, and marks the lines that it has brought. `agent`: whose spaces it may write, too. */
  watched<Result>(
    agent: { id: string; chatId: ChatId } | null,
    write: () => Promise<Result>,
  ): Promise<Result>;
}

/** A file of a chat's memory, as `Origins` names it; `file` as in `Version`. */
export function memoryPath(chatId: ChatId, file: string): string {
  return `groups/${chatId}/${file}`;
}

/** A file below `data/workspace`. */
export function workspacePath(file: string): string {
  return `workspace/${file}`;
}

/** A file of one of an agent's spaces; `chatId`: null for the shared one. */
export function spacePath(agent: string, chatId: ChatId | null, file: string): string {
  return `agents/${agent}/${chatId === null ? 'internal_space' : `chats/${chatId}`}/${file}`;
}

/** By a longer piece no line is known: a prompt may show only the beginning of it. */
const KNOWN_BY_CHARS = 80;
/** Indents, bullets, marks of headings and quotes. */
const BEFORE_WORDS = /^[^\p{L}\p{N}\p{Extended_Pictographic}]+/u;

/** What a line is known by, wherever it stands in its file and however it is indented; null: it says nothing. */
export function lineKey(line: string): string | null {
  const words = line.replace(BEFORE_WORDS, '').slice(0, KNOWN_BY_CHARS).trim();
  if (words === '') return null;
  return createHash('sha256').update(words).digest('base64url').slice(0, 22);
}

/** The same, with those of the pieces in which it is searched. */
export function lineKeys(line: string): string[] {
  return [line, ...piecesOf(line)].flatMap((piece) => lineKey(piece) ?? []);
}

export function linesOfText(text: string): string[] {
  return text.split(/\r\n|\n|\r/);
}

/** The lines that a change has brought. */
export function addedLines(before: string, after: string): string[] {
  const known = new Set(linesOfText(before).map((line) => line.trim()));
  return linesOfText(after).filter((line) => !known.has(line.trim()));
}

/** What is added to a note of one line that outlives the turn, in which it can be seen where it came from. */
const NOTE = '[written after reading words from outside]';

export function noted(line: string, origin: Origin): string {
  return origin === 'outside' ? `${line} ${NOTE}` : line;
}

/** Of a text that holds such notes. */
export function originOfNotes(text: string): Origin {
  return text.includes(NOTE) ? 'outside' : 'inside';
}

// The elements in which the gateway shows a model what people, models, files and tools said, and what keeps that text from
// opening or closing one: such a `<` becomes an entity. Everything else stands as it was written, so that code reaches the
// model as code. Whatever the gateway did not write itself stands in an element (or a fence, `fenced`): nothing
// outside of them is anybody's words.

/** Every element that appears in a prompt. */
const NAMES = [
  'user_message',
  'forwarded',
  'in_reply_to',
  'event',
  'task_completed',
  'recalled',
  'memory_now',
  'summary',
  'summary_so_far',
  'conversation',
  'own_message',
  'first_message',
  'tool_result',
  'possible_speaker',
] as const;

type ElementName = (typeof NAMES)[number];

/** The attribute of an element that holds words from outside. */
export const UNTRUSTED = { untrusted: 'yes' };

/** What opens a tag, and what it becomes: its forms of other widths look the same. */
const ENTITIES: Record<string, string> = { '<': '&lt;', '＜': '&#xFF1C;', '﹤': '&#xFE64;' };
const SIGNS = new Map(Object.entries(ENTITIES).map(([sign, entity]) => [entity, sign]));
const OPENING = /[<＜﹤]/gu;
const OPENING_ENTITY = /&(?:lt|#xFF1C|#xFE64);/gu;

/** `attributes` in order; `words` is escaped here. */
export function element(name: ElementName, attributes: Record<string, string>, words: string): string {
  return elementAround(name, attributes, escaped(words));
}

/** One whose text stands on lines of its own. */
export function block(name: ElementName, words: string, attributes: Record<string, string> = {}): string {
  return elementAround(name, attributes, `\n${escaped(words)}\n`);
}

/** One that holds others: `inside` was made by `element`. */
export function elementAround(name: ElementName, attributes: Record<string, string>, inside: string): string {
  const own = Object.entries(attributes).map(([key, value]) => ` ${key}="${nameInPrompt(value)}"`);
  return `<${name}${own.join('')}>${inside}</${name}>`;
}

/** A text that stands inside one of the elements. */
export function escaped(words: string): string {
  return words.replaceAll(OPENING, (sign, at: number) =>
    readsAsTag(words, at + sign.length) ? (ENTITIES[sign] ?? sign) : sign,
  );
}

/** The text as it was written; the inverse of `escaped` but for a text that contained such an entity already. */
export function unescaped(words: string): string {
  return words.replaceAll(OPENING_ENTITY, (entity, at: number) =>
    readsAsTag(words, at + entity.length) ? (SIGNS.get(entity) ?? entity) : entity,
  );
}

/** What a model writes anew of a text that it was shown: lines of it as they were before `escaped`, others by `unescaped`. */
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

/** Somebody's or something's name, in an attribute or a sentence: one line that opens and closes nothing. */
export function nameInPrompt(name: string): string {
  return escaped(name)
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll(/[\p{Zl}\p{Zp}\p{Cc}]+/gu, ' ');
}

const LOOKS = NAMES.map(lookOf);
/** What may stand between the sign and the name, for a reader who is as lenient as a model. */
const BEFORE_NAME = /[\s\p{C}\p{M}\p{DI}/\\／∕⁄⧸]/u;
const UNSEEN = /\p{C}/u;
const OF_NAME = /^[\p{L}\p{N}_.:-]/u;

/**
 * Whether what follows a `<` reads as the name of an element: capitals, signs that nobody sees and letters that look like
 * its own make no difference.
 */
function readsAsTag(text: string, from: number): boolean {
  let look = '';
  for (let at = from; at < text.length; ) {
    const character = String.fromCodePoint(text.codePointAt(at) ?? 0);
    at += character.length;
    if (look === '' && BEFORE_NAME.test(character)) continue;
    const seen = UNSEEN.test(character) ? '' : lookOf(character.toLowerCase());
    if (!OF_NAME.test(seen)) {
      // The name ends here; or it goes on behind what nobody sees.
      if (LOOKS.includes(look)) return true;
      if (seen !== '') return false;
    }
    look += seen;
    if (!LOOKS.some((name) => name.startsWith(look))) return false;
  }
  return LOOKS.includes(look);
}

/** Text of files in a prompt: in a fence longer than any fence inside it, so that the text cannot end its own block, nor begin an element. */
export function fenced(text: string): string {
  const longest = Math.max(2, ...Array.from(text.matchAll(/`+/g), (run) => run[0].length));
  const fence = '`'.repeat(longest + 1);
  return `${fence}text\n${escaped(text)}\n${fence}`;
}
