/** SQL statements run by a gateway: totals in a file, written by `count-statements.ts`, read by `statements.ts`. */
import { readFileSync, writeSync } from 'node:fs';

export interface Counts {
  selects: number;
  writes: number;
  /** BEGIN, COMMIT and the like. */
  brackets: number;
  pragmas: number;
  /** Write transactions; a write outside of any counts as one. */
  writeTransactions: number;
  /** Read transactions; a select outside of any counts as one. */
  readTransactions: number;
}

const NAMES = [
  'selects',
  'writes',
  'brackets',
  'pragmas',
  'writeTransactions',
  'readTransactions',
] as const satisfies (keyof Counts)[];

export function countsOf(number: (name: keyof Counts, n: number) => number): Counts {
  return Object.fromEntries(NAMES.map((name, n) => [name, number(name, n)])) as unknown as Counts;
}

export function writeCounts(descriptor: number, counts: Counts): void {
  writeSync(
    descriptor,
    Float64Array.from(NAMES, (name) => counts[name]),
    0,
    null,
    0,
  );
}

export function readCounts(file: string): Counts {
  const bytes = readFileSync(file);
  return countsOf((_, n) => bytes.readDoubleLE(n * Float64Array.BYTES_PER_ELEMENT));
}
