/**
 * Texts come from outside, and one of 100 kB must hold up nobody: the regular expressions of `src/` take no square time.
 * Each is tried on long repetitions of what it is made of, behind which something stands that does not fit.
 */
import { describe, expect, it } from 'vitest';
import { type Expression, expressionsIn, expressionsMadeBy, slowTextsFor } from './harness/expressions.js';

const LENGTH = 100_000;
/** Of processor time: what takes no longer is quick enough. */
const ENOUGH_MS = 50;
/** And this is too long, however it grows: some do so much for each character that linear is no comfort. */
const MOST_MS = 400;
/** No chance explains this much, so it is not measured again. */
const HOPELESS_MS = 2 * MOST_MS;
/** Where a text of this length takes no longer, one ten times as long is not worth trying, even in square time. */
const GLANCE = LENGTH / 10;
const GLANCE_MS = ENOUGH_MS / 200;
/** Square time takes sixteen times as long on a text four times as long, linear time four times, on any machine. */
const MOST_GROWTH = 8;
/** A machine with other work grows by chance, too; square time does so each time it is looked at. */
const LOOKS = 3;
/** Where time doubles with each character, longer ones are never done with. */
const FEW = 22;
const FEW_MS = 4;

/** Of the clock on the wall, for a machine that does other things, too. */
const PATIENCE = { timeout: 300_000 };

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
  const began = process.cpuUsage();
  for (let at = -1; everywhere.test(text); at = everywhere.lastIndex) {
    if (everywhere.lastIndex === at) everywhere.lastIndex += 1;
  }
  const { user, system } = process.cpuUsage(began);
  return (user + system) / 1_000;
}

/** The least of a few times. `enough`: less is not asked for. */
type Best = (length: number, enough?: number) => number;

function bestOf(times: number, everywhere: RegExp, text: string, enough: number): number {
  let best = Number.POSITIVE_INFINITY;
  for (let time = 0; time < times && best > enough; time++) {
    const ms = msOf(everywhere, text);
    if (ms > HOPELESS_MS) return ms;
    best = Math.min(best, ms);
  }
  return best;
}

/** The first text that it is slow on, and how slow; null for a linear one. */
function slownessOf(expression: Expression): string | null {
  const { source, flags } = expression;
  const everywhere = new RegExp(source, flags.includes('g') ? flags : `${flags}g`);
  for (const { before, repeated } of slowTextsFor(expression)) {
    const best: Best = (length, enough = 0) =>
      bestOf(3, everywhere, `${before}${repeated.repeat(Math.ceil(length / repeated.length))}\u0001`, enough);
    const ms = best(FEW, FEW_MS) > FEW_MS ? Number.POSITIVE_INFINITY : isQuick(best) ? 0 : tooSlow(best);
    if (ms > 0) return `${expression.name}: ${Math.round(ms)} ms on ${JSON.stringify([before, repeated])}`;
  }
  return null;
}

/** The time it takes too long, or 0. What is too slow for a part of the text is not tried on the whole. */
function tooSlow(best: Best): number {
  let ms = 0;
  for (let look = 0; look < LOOKS; look++) {
    const glance = best(GLANCE);
    if (glance > MOST_MS) return glance;
    const part = best(LENGTH / 4);
    if (part > MOST_MS) return part;
    const [less, more] = part > ENOUGH_MS ? [best(LENGTH / 16), part] : [part, best(LENGTH, ENOUGH_MS)];
    const isSlow = more > MOST_MS || (more > ENOUGH_MS && more / less > MOST_GROWTH);
    if (!isSlow) return 0;
    ms = more;
  }
  return ms;
}

function isQuick(best: Best): boolean {
  const ms = best(GLANCE, GLANCE_MS);
  return ms < GLANCE_MS || (ms * (LENGTH / GLANCE) < ENOUGH_MS / 2 && ms / best(GLANCE / 4) < MOST_GROWTH);
}

describe('the regular expressions of src/', () => {
  it('are linear, on repetitions of whatever they are made of', PATIENCE, async () => {
    const all = await allExpressions();
    expect(all.filter((each) => !isPassedOver(each)).flatMap((each) => slownessOf(each) ?? [])).toEqual([]);
    expect(all.filter(isPassedOver)).toHaveLength(Object.keys(PASSED_OVER).length);
  });

  it.each([
    ['\\s+$', 'a run of blanks that ends in something else'],
    ['<a>.*?</a>', 'an element that is never closed'],
    ['(?:[ab]|b)+\\d', 'one letter that may be taken in two ways'],
  ])('would be found if one were not: %s', PATIENCE, (source) => {
    expect(slownessOf({ name: 'x', source, flags: 'u' })).toContain(' ms on ');
  });
});
