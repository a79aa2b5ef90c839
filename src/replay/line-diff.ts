/** The lines by which one text differs from another, with what stands around them. Pure. */

export interface DiffLine {
  sign: ' ' | '-' | '+';
  line: string;
}

/** Beyond this product of their lengths the middle of two texts is given as a whole: it would take too long. */
const MOST_CELLS = 4_000_000;
/** How many equal lines are shown before and after those that differ. */
const AROUND = 3;

/** All lines of both, in order; those that are in one alone are signed. */
export function diffOf(before: string, after: string): DiffLine[] {
  const was = before.split('\n');
  const is = after.split('\n');
  let start = 0;
  while (start < was.length && start < is.length && was[start] === is[start]) start++;
  let end = 0;
  while (
    end < was.length - start &&
    end < is.length - start &&
    was[was.length - 1 - end] === is[is.length - 1 - end]
  )
    end++;
  const middle = changed(was.slice(start, was.length - end), is.slice(start, is.length - end));
  return [...signed(' ', was.slice(0, start)), ...middle, ...signed(' ', was.slice(was.length - end))];
}

/** Only what differs, with some lines around; `…` stands for those between. Empty if nothing differs. */
export function shownDiff(lines: readonly DiffLine[]): string[] {
  if (lines.every(({ sign }) => sign === ' ')) return [];
  const isNear = (n: number) =>
    lines.slice(Math.max(0, n - AROUND), n + AROUND + 1).some(({ sign }) => sign !== ' ');
  const shown: string[] = [];
  let isCut = false;
  for (const [n, { sign, line }] of lines.entries()) {
    if (isNear(n)) shown.push(`${sign} ${line}`);
    else if (!isCut) shown.push('  …');
    isCut = !isNear(n);
  }
  return shown;
}

function changed(was: string[], is: string[]): DiffLine[] {
  if (was.length * is.length > MOST_CELLS) return [...signed('-', was), ...signed('+', is)];
  // `common[i][j]`: how many lines the rests of both texts from there on have in common.
  const width = is.length + 1;
  const common = new Uint32Array((was.length + 1) * width);
  const at = (i: number, j: number) => common[i * width + j] ?? 0;
  for (let i = was.length - 1; i >= 0; i--) {
    for (let j = is.length - 1; j >= 0; j--) {
      common[i * width + j] = was[i] === is[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
    }
  }
  const lines: DiffLine[] = [];
  let [i, j] = [0, 0];
  while (i < was.length || j < is.length) {
    const [old, fresh] = [was[i], is[j]];
    if (old !== undefined && old === fresh) {
      lines.push({ sign: ' ', line: old });
      i++;
      j++;
    } else if (old !== undefined && (fresh === undefined || at(i + 1, j) >= at(i, j + 1))) {
      lines.push({ sign: '-', line: old });
      i++;
    } else if (fresh !== undefined) {
      lines.push({ sign: '+', line: fresh });
      j++;
    }
  }
  return lines;
}

function signed(sign: DiffLine['sign'], lines: string[]): DiffLine[] {
  return lines.map((line) => ({ sign, line }));
}
