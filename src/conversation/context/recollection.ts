/**
 * Step 4 of the route: what a turn recalls automatically, which is a few lines of what was said or noted long ago,
 * found by the words of the batch. They are placed with the batch, so that the long prefix of the prompt stays
 * identical.
 */
import { describe } from '../../core/errors.js';
import type { RecallQuery, Scope } from '../../core/recall.js';
import { recalledLine } from '../../core/recalled.js';
import type { StoredMessage } from '../../core/transcript.js';
import type { Services } from '../services.js';

/** All lines together, in characters. */
const BUDGET = 3_000;
const MOST_LINES = 8;
/** More than needed, because some hits are skipped. */
const MOST_HITS = 2 * MOST_LINES;
/**
 * Minimum relevance; lines below it distract more than they help. It is low because a forgetful persona is worse than a
 * superfluous line; docs/recall.md lists what each threshold finds and lets in.
 */
const FLOOR = 0.2;
/** The query is limited to the beginning of a long text, which usually says what it is about. */
const QUERY_CHARS = 2_000;

/** The lines, best first; empty when nothing relevant was found. An error in recall never prevents a reply. */
export async function recollect(
  { recall, zone, log }: Pick<Services, 'recall' | 'zone' | 'log'>,
  scope: Scope,
  batch: StoredMessage[],
  ask: Pick<RecallQuery, 'now' | 'except'> & {
    /** The memory that the prompt contains anyway. */
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
      // Skips earlier copies of the same question: the answer is wanted, not the question.
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

/** The words alone, without capitals, spacing and punctuation. */
function wordsOf(text: string): string {
  return text
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}]+/gu, ' ')
    .trim();
}
