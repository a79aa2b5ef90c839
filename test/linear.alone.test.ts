/**
 * Texts come from outside, and one of 100 kB must hold up nobody: the regular expressions of `src/` take no square time.
 * Each is tried on long repetitions of what it is made of, behind which something stands that does not fit.
 */
import { describe, expect, it } from 'vitest';
import { type Expression, expressionsIn, expressionsMadeBy, slowTextsFor } from './harness/expressions.js';

const LENGTH = 100_000;
const MOST_MS = 50;
/** Where a text of this length takes no longer, one ten times as long is not worth trying, even in square time. */
const GLANCE = LENGTH / 10;
const GLANCE_MS = MOST_MS / 200;
/** Square time takes sixteen times as long on a text four times as long, linear time four times. */
const LESS = GLANCE / 4;
const MOST_GROWTH = 8;
/** Where time doubles with each character, longer ones are never done with. */
const FEW = 18;
const FEW_MS = 1;

/** In a prompt such a tag is always the gateway's own, and closed: in words from outside it cannot open. */
const OWN_ELEMENT = 'an element of the prompt';

/** Those that see no text from outside, or only a little of it. */
const PASSED_OVER: Record<string, string> = {
  'embedding/recipe.ts: /e5.*instruct|e5-mistral|gte-qwen\\d*.*instruct/': 'a name in the configuration',
  'models/offline-request.ts: /<user_message\\b([^>]*)>([\\s\\S]*?)<\\/user_message>/g': OWN_ELEMENT,
  'models/offline-summary.ts: /<summary_so_far>\\n([\\s\\S]*?)\\n<\\/summary_so_far>/': OWN_ELEMENT,
  'models/offline-summary.ts: /<user_message sender="([^"]*)"[^>]*>([\\s\\S]*?)<\\/user_message>/g':
    OWN_ELEMENT,
  'embedding/recipe.ts: /arctic-embed.*(?:v2|2\\.0)|arctic-embed2/': 'a name in the configuration',
};

function msOf({ source, flags }: Expression, text: string): number {
  const everywhere = new RegExp(source, flags.includes('g') ? flags : `${flags}g`);
  const began = performance.now();
  for (let at = -1; everywhere.test(text); at = everywhere.lastIndex) {
    if (everywhere.lastIndex === at) everywhere.lastIndex += 1;
  }
  return performance.now() - began;
}

function bestOf(times: number, expression: Expression, text: string): number {
  return Math.min(...Array.from({ length: times }, () => msOf(expression, text)));
}

/** The first text that it is slow on, and how slow; null for a linear one. */
function slownessOf(expression: Expression): string | null {
  // Compiles it.
  msOf(expression, 'a');
  for (const { before, repeated } of slowTextsFor(expression)) {
    const best = (length: number) =>
      bestOf(3, expression, `${before}${repeated.repeat(Math.ceil(length / repeated.length))}\u0001`);
    const ms = best(FEW) > FEW_MS ? Number.POSITIVE_INFINITY : isQuick(best) ? 0 : best(LENGTH);
    if (ms > MOST_MS)
      return `${expression.name}: ${Math.round(ms)} ms on ${JSON.stringify([before, repeated])}`;
  }
  return null;
}

function isQuick(best: (length: number) => number): boolean {
  const ms = best(GLANCE);
  return ms < GLANCE_MS || (ms * (LENGTH / GLANCE) < MOST_MS / 2 && ms / best(LESS) < MOST_GROWTH);
}

describe('the regular expressions of src/', () => {
  it('are linear, on repetitions of whatever they are made of', { timeout: 300_000 }, async () => {
    const { written, making } = expressionsIn();
    expect(written.length).toBeGreaterThan(500);
    const made = [];
    for (const file of making) made.push(...(await expressionsMadeBy(file)));
    expect(made.length).toBeGreaterThan(30);
    const tried = [...written, ...made].filter(({ name }) => !Object.hasOwn(PASSED_OVER, name));
    expect(tried.flatMap((each) => slownessOf(each) ?? [])).toEqual([]);
  });

  it('are all there: those that are passed over, too', () => {
    const names = new Set(expressionsIn().written.map(({ name }) => name));
    expect(Object.keys(PASSED_OVER).filter((name) => !names.has(name))).toEqual([]);
  });

  it.each([
    ['\\s+$', 'a run of blanks that ends in something else'],
    ['^[^\\n:]*\\bTEL\\b[^\\n:]*:(.+)$', 'a contact card without a colon'],
    ['<a>.*?</a>', 'an element that is never closed'],
    ['(?:\\p{L}|\\p{Lu})+\\d', 'one letter that may be taken in two ways'],
  ])('would be found if one were not: %s', (source) => {
    const flags = source.startsWith('^') ? 'gm' : 'u';
    expect(slownessOf({ name: 'x', source, flags })).toContain(' ms on ');
  });
});
