/**
 * The runs of a line as Discord can show them. Discord finds the end of emphasis by its signs alone, be they in the
 * midst of code or of an address, or behind a backslash: so what has such a sign in it stands outside of that emphasis.
 */
import { isWeb, saysItself, shownAddress, withSignsEncoded } from './address.js';
import { addressesApart, escaped } from './discord-words.js';
import { addSpaced, linksApart, type Run, type Style, settled, textOf, without } from './runs.js';

/** Without `mayLink` every address stands behind its label. */
export function fitted(line: readonly Run[], mayLink: boolean): Run[] {
  return withLinksTold(settled(apart(line)), mayLink);
}

/** Addresses as runs of their own, and signs in the text, too: outside of the emphasis that they would end. */
function apart(line: readonly Run[]): Run[] {
  const runs: Run[] = [];
  for (const [index, run] of line.entries()) {
    if (run.kind !== 'text') {
      runs.push(withoutClashes(run));
      continue;
    }
    const [before, after] = [line[index - 1]?.text ?? '', line[index + 1]?.text ?? ''];
    for (const { kind, text } of addressesApart(run, before, after)) {
      if (kind === 'address') runs.push(withoutClashes({ ...run, kind: 'raw', text }));
      else signsApart(runs, run, text);
    }
  }
  return runs;
}

function signsApart(runs: Run[], run: Run, words: string): void {
  if (run.styles.length === 0) {
    addSpaced(runs, run, words);
    return;
  }
  for (const text of words.match(/[*~\\]+|[^*~\\]+/g) ?? [])
    addSpaced(runs, withoutClashes({ ...run, text }), text);
}

function withoutClashes(run: Run): Run {
  if (run.styles.length === 0) return run;
  const clashing: Style[] = [];
  if (run.text.includes('*')) clashing.push('bold', 'italic');
  if (run.text.includes('\\')) clashing.push('italic');
  if (run.text.includes('~')) clashing.push('strike');
  return without(run, clashing);
}

/** Where Discord would show the brackets of a link, its address stands behind its label. */
function withLinksTold(runs: Run[], mayLink: boolean): Run[] {
  if (!runs.some((run) => run.styles.includes('link'))) return runs;
  const told: Run[] = [];
  for (const part of linksApart(runs)) {
    const url = part[0]?.styles.includes('link') ? part[0].url : null;
    const label = textOf(part);
    if (url === null || (mayLink && isWeb(url) && isLabel(part))) {
      told.push(...part);
      continue;
    }
    told.push(...part.map((run) => without(run, ['link'])));
    if (!saysItself(label, url)) told.push({ kind: 'raw', text: ` (${address(url)})`, styles: [], url: '' });
  }
  return settled(told);
}

/** Discord takes no label that shows an address, lest it lead elsewhere; brackets only in pairs, and not in code. */
function isLabel(runs: readonly Run[]): boolean {
  const text = textOf(runs);
  if (text.includes('://') || runs.some((run) => run.kind === 'code' && /[[\]]/.test(run.text))) return false;
  return /^(?:[^[\]]|\[[^[\]]*\])*$/.test(text);
}

function address(url: string): string {
  if (isWeb(url)) return `<${withSignsEncoded(url)}>`;
  return escaped(shownAddress(url));
}
