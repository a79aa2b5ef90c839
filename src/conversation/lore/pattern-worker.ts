/** The thread that tries the patterns of lorebooks, which strangers wrote: one may take forever. Built as a separate file. */
import { parentPort } from 'node:worker_threads';
import { OUTCOME, type PatternOrder } from './patterns.js';

/** Compiled before; a bound, because books come and go. */
const MOST_KEPT = 20_000;
const compiled = new Map<string, RegExp | null>();

parentPort?.on('message', ({ texts, tries, outcomes }: PatternOrder) => {
  tries.forEach(({ source, flags, text }, n) => {
    outcomes[n] = OUTCOME.running;
    const matches = expression(source, flags)?.test(texts[text] ?? '') === true;
    outcomes[n] = matches ? OUTCOME.matched : OUTCOME.none;
  });
  parentPort?.postMessage('done');
});

/** null: it is none. */
function expression(source: string, flags: string): RegExp | null {
  const key = `${flags}/${source}`;
  const known = compiled.get(key);
  if (known !== undefined) return known;
  if (compiled.size >= MOST_KEPT) compiled.clear();
  let made: RegExp | null = null;
  try {
    made = new RegExp(source, flags);
  } catch {
    // A pattern that is none never matches.
  }
  compiled.set(key, made);
  return made;
}
