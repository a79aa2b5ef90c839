/**
 * The runs of a line as WhatsApp can show them. A sign opens behind whitespace or punctuation and right before a word,
 * and closes the other way round: emphasis for which that does not hold, or which has its own sign within, is left
 * out; and it stands outside of code and addresses.
 */
import { saysItself, shownAddress, withSignsEncoded } from './address.js';
import { addSpaced, linksApart, type Run, settled, textOf, without } from './runs.js';

export const SIGNS = { bold: '*', italic: '_', strike: '~' };

const EMPHASIS = ['bold', 'italic', 'strike'] as const;
const WORD_END = /[\p{L}\p{N}\p{M}]$/u;
const WORD_START = /^[\p{L}\p{N}\p{M}]/u;
const SIGN_START = /^[*_~`]/;
const SIGN_END = /[*_~`]$/;

export function fitted(line: readonly Run[]): Run[] {
  let runs = settled(addressesApart(withLinksTold(settled(line))).map(codeOrWords));
  for (const style of EMPHASIS) runs = openable(runs, style);
  return settled(runs);
}

/** The address behind the label, unless the label is the address, which WhatsApp makes a link by itself. */
function withLinksTold(runs: Run[]): Run[] {
  if (!runs.some((run) => run.styles.includes('link'))) return runs;
  const told: Run[] = [];
  for (const part of linksApart(runs)) {
    told.push(...part.map((run) => without(run, ['link'])));
    const [first] = part;
    if (!first?.styles.includes('link') || saysItself(textOf(part), first.url)) continue;
    const address = withSignsEncoded(shownAddress(first.url));
    told.push({ kind: 'space', text: ' ', styles: [], url: '' });
    told.push({ kind: 'text', text: `(${address})`, styles: [], url: '' });
  }
  return told;
}

/** Addresses as runs of their own, whatever marks are in them: no sign of ours may stand in one or right behind it. */
function addressesApart(line: readonly Run[]): readonly Run[] {
  const text = textOf(line);
  if (!text.includes('://')) return line;
  const runs: Run[] = [];
  const addresses = text.matchAll(/https?:\/\/[^\s`]+/gi);
  let found = addresses.next().value;
  let at = 0;
  for (const run of line) {
    const end = at + run.text.length;
    for (let from = at; from < end; ) {
      const isIn = found !== undefined && found.index <= from;
      const edge = found === undefined ? end : isIn ? found.index + found[0].length : found.index;
      const to = Math.min(end, edge);
      const shown = run.text.slice(from - at, to - at);
      if (isIn) runs.push({ ...without(run, EMPHASIS), kind: 'raw', text: shown });
      else addSpaced(runs, run, shown);
      if (isIn && to === edge) found = addresses.next().value;
      from = to;
    }
    at = end;
  }
  return runs;
}

/** Code within a word, or beside an address or its own sign, is words. */
function codeOrWords(run: Run, index: number, line: readonly Run[]): Run {
  if (run.kind !== 'code') return run;
  const [before, after] = [line[index - 1], line[index + 1]];
  const isWithin = endsInWord(before) || beginsWithWord(after);
  const isBesideSign = before?.text.endsWith('`') || after?.text.startsWith('`');
  const isBesideAddress = before?.kind === 'raw' || after?.kind === 'raw';
  return isWithin || isBesideSign || isBesideAddress ? { ...run, kind: 'text' } : without(run, EMPHASIS);
}

function endsInWord(run: Run | undefined): boolean {
  return run !== undefined && WORD_END.test(run.text.slice(-2));
}

function beginsWithWord(run: Run | undefined): boolean {
  return run !== undefined && WORD_START.test(run.text);
}

/** Without the style where WhatsApp would show its signs instead. */
function openable(runs: Run[], style: keyof typeof SIGNS): Run[] {
  if (!runs.some((run) => run.styles.includes(style))) return runs;
  const kept = [...runs];
  for (let from = 0, to = 0; from < runs.length; from = to) {
    to = from + 1;
    if (!runs[from]?.styles.includes(style)) continue;
    while (runs[to]?.styles.includes(style)) to += 1;
    const stretch = runs.slice(from, to);
    if (stands(textOf(stretch), SIGNS[style], runs[from - 1], runs[to])) continue;
    for (const [index, run] of stretch.entries()) kept[from + index] = without(run, [style]);
  }
  return kept;
}

function stands(text: string, sign: string, before: Run | undefined, after: Run | undefined): boolean {
  if (text.includes(sign) || before?.kind === 'raw' || after?.kind === 'raw') return false;
  // A sign in the text may have to be held, and then what nobody sees stands where a letter should.
  if (SIGN_START.test(text) || SIGN_END.test(text)) return false;
  if (SIGN_END.test(before?.text ?? '') || SIGN_START.test(after?.text ?? '')) return false;
  return !endsInWord(before) && !beginsWithWord(after);
}
