/**
 * Step 4 of the route: automatic recall of a few earlier lines for a turn, searched by the words of the batch. The form of a
 * message (question, remark, small talk) decides how relevant a line must be.
 */
import { describe } from '../../core/errors.js';
import { functionWordsIn, languagesOf, withoutUnspacedFrames } from '../../core/phrase.js';
import { isFromOutside, type RecallMoment, recalledLine, type Scope } from '../../core/recall.js';
import type { StoredMessage } from '../../core/transcript.js';
import type { Services } from '../services.js';
import { FORMS, type Form, UNSPACED_FORMS } from './forms.js';

/** All lines together, in characters. */
const BUDGET = 3_000;
const MOST_LINES = 8;
/** More than needed, because some hits are skipped. */
const MOST_HITS = 2 * MOST_LINES;
/**
 * Minimum relevance; lines below it distract more than they help. Low for a question, because forgetting is worse than a
 * superfluous line; high for a remark, which needs no memories. docs/recall.md has the figures.
 */
const FLOORS: Record<Exclude<MessageForm, 'small talk'>, number> = {
  question: 0.2,
  perhaps: 0.35,
  remark: 0.9,
  /** Memories do not help with the present moment. */
  moment: Number.POSITIVE_INFINITY,
};
/** Number of hits about rarely mentioned things recalled even below the floor. */
const MOST_RARE = 2;
/** A question gets its best hits even below the floor, down to this. */
const LEAST = 0.02;
/** As a share of the best hit's relevance. */
const NEAR_BEST = 0.5;
/** The beginning of a long text usually says what it is about. */
const QUERY_CHARS = 2_000;
/** How much of the preceding messages is searched with a question that continues from them. */
const BEFORE_MESSAGES = 3;
const BEFORE_CHARS = 300;

export interface Recollection {
  lines: string[];
  /** Some of them are untrusted. */
  isFromOutside: boolean;
}

const NOTHING: Recollection = { lines: [], isFromOutside: false };

/**
 * Returns the lines in order of time; empty if nothing relevant was found. An error in recall never prevents a reply. `before`: the
 * messages before the batch, oldest first; `shown`: the memory already in the prompt.
 */
export async function recollect(
  { recall, zone, log }: Services,
  scope: Scope,
  batch: StoredMessage[],
  before: readonly StoredMessage[],
  shown: string,
  query: RecallMoment,
): Promise<Recollection> {
  const text = batch
    .map((message) => message.text)
    .join('\n')
    .slice(0, QUERY_CHARS);
  if (text.trim() === '') return NOTHING;
  try {
    const asking = batch.map((message) => formOf(message.text)).reduce(likelier);
    if (asking === 'small talk') return NOTHING;
    const around = asking === 'question' && goesOn(text) ? lastOf(before) : '';
    const { hits } = await recall.search(scope, {
      ...query,
      text,
      limit: MOST_HITS,
      ...(around === '' ? {} : { around }),
    });
    const asked = new Set(batch.map((message) => wordsOf(message.text)));
    const best = hits.reduce((most, { relevance }) => Math.max(most, relevance), 0);
    const floor =
      asking === 'question' ? Math.min(FLOORS.question, Math.max(LEAST, best * NEAR_BEST)) : FLOORS[asking];
    const chosen = new Set<string>();
    const lines: { at: number; line: string }[] = [];
    let chars = 0;
    let rare = 0;
    let outside = false;
    for (const hit of hits) {
      // Skips earlier copies of the same question: the answer is wanted, not the question.
      const tellsNothing =
        hit.source.kind === 'file' ? shown.includes(hit.text.trim()) : asked.has(wordsOf(hit.text));
      const isBelow = hit.relevance < floor;
      if (tellsNothing || (isBelow && (hit.rare !== true || rare >= MOST_RARE))) continue;
      if (isBelow) rare++;
      // An answer needs its question to be understood.
      const answered =
        hit.answers !== undefined && !asked.has(wordsOf(hit.answers.text)) ? [hit.answers] : [];
      const told = [...answered, hit].filter((each) => !chosen.has(recalledLine(each, zone)));
      const length = told.reduce((sum, each) => sum + recalledLine(each, zone).length + 1, 0);
      if (chars + length > BUDGET || lines.length + told.length > MOST_LINES) continue;
      chars += length;
      outside ||= told.some(isFromOutside);
      for (const each of told) {
        const line = recalledLine(each, zone);
        chosen.add(line);
        lines.push({ at: each.at ?? 0, line });
      }
      if (lines.length === MOST_LINES) break;
    }
    const inOrder = lines.sort((a, b) => a.at - b.at).map(({ line }) => line);
    return { lines: inOrder, isFromOutside: outside };
  } catch (error) {
    log.error({ ...scope, why: describe(error) }, 'recall failed; answering without');
    return NOTHING;
  }
}

function likelier(a: MessageForm, b: MessageForm): MessageForm {
  if (a === 'small talk' || b === 'small talk') return a === 'small talk' ? b : a;
  return FLOORS[a] < FLOORS[b] ? a : b;
}

