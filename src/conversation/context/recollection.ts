/**
 * Step 4 of the route: what a turn recalls automatically, which is a few lines of what was said or noted long ago,
 * found by the words of the batch. They are placed with the batch, so that the long prefix of the prompt stays
 * identical.
 */
import { describe } from '../../core/errors.js';
import { isFromOutside, type RecallQuery, recalledLine, type Scope } from '../../core/recall.js';
import type { StoredMessage } from '../../core/transcript.js';
import type { Services } from '../services.js';
import { type Asking, askingOf, goesOn } from './asking.js';

/** All lines together, in characters. */
const BUDGET = 3_000;
const MOST_LINES = 8;
/** More than needed, because some hits are skipped. */
const MOST_HITS = 2 * MOST_LINES;
/**
 * Minimum relevance; lines below it distract more than they help. Low for a question, because a forgetful persona is
 * worse than a superfluous line; high for a remark, which wants an answer and no memories. docs/recall.md has the figures.
 */
const FLOORS: Record<Exclude<Asking, 'small talk'>, number> = {
  ...{ question: 0.2, perhaps: 0.35, remark: 0.9 },
  /** What is to happen now wants no memories, however much was said of the like. */
  moment: Number.POSITIVE_INFINITY,
};
/** Whatever the form, of a thing that was told once or twice a persona is reminded: this many lines, no flood. */
const MOST_RARE = 2;
/** A plain question gets its best hits even below the floor, down to this: there is nothing better to tell. */
const LEAST = 0.02;
/** Those at least this near to the best. */
const NEAR_BEST = 0.5;
/** The query is limited to the beginning of a long text, which usually says what it is about. */
const QUERY_CHARS = 2_000;
/** How much of what was said just before is searched with a question that goes on from it. */
const BEFORE_MESSAGES = 3;
const BEFORE_CHARS = 300;

export interface Recollection {
  lines: string[];
  /** Words from outside are among them. */
  isFromOutside: boolean;
}

const NOTHING: Recollection = { lines: [], isFromOutside: false };

/** The lines, in order of time; empty when nothing relevant was found. An error in recall never prevents a reply. */
export async function recollect(
  { recall, zone, log }: Pick<Services, 'recall' | 'zone' | 'log'>,
  scope: Scope,
  batch: StoredMessage[],
  ask: Pick<RecallQuery, 'now' | 'except'> & {
    /** The memory that the prompt contains anyway. */
    shown: string;
    /** What was said just before the batch, oldest first. */
    before: readonly Pick<StoredMessage, 'text'>[];
  },
): Promise<Recollection> {
  const text = batch
    .map((message) => message.text)
    .join('\n')
    .slice(0, QUERY_CHARS);
  if (text.trim() === '') return NOTHING;
  try {
    const { shown, before, ...query } = ask;
    const asking = batch.map((message) => askingOf(message.text)).reduce(likelier);
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
    log.error({ ...scope, why: describe(error) }, 'nothing could be recalled for a turn');
    return NOTHING;
  }
}

function likelier(a: Asking, b: Asking): Asking {
  if (a === 'small talk' || b === 'small talk') return a === 'small talk' ? b : a;
  return FLOORS[a] < FLOORS[b] ? a : b;
}

function lastOf(before: readonly Pick<StoredMessage, 'text'>[]): string {
  return before
    .slice(-BEFORE_MESSAGES)
    .map(({ text }) => text.slice(0, BEFORE_CHARS))
    .join('\n');
}

/** The words alone, without capitals, spacing and punctuation. */
function wordsOf(text: string): string {
  return text
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}]+/gu, ' ')
    .trim();
}
