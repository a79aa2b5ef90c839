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

/** Those that see no text from outside, or only a little of it; by how their names begin. */
const PASSED_OVER: Record<string, string> = {
  'embedding/embedder.ts: /e5.*instruct|': 'a name in the configuration',
  'embedding/embedder.ts: /arctic-embed.*': 'a name in the configuration',
  'models/offline.ts: /<user_message\\b': OWN_ELEMENT,
  'models/offline.ts: /<summary_so_far>': OWN_ELEMENT,
  'models/offline.ts: /<user_message sender=': OWN_ELEMENT,
  'tools/secrets.ts: new RegExp((?:(?<![\\p{L}\\p{N}])(?<password>\\S{5,80}) ':
    'linear, but it looks 80 characters ahead; it sees what a model saves, 64 kB at most',
};

function isPassedOver({ name }: Expression): boolean {
  return Object.keys(PASSED_OVER).some((beginning) => name.startsWith(beginning));
}

async function allExpressions(): Promise<Expression[]> {
  const { written, making } = expressionsIn();
  expect(written.length).toBeGreaterThan(500);
  const made: Expression[] = [];
  for (const file of making) made.push(...(await expressionsMadeBy(file)));
  expect(made.length).toBeGreaterThan(30);
  return [...written, ...made];
}

function msOf(everywhere: RegExp, text: string): number {
  everywhere.lastIndex = 0;
  const began = performance.now();
  for (let at = -1; everywhere.test(text); at = everywhere.lastIndex) {
    if (everywhere.lastIndex === at) everywhere.lastIndex += 1;
  }
  return performance.now() - began;
}

function bestOf(times: number, everywhere: RegExp, text: string): number {
  return Math.min(...Array.from({ length: times }, () => msOf(everywhere, text)));
}

/** The first text that it is slow on, and how slow; null for a linear one. */
function slownessOf(expression: Expression): string | null {
  const { source, flags } = expression;
  const everywhere = new RegExp(source, flags.includes('g') ? flags : `${flags}g`);
  for (const { before, repeated } of slowTextsFor(expression)) {
    const best = (length: number) =>
      bestOf(3, everywhere, `${before}${repeated.repeat(Math.ceil(length / repeated.length))}\u0001`);
    const ms = best(FEW) > FEW_MS ? Number.POSITIVE_INFINITY : isQuick(best) ? 0 : slowest(best);
    if (ms > MOST_MS)
      return `${expression.name}: ${Math.round(ms)} ms on ${JSON.stringify([before, repeated])}`;
  }
  return null;
}

/** What is too slow for a part of the text is not tried on the whole. */
function slowest(best: (length: number) => number): number {
  const part = best(LENGTH / 4);
  return part > MOST_MS ? part : best(LENGTH);
}

function isQuick(best: (length: number) => number): boolean {
  const ms = best(GLANCE);
  return ms < GLANCE_MS || (ms * (LENGTH / GLANCE) < MOST_MS / 2 && ms / best(LESS) < MOST_GROWTH);
}

describe('the regular expressions of src/', () => {
  it('are linear, on repetitions of whatever they are made of', { timeout: 300_000 }, async () => {
    const all = await allExpressions();
    expect(all.filter((each) => !isPassedOver(each)).flatMap((each) => slownessOf(each) ?? [])).toEqual([]);
    expect(all.filter(isPassedOver)).toHaveLength(Object.keys(PASSED_OVER).length);
  });

  it.each([
    ['\\s+$', 'a run of blanks that ends in something else'],
    ['<a>.*?</a>', 'an element that is never closed'],
    ['(?:[ab]|b)+\\d', 'one letter that may be taken in two ways'],
  ])('would be found if one were not: %s', (source) => {
    expect(slownessOf({ name: 'x', source, flags: 'u' })).toContain(' ms on ');
  });
});
