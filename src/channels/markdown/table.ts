/** A table as lines of aligned columns, for a fixed-width font: chat platforms have no tables. */
import { width } from './width.js';

export type Alignment = 'left' | 'right' | 'center';

/** A longer cell pushes its row out instead of widening every other row. */
const MAX_PADDING = 40;

/** `rows[0]` is the header. */
export function tableText(rows: string[][], alignments: Alignment[]): string {
  const measured = rows.map((row) => withoutEmptyEnd(row).map((text) => ({ text, columns: width(text) })));
  const columns = alignments.map(() => 1);
  for (const row of measured) {
    row.forEach((cell, column) => {
      if (cell.columns <= MAX_PADDING) columns[column] = Math.max(columns[column] ?? 1, cell.columns);
    });
  }
  const lines = measured.map((row) =>
    row
      .map((cell, column) => pad(cell, columns[column] ?? 0, alignments[column] ?? 'left'))
      .join(' | ')
      .trimEnd(),
  );
  const rule = columns.map((count) => '-'.repeat(count)).join('-|-');
  return [lines[0] ?? '', rule, ...lines.slice(1)].join('\n');
}

/** Rows that are too short are filled up by the parser; that is not to be seen. */
function withoutEmptyEnd(row: string[]): string[] {
  let end = row.length;
  while (end > 0 && row[end - 1] === '') end -= 1;
  return row.slice(0, end);
}

function pad(cell: { text: string; columns: number }, columns: number, alignment: Alignment): string {
  const missing = Math.max(0, columns - cell.columns);
  const before = alignment === 'right' ? missing : alignment === 'center' ? missing >> 1 : 0;
  return ' '.repeat(before) + cell.text + ' '.repeat(missing - before);
}
