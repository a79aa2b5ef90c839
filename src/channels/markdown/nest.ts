/** Writes runs with styles as markers that open and close as brackets do. */
import { hasStyle, type Run, type Style } from './runs.js';

export interface Markers {
  open(style: Style, run: Run): void;
  close(style: Style, run: Run): void;
  text(run: Run): void;
}

/** The outer ones first, where they begin and end together. */
const ORDER: readonly Style[] = ['link', 'strike', 'bold', 'italic'];

export function nest(runs: readonly Run[], markers: Markers): void {
  const open: { style: Style; run: Run }[] = [];

  function closeDownTo(depth: number): void {
    while (open.length > depth) {
      const last = open.pop();
      if (last !== undefined) markers.close(last.style, last.run);
    }
  }

  for (const [index, run] of runs.entries()) {
    const ended = open.findIndex((each) => !hasStyle(run, each.style, each.run.url));
    if (ended !== -1) closeDownTo(ended);
    // No marker opens before a space.
    if (run.styles.length > open.length && run.kind !== 'space') {
      const begun = run.styles.filter((style) => !open.some((each) => each.style === style));
      for (const style of begun.length > 1 ? outerFirst(begun, runs, index) : begun) {
        open.push({ style, run });
        markers.open(style, run);
      }
    }
    markers.text(run);
  }
  closeDownTo(0);
}

/** Of styles that begin together the one that holds longer is the outer one. */
function outerFirst(styles: Style[], runs: readonly Run[], from: number): Style[] {
  const lasts = styles.map((style) => {
    const url = runs[from]?.url ?? '';
    let end = from + 1;
    for (let run = runs[end]; run !== undefined && hasStyle(run, style, url); run = runs[end]) end += 1;
    return { style, end };
  });
  lasts.sort((one, other) => other.end - one.end || ORDER.indexOf(one.style) - ORDER.indexOf(other.style));
  return lasts.map(({ style }) => style);
}
