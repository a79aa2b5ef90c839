/** The lines of memory behind a persona's last answer, and the source of each. */
import { type PersonaId, roomParts } from '../../core/ids.js';
import type { PromptMemory, Tier, Version } from '../../core/memory.js';
import { functionWordsIn } from '../../core/phrase.js';
import { type Step, type StoredMessage, wordsBy } from '../../core/transcript.js';
import { code, oneLine } from '../quoting.js';
import type { Services } from '../services.js';
import { calledIn, readArguments } from '../turn/steps.js';

export type GivenLine = RememberedLine | OtherLine;

interface RememberedLine {
  kind: 'remembered';
  /** As in `Version`. */
  file: string;
  /** null in the daily log, and for text outside the tiers. */
  tier: Tier | null;
  text: string;
  /** The budget cut the text in or right after this line. */
  cut: boolean;
}

interface OtherLine {
  kind: 'recalled' | 'summary' | 'found';
  /** For recalled and found lines, includes author and time, or the file. */
  text: string;
  /** For `found`: the query. */
  query: string;
}

/** The tool whose results reach the model as lines. */
const SEARCH = 'search_memory';
const MARKER = /^<<truncated due to [a-z-]+=\d+>>$/;
const FENCE = /^(?:`{3,}|~{3,})/;
const SAYS_SOMETHING = /[\p{L}\p{N}\p{Extended_Pictographic}]/u;

/** In the order of the prompt; `steps`: those of the answer's turn. */
export function givenLines(given: PromptMemory, steps: Step[], personaId: PersonaId): GivenLine[] {
  return [
    ...memoryLines(given.memory, `${personaId}/MEMORY.md`),
    ...dailyLines(given.dailyLog),
    ...otherLines('recalled', given.recalled),
    ...otherLines('summary', given.summary),
    ...foundLines(steps),
  ];
}

function memoryLines(memory: string, file: string): RememberedLine[] {
  let tier: Tier | null = null;
  return collect(memory, (line) => {
    const heading = /^(#{1,6})(?:\s+(.*))?$/.exec(line);
    if (!heading) return { file, tier };
    if ((heading[1] ?? '').length > 2) return null;
    const number = /^tier\s*([123])(?!\d)/i.exec(heading[2] ?? '')?.[1];
    tier = number === undefined ? null : (Number(number) as Tier);
    return null;
  });
}

function dailyLines(dailyLog: string): RememberedLine[] {
  let file = '';
  return collect(dailyLog, (line) => {
    const date = /^--- (\d{4}-\d{2}-\d{2}) ---$/.exec(line)?.[1];
    if (date === undefined) return { file, tier: null };
    file = `memory/${date}.md`;
    return null;
  });
}

/** `placeOf`: the place of a line, or null for a heading. */
function collect(
  text: string,
  placeOf: (line: string) => { file: string; tier: Tier | null } | null,
): RememberedLine[] {
  const lines: RememberedLine[] = [];
  for (const line of trimmedLines(text)) {
    const last = lines.at(-1);
    if (MARKER.test(line) && last) last.cut = true;
    const place = isContent(line) ? placeOf(line) : null;
    if (place) lines.push({ kind: 'remembered', ...place, text: line, cut: false });
  }
  return lines;
}

function otherLines(kind: OtherLine['kind'], text: string, query = ''): OtherLine[] {
  return trimmedLines(text)
    .filter((line) => isContent(line) && !/^#{1,6}\s/.test(line))
    .map((line) => ({ kind, text: line, query }));
}

function foundLines(steps: Step[]): OtherLine[] {
  return calledIn(steps).flatMap(({ id, name, arguments: given }) => {
    const result = steps.find((step) => step.kind === 'result' && step.callId === id);
    if (name !== SEARCH || result?.kind !== 'result' || result.failed) return [];
    // `/memory forget` may have left invalid JSON.
    const read = readArguments(given);
    const query = typeof read === 'object' && typeof read.query === 'string' ? read.query : '';
    return otherLines('found', result.content, query).filter(({ text }) => text.startsWith('- '));
  });
}

function trimmedLines(text: string): string[] {
  return text.split(/\r\n|\n|\r/).map((line) => line.trim());
}

function isContent(line: string): boolean {
  return !MARKER.test(line) && !FENCE.test(line) && SAYS_SOMETHING.test(line);
}

/** The version that added a line; undefined if none. `versions`: newest first. */
export function broughtBy(line: Omit<RememberedLine, 'kind'>, versions: Version[]): Version | undefined {
  return versions.find(
    ({ file, tier, before, after }) =>
      file === line.file && tier === line.tier && stands(line, after) && !stands(line, before),
  );
}

/** Splits nothing, because it is called for every line and every version. */
function stands({ text: line, cut }: Omit<RememberedLine, 'kind'>, text: string): boolean {
  for (let at = text.indexOf(line), end = 0; at >= 0; at = end < 0 ? -1 : text.indexOf(line, end + 1)) {
    end = text.indexOf('\n', at);
    const whole = text.slice(text.lastIndexOf('\n', at) + 1, end < 0 ? undefined : end).trim();
    if (cut ? whole.startsWith(line) : whole === line) return true;
  }
  return false;
}

/** Whether a current line of this tier was written after reading untrusted text. */
export function holdsOutside(versions: Version[], file: string, tier: Tier, text: string): boolean {
  const lines = trimmedLines(text).filter((line) => line !== '');
  return lines.some((line) => broughtBy({ file, tier, text: line, cut: false }, versions)?.cause.tainted);
}

const QUOTE_CHARS = 80;
const NAME_CHARS = 60;

/** Who said what led to a memory change, and when; of several messages, quotes the one most similar to `about`. */
export async function sourceOf(services: Services, version: Version, about: string): Promise<string> {
  const source = await whence(services, version, about);
  return version.cause.tainted ? `${source} (written after reading untrusted text)` : source;
}

async function whence({ store, zone }: Services, version: Version, about: string): Promise<string> {
  const noted = `noted ${zone.time(version.at)}`;
  const { kind, turnId, personaId } = version.cause;
  if (kind === 'flush') return `${noted}, during a memory flush`;
  if (kind === 'owner') return `${noted}, by an owner on the page`;
  if (kind === 'night') return `${noted}, during the nightly consolidation`;
  const message = closest(turnId === null ? [] : await store.messages({ turnId }), about);
  if (!message) return `${noted}; the conversation is no longer kept`;
  // A control chat can write to other chats' memory, but its messages are not for them.
  if (roomParts(message.room).chatId !== version.chatId) return `${noted}, from another chat`;
  const { resetAt } = await store.view(message.room, personaId);
  if (message.id <= resetAt) return `${noted}, in a conversation that was reset since`;
  const quote = code(oneLine(message.text, QUOTE_CHARS));
  return `from ${oneLine(wordsBy(message), NAME_CHARS)}, ${zone.time(message.sentAt)}: ${quote}`;
}

function closest(messages: StoredMessage[], about: string): StoredMessage | undefined {
  const wordsOf = wordFinder();
  const wanted = wordsOf(about);
  return messages
    .filter(({ text }) => text.trim() !== '')
    .map((message) => ({ message, score: sharedWords(wanted, wordsOf(message.text)).length }))
    .sort((a, b) => b.score - a.score)[0]?.message;
}

/** Alphabets in which words of one or two letters seldom carry meaning. */
const ALPHABET = /\p{Script=Latin}|\p{Script=Greek}|\p{Script=Cyrillic}|\p{Script=Arabic}|\p{Script=Hebrew}/u;

/** Finds a text's words by Unicode rules (by dictionary in scripts without spaces), without function words. */
export function wordFinder(): (text: string) => Set<string> {
  const segmenter = new Intl.Segmenter('en', { granularity: 'word' });
  return (text) => {
    const segments = [...segmenter.segment(text.normalize('NFKC').toLowerCase())];
    const words = segments.filter(({ isWordLike }) => isWordLike).map(({ segment }) => segment);
    const isFunction = functionWordsIn(words);
    const isLong = (word: string) => Array.from(word).length >= (ALPHABET.test(word) ? 3 : 2);
    return new Set(words.filter((word) => isLong(word) && !isFunction(word)));
  };
}

export function sharedWords(words: Set<string>, others: Set<string>): string[] {
  return [...words].filter((word) => others.has(word));
}
