/** Statistics of many measurements, and tables of them. */

export interface Row {
  what: string;
  /** null: cannot be measured here. */
  values: (number | null)[];
  unit: 'ms' | 'MB' | '/s' | 'kB' | '';
  /** Aim of the first column. Default: the table's. */
  aim?: Aim;
}

/** `ratio`: maximum cost as a multiple of the last column's; for a rate, its inverse is compared. */
export type Aim = { ratio: number } | { atMost: number } | { atLeast: number };

export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

/** The median of the known values; null if there are none. */
export function medianOf(values: readonly (number | null)[]): number | null {
  const known = values.filter((value) => value !== null);
  return known.length === 0 ? null : median(known);
}

/** A Markdown table. With `ratioAim`, the first column is compared with each of the others; null: only rows have aims. */
export function table(columns: string[], rows: Row[], ratioAim?: number | null): string {
  const others = ratioAim === undefined ? [] : columns.slice(1);
  const ratios = others.map((name) => (others.length === 1 ? 'ratio' : `÷ ${name}`));
  const judged = verdicts(rows, ratioAim);
  const withAims = judged.some((each) => each !== null);
  const head = ['', ...columns, ...ratios, ...(withAims ? ['aim', ''] : [])];
  const lines = rows.map((row, n) => [
    row.what,
    ...row.values.map((value) => shown(value, row.unit)),
    ...others.map((_, other) => shown(ratio(row, other + 1), '')),
    ...(withAims ? [judged[n]?.bound ?? '', judged[n]?.verdict ?? ''] : []),
  ]);
  const widths = head.map((title, column) =>
    Math.max(title.length, ...lines.map((line) => line[column]?.length ?? 0)),
  );
  const line = (cells: string[]) =>
    `| ${cells.map((cell, n) => (n === 0 ? cell.padEnd(widths[n] ?? 0) : cell.padStart(widths[n] ?? 0))).join(' | ')} |`;
  const rule = `|${widths.map((width, n) => (n === 0 ? '-'.repeat(width + 2) : `${'-'.repeat(width + 1)}:`)).join('|')}|`;
  return [line(head), rule, ...lines.map(line)].join('\n');
}

/** The first column's cost as a multiple of another's. */
function ratio({ values, unit }: Row, other: number): number | null {
  const ours = values[0];
  const theirs = values[other];
  if (ours == null || theirs == null) return null;
  return unit === '/s' ? theirs / ours : ours / theirs;
}

/** What each row was to be and whether it is; null for rows without an aim. */
export function verdicts(rows: Row[], ratioAim?: number | null) {
  return rows.map((row) => verdict(row, row.aim ?? (ratioAim == null ? undefined : { ratio: ratioAim })));
}

function verdict(row: Row, aim: Aim | undefined): { bound: string; verdict: string } | null {
  if (aim === undefined) return null;
  const value = 'ratio' in aim ? ratio(row, row.values.length - 1) : (row.values[0] ?? null);
  const bound = 'ratio' in aim ? `× ${aim.ratio}` : 'atMost' in aim ? `≤ ${aim.atMost}` : `≥ ${aim.atLeast}`;
  if (value === null) return { bound, verdict: 'n/a' };
  const met =
    'ratio' in aim ? value <= aim.ratio : 'atMost' in aim ? value <= aim.atMost : value >= aim.atLeast;
  return { bound, verdict: met ? 'met' : 'missed' };
}

function shown(value: number | null, unit: Row['unit']): string {
  return value === null ? 'n/a' : `${rounded(value)} ${unit}`.trimEnd();
}

function rounded(value: number): string {
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}
