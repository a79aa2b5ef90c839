/**
 * The runs of a line as Discord can show them. Discord finds the end of emphasis by its markers alone, even inside code
 * or an address, or after a backslash: so a run that holds such a marker is taken out of that emphasis.
 */
import { isOwnLabel, isWeb, shownAddress, withMarkupEncoded } from './address.js';
import { escaped, splitAtAddresses } from './discord-escape.js';
import { addSpaced, normalised, type Run, type Style, splitAtLinks, textOf, without } from './runs.js';

/** Without `mayLink` every address is shown after its label. */
export function supported(line: readonly Run[], mayLink: boolean): Run[] {
  return withAddressesShown(normalised(split(line)), mayLink);
}

/** Addresses and markers in the text become runs of their own, outside of the emphasis that they would end. */
function split(line: readonly Run[]): Run[] {
  const runs: Run[] = [];
  for (const [index, run] of line.entries()) {
    if (run.kind !== 'text') {
      runs.push(withoutConflicts(run));
      continue;
    }
    const [before, after] = [line[index - 1]?.text ?? '', line[index + 1]?.text ?? ''];
    for (const { kind, text } of splitAtAddresses(run, before, after)) {
      if (kind === 'address') runs.push(withoutConflicts({ ...run, kind: 'raw', text }));
      else splitAtMarkers(runs, run, text);
    }
  }
  return runs;
}

function splitAtMarkers(runs: Run[], run: Run, words: string): void {
  if (run.styles.length === 0) {
    addSpaced(runs, run, words);
    return;
  }
  for (const text of words.match(/[*~\\]+|[^*~\\]+/g) ?? [])
    addSpaced(runs, withoutConflicts({ ...run, text }), text);
}

function withoutConflicts(run: Run): Run {
  if (run.styles.length === 0) return run;
  const conflicting: Style[] = [];
  if (run.text.includes('*')) conflicting.push('bold', 'italic');
  if (run.text.includes('\\')) conflicting.push('italic');
  if (run.text.includes('~')) conflicting.push('strike');
  return without(run, conflicting);
}

/** Where Discord would not make a link, the address is shown after the label. */
function withAddressesShown(runs: Run[], mayLink: boolean): Run[] {
  if (!runs.some((run) => run.styles.includes('link'))) return runs;
  const shown: Run[] = [];
  for (const part of splitAtLinks(runs)) {
    const url = part[0]?.styles.includes('link') ? part[0].url : null;
    const label = textOf(part);
    if (url === null || (mayLink && isWeb(url) && isLabel(part))) {
      shown.push(...part);
      continue;
    }
    shown.push(...part.map((run) => without(run, ['link'])));
    if (!isOwnLabel(label, url)) shown.push({ kind: 'raw', text: ` (${address(url)})`, styles: [], url: '' });
  }
  return normalised(shown);
}

/** Discord makes no link with an address in its label, for it may lead elsewhere; brackets only in pairs, and not in code. */
function isLabel(runs: readonly Run[]): boolean {
  const text = textOf(runs);
  if (text.includes('://') || runs.some((run) => run.kind === 'code' && /[[\]]/.test(run.text))) return false;
  return /^(?:[^[\]]|\[[^[\]]*\])*$/.test(text);
}

function address(url: string): string {
  if (isWeb(url)) return `<${withMarkupEncoded(url)}>`;
  return escaped(shownAddress(url));
}
