/** Numbers out of many measurements, and tables of them. */

export interface Row {
  what: string;
  /** null: cannot be measured here. */
  values: (number | null)[];
  unit: 'ms' | 'MB' | '/s' | 'kB';
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

/** Of numbers that some systems do not tell. */
export function medianOf(values: readonly (number | null)[]): number | null {
  const told = values.filter((value) => value !== null);
  return told.length === 0 ? null : median(told);
}

/**
 * A Markdown table. With an aim, the first column is set against the second: how many times as much it costs
 * (for what is counted per second: how many times as little it does).
 */
export function table(columns: string[], rows: Row[], aim?: number): string {
  const head = ['', ...columns, ...(aim === undefined ? [] : ['ratio', 'aim'])];
  const lines = rows.map(({ what, values, unit }) => {
    const shown = values.map((value) => (value === null ? 'n/a' : `${rounded(value)} ${unit}`));
    return [what, ...shown, ...(aim === undefined ? [] : verdict(values, unit, aim))];
  });
  const widths = head.map((title, column) =>
    Math.max(title.length, ...lines.map((line) => line[column]?.length ?? 0)),
  );
  const shape = (cells: string[]) =>
    `| ${cells.map((cell, n) => (n === 0 ? cell.padEnd(widths[n] ?? 0) : cell.padStart(widths[n] ?? 0))).join(' | ')} |`;
  const rule = `|${widths.map((width, n) => (n === 0 ? '-'.repeat(width + 2) : `${'-'.repeat(width + 1)}:`)).join('|')}|`;
  return [shape(head), rule, ...lines.map(shape)].join('\n');
}

function verdict([ours, other]: (number | null)[], unit: Row['unit'], aim: number): string[] {
  if (ours == null || other == null) return ['n/a', ''];
  const ratio = unit === '/s' ? other / ours : ours / other;
  return [ratio.toFixed(2), ratio <= aim ? `${aim} met` : `${aim} missed`];
}

function rounded(value: number): string {
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}
