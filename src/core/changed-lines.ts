/** The lines by which two texts of memory differ. Pure. */
import type { Version } from './memory.js';

export interface ChangedLines {
  came: string[];
  went: string[];
}

/** Trimmed, in the order of their text; both empty if only order or white space changed. */
export function changedLines(before: string, after: string): ChangedLines {
  const was = linesOf(before);
  const is = linesOf(after);
  return { came: without(is, was), went: without(was, is) };
}

/** Versions (newest first) as if each tier had been written once; lines of the daily log each by itself. Oldest first. */
export function netChanges(versions: Version[]): Version[] {
  const tiers = new Map<string, Version>();
  const net: Version[] = [];
  for (const version of versions.toReversed()) {
    const key = `${version.file} ${version.tier}`;
    const known = version.tier === null ? undefined : tiers.get(key);
    if (known) {
      known.after = version.after;
      continue;
    }
    const copy = { ...version };
    tiers.set(key, copy);
    net.push(copy);
  }
  return net;
}

function without(lines: string[], others: string[]): string[] {
  const known = new Set(others);
  return lines.filter((line) => !known.has(line));
}

function linesOf(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
}
