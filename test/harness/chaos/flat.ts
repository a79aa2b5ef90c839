/**
 * Whether a gateway stays as large as it is however long it runs, pure: what samples of a soak say. What holds what people
 * said grows with it, and may grow no faster in the second half than in the first; everything else stays as it is.
 */

export interface Sample {
  /** Said so far. */
  messages: number;
  /** Of each gateway. */
  memoryMb: number[];
  handles: number[];
  /** By table and by folder; a folder's are kilobytes. */
  rows: Record<string, number>;
  kilobytes: Record<string, number>;
}

/** Tables and folders that keep what was said and done, for as long as `retention` and people want. */
export const HISTORY: ReadonlySet<string> = new Set([
  ...['message', 'heard', 'turn', 'step', 'outbox', 'command', 'journal', 'version', 'archived'],
  ...['database', 'groups', 'archive', 'replay', 'nodes', 'audit.jsonl'],
]);

/** Bounds: of memory and of what stays, in parts and beside; handles; growth of the second half for that of the first. */
export const MEMORY = { times: 1.1, plus: 20 };
export const STAYS = { times: 1.1, plus: 64 };
export const HANDLES_PLUS = 8;
export const GROWTH = { times: 1.25, plus: 128 };
/** Measured three times around the middle and at the end: the least of them is what does not go away. */
const AROUND = 3;

/** Says what grows. Needs at least nine samples at equal distances. */
export function whatGrows(samples: readonly Sample[]): string[] {
  const middle = Math.floor(samples.length / 2);
  const first = samples[1];
  const mid = samples.slice(middle - 1, middle - 1 + AROUND);
  const last = samples.slice(-AROUND);
  const [atMiddle, atEnd] = [mid.at(-1), last.at(-1)];
  if (first === undefined || atMiddle === undefined || atEnd === undefined || samples.length < 9)
    return ['there are too few samples'];
  const least = (of: readonly Sample[], what: 'memoryMb' | 'handles', n: number) =>
    Math.min(...of.map((each) => each[what][n] ?? Number.POSITIVE_INFINITY));
  const found: string[] = [];
  atEnd.memoryMb.forEach((_, n) => {
    const [before, after] = [least(mid, 'memoryMb', n), least(last, 'memoryMb', n)];
    if (after > before * MEMORY.times + MEMORY.plus)
      found.push(`memory of gateway ${n + 1}: ${before.toFixed(0)} MB, then ${after.toFixed(0)}`);
    const [open, then] = [least(mid, 'handles', n), least(last, 'handles', n)];
    if (then > open + HANDLES_PLUS) found.push(`open files of gateway ${n + 1}: ${open}, then ${then}`);
  });
  for (const what of ['rows', 'kilobytes'] as const) {
    for (const name of Object.keys(atEnd[what])) {
      const [a, b, c] = [first, atMiddle, atEnd].map((sample) => sample[what][name] ?? 0) as [
        number,
        number,
        number,
      ];
      const halves = (atEnd.messages - atMiddle.messages) / Math.max(1, atMiddle.messages - first.messages);
      const most = HISTORY.has(name)
        ? b + Math.max(0, b - a) * halves * GROWTH.times + GROWTH.plus
        : b * STAYS.times + STAYS.plus;
      if (c > most)
        found.push(
          `${what} of ${name}: ${a}, ${b} in the middle, ${c} at the end; at most ${Math.round(most)}`,
        );
    }
  }
  return found;
}
