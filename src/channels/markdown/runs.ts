/** Runs: pieces of a line of text, each with the same styles throughout. Renderings are written from them. */

export type Style = 'link' | 'strike' | 'bold' | 'italic';

export interface Run {
  /** `raw` is markup of the platform already. */
  kind: 'text' | 'space' | 'code' | 'raw';
  text: string;
  styles: readonly Style[];
  /** Where it leads, with `link` among its styles. */
  url: string;
}

/** Whitespace at either end as a run of its own. */
export function addSpaced(runs: Run[], { kind, styles, url }: Omit<Run, 'text'>, text: string): void {
  if (text === '') return;
  const bare = text.trim();
  const from = bare === '' ? text.length : text.indexOf(bare);
  const to = from + bare.length;
  if (from > 0) runs.push({ kind: 'space', text: text.slice(0, from), styles, url });
  if (bare !== '') runs.push({ kind, text: bare, styles, url });
  if (to < text.length) runs.push({ kind: 'space', text: text.slice(to), styles, url });
}

export function isBlank(runs: readonly Run[]): boolean {
  return runs.every((run) => run.kind === 'space');
}

/** Text alone, in no style. */
export function isPlain(runs: readonly Run[]): boolean {
  return runs.every((run) => run.styles.length === 0 && (run.kind === 'text' || run.kind === 'space'));
}

/** The line as a reader sees it. */
export function textOf(runs: readonly Run[]): string {
  let text = '';
  for (const run of runs) text += run.text;
  return text;
}

/** How a line begins, as far as it is text without style, and then an `x` for the rest. */
export function startOf(runs: readonly Run[]): string {
  let start = '';
  for (const run of runs) {
    if (run.kind !== 'space' && (run.kind !== 'text' || run.styles.length > 0)) return `${start}x`;
    start += run.text;
  }
  return start;
}

/** Without as many characters, in the place of which the marker of a list item is written. */
export function withoutStart(runs: readonly Run[], length: number): readonly Run[] {
  if (length === 0) return runs;
  const rest: Run[] = [];
  let left = length;
  for (const run of runs) {
    const taken = Math.min(left, run.text.length);
    left -= taken;
    if (taken === 0) rest.push(run);
    else if (taken < run.text.length) addSpaced(rest, run, run.text.slice(taken));
  }
  return rest;
}

/** Whitespace loses the styles that the words beside it do not have; runs with the same styles become one. */
export function normalised(runs: readonly Run[]): Run[] {
  const forth: Run[] = [];
  for (const run of runs) forth.push(withStylesOf(run, forth.at(-1)));
  const back: Run[] = [];
  for (let index = forth.length - 1; index >= 0; index -= 1) {
    const run = forth[index];
    if (run === undefined) continue;
    const after = back.at(-1);
    const kept = withStylesOf(run, after);
    if (after === undefined || !isAlike(kept, after)) back.push(kept);
    else back[back.length - 1] = { ...after, text: kept.text + after.text };
  }
  return back.reverse();
}

/** Whitespace, with only those styles that the run beside it has, too. */
function withStylesOf(run: Run, beside: Run | undefined): Run {
  if (run.kind !== 'space' || run.styles.length === 0) return run;
  const styles = run.styles.filter((style) => beside !== undefined && hasStyle(beside, style, run.url));
  return styles.length === run.styles.length ? run : { ...run, styles };
}

function isAlike(one: Run, other: Run): boolean {
  if (one.kind !== other.kind || one.styles.length !== other.styles.length) return false;
  return one.styles.every((style) => hasStyle(other, style, one.url));
}

export function hasStyle(run: Run, style: Style, url: string): boolean {
  return run.styles.includes(style) && (style !== 'link' || run.url === url);
}

export function without(run: Run, unwanted: readonly Style[]): Run {
  if (!run.styles.some((style) => unwanted.includes(style))) return run;
  return { ...run, styles: run.styles.filter((style) => !unwanted.includes(style)) };
}

/** Each link with all of its runs, and what is between links. */
export function splitAtLinks(runs: readonly Run[]): Run[][] {
  const parts: Run[][] = [];
  let last: Run | undefined;
  for (const run of runs) {
    const isLink = run.styles.includes('link');
    const goesOn = last?.styles.includes('link') === isLink && (!isLink || last.url === run.url);
    if (goesOn) parts.at(-1)?.push(run);
    else parts.push([run]);
    last = run;
  }
  return parts;
}