function lastOf(before: readonly StoredMessage[]): string {
  return before
    .slice(-BEFORE_MESSAGES)
    .map(({ text }) => text.slice(0, BEFORE_CHARS))
    .join('\n');
}

/** The words alone, lower-case, without extra spaces and punctuation. */
function wordsOf(text: string): string {
  return text
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}]+/gu, ' ')
    .trim();
}

/**
 * `question`: asks for something that somebody may have said. `perhaps`: has a question mark but is hard to classify. `moment`:
 * about the persona or the present. `small talk`: greetings and the like. `remark`: anything else.
 */
export type MessageForm = 'question' | 'perhaps' | 'remark' | 'moment' | 'small talk';

const RUN = /[\p{L}\p{M}]+/gu;
const UNSPACED = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Hangul}]/u;
const MARK = /[?？؟¿]/;

export function formOf(message: string): MessageForm {
  const text = plainly(message);
  const has = kindsIn(text);
  if (has('told')) return 'question';
  if (!has('own') && (has('phatic') || has('moment')) && !hasContent(text)) return 'small talk';
  // Without a question mark, only text that begins like a question or asks about the speaker's own affairs early ("c'est quand mon
  // train"), unlike "You won't believe how tired I am".
  const opening = runsOf(text.split(/[,.;:!]/, 1)[0] ?? '').slice(0, OPENING_WORDS);
  const asksOfOwn = has('own') && kindsIn(opening.join(' '))('asks');
  const isClear =
    UNSPACED.test(text) || asksOfOwn || (opensWith(text, 'asks') && !opensWith(text, 'exclaims'));
  const asks = has('asks') && (MARK.test(text) || isClear);
  if (has('moment') && !has('own')) return 'moment';
  if (asks) return 'question';
  if (!MARK.test(text)) return 'remark';
  return has('own') ? 'question' : 'perhaps';
}

/** A question without a mark has its question word among these. */
const OPENING_WORDS = 3;

/** Below this length a question does not say what it is about. */
const SHORT_WORDS = 5;
const SHORT_CHARS = 10;

/** Whether a message can only be understood with what was said before it. */
export function goesOn(message: string): boolean {
  const text = plainly(message);
  if (kindsIn(text)('them') || opensWith(text, 'and')) return true;
  return UNSPACED.test(text) && !/\s/.test(text)
    ? [...text].length <= SHORT_CHARS
    : text.split(/\s+/).length <= SHORT_WORDS;
}

function plainly(message: string): string {
  return message.trim().normalize('NFKC').replaceAll('’', "'").toLowerCase();
}

function runsOf(text: string): string[] {
  return text.match(RUN) ?? [];
}

function kindsIn(text: string): (kind: Form) => boolean {
  const runs = runsOf(text);
  const isOf = formsOf(runs);
  return (kind) =>
    runs.some((run) => isOf(run, kind)) || UNSPACED_FORMS[kind].some((part) => text.includes(part));
}

/** A message without a known function word can be in any language. */
function formsOf(runs: string[]): (run: string, kind: Form) => boolean {
  const spoken = languagesOf(runs);
  const forms = Object.entries(FORMS).filter(
    ([language]) => spoken.length === 0 || spoken.some((each) => each === language),
  );
  return (run, kind) => forms.some(([, form]) => form[kind].has(run));
}

/** Tests the first word after greetings and conjunctions. */
function opensWith(text: string, kind: Form): boolean {
  const runs = runsOf(text);
  const isOf = formsOf(runs);
  const opening = kind === 'and' ? runs[0] : runs.find((run) => !isOf(run, 'and') && !isOf(run, 'phatic'));
  if (opening === undefined) return false;
  if (kind !== 'exclaims')
    return isOf(opening, kind) || UNSPACED_FORMS[kind].some((part) => text.startsWith(part));
  // "What a day", "was für ein Tag", "quelle belle journée": it takes one or two words, depending on the language.
  const next = runs[runs.indexOf(opening) + 1] ?? '';
  return isOf(`${opening} ${next}`, kind) || isOf(opening, kind);
}

/** Whether a word is left that says what the message is about. */
function hasContent(text: string): boolean {
  if (UNSPACED.test(text)) {
    const parts = [...UNSPACED_FORMS.phatic, ...UNSPACED_FORMS.moment].sort((a, b) => b.length - a.length);
    const rest = parts.reduce((left, part) => left.replaceAll(part, ' '), text);
    return /[\p{sc=Han}\p{sc=Katakana}\p{sc=Hangul}]/u.test(withoutUnspacedFrames(rest));
  }
  const runs = runsOf(text);
  const isFunction = functionWordsIn(runs);
  const isOf = formsOf(runs);
  return runs.some(
    (run) => run.length > 1 && !isFunction(run) && !isOf(run, 'phatic') && !isOf(run, 'moment'),
  );
}
