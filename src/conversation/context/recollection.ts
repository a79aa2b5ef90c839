/**
 * What a turn recalls by itself, for step 4: a few lines of what was said and noted long ago, found by the words of
 * the messages to be answered. They stand with those messages, so that the long part of the prompt stays the same.
 */
import { describe } from '../../core/errors.js';
import type { RecallQuery, Scope } from '../../core/recall.js';
import { recalledLine } from '../../core/recalled.js';
import type { StoredMessage } from '../../core/transcript.js';
import type { Services } from '../services.js';

/** All lines together, characters. */
const BUDGET = 3_000;
const MOST_LINES = 8;
/** Among the found are some that no line is made of. */
const MOST_HITS = 2 * MOST_LINES;
/**
 * Below this, lines distract more than they help. A persona that has forgotten is worse than one that is given a line
 * too many, so it is low: docs/recall.md has what each floor finds and what it lets in.
 */
const FLOOR = 0.2;
/** So much of what was said is looked for; the beginning of a long text says what it is about. */
const QUERY_CHARS = 2_000;

/** The lines, best first; empty when nothing worth it was found. A fault of recall's stops no reply. */
export async function recollect(
  { recall, zone, log }: Pick<Services, 'recall' | 'zone' | 'log'>,
  scope: Scope,
  batch: StoredMessage[],
  ask: Pick<RecallQuery, 'now' | 'except'> & {
    /** What of memory stands in the prompt anyway. */
    shown: string;
  },
): Promise<string[]> {
  const text = batch
    .map((message) => message.text)
    .join('\n')
    .slice(0, QUERY_CHARS);
  if (text.trim() === '') return [];
  try {
    const { shown, ...query } = ask;
    const { hits } = await recall.search(scope, { text, limit: MOST_HITS, ...query });
    const asked = new Set(batch.map((message) => wordsOf(message.text)));
    const lines: string[] = [];
    let chars = 0;
    for (const hit of hits) {
      // Who asks again hears nothing new from having asked before: the answer is looked for, not the question.
      const tellsNothing =
        hit.source.kind === 'file' ? shown.includes(hit.text.trim()) : asked.has(wordsOf(hit.text));
      if (hit.relevance < FLOOR || tellsNothing) continue;
      const line = recalledLine(hit, zone);
      if (chars + line.length + 1 > BUDGET) continue;
      chars += line.length + 1;
      lines.push(line);
      if (lines.length === MOST_LINES) break;
    }
    return lines;
  } catch (error) {
    log.error({ ...scope, why: describe(error) }, 'nothing could be recalled for a turn');
    return [];
  }
}

/** What is said, whatever its capitals, spaces and marks. */
function wordsOf(text: string): string {
  return text
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}]+/gu, ' ')
    .trim();
}
