/** Describes a change of memory in words. Pure. */
import { changedLines } from '../../core/changed-lines.js';
import type { Version } from '../../core/memory.js';
import { code, oneLine, withoutBullet } from '../quoting.js';

const MOST_LINES = 6;
const LINE_CHARS = 160;

/** `tier 1 of default/MEMORY.md`, `a line of memory/2026-11-22.md`. */
export function placeOf({ tier, file }: Version): string {
  return `${tier === null ? 'a line' : `tier ${tier}`} of ${code(file)}`;
}

/** The added and the removed lines, a list each; empty if only order or white space changed. */
export function describeChange({ before, after }: Version, titles: { came: string; went: string }): string {
  const { came, went } = changedLines(before, after);
  return [...listed(titles.came, came), ...listed(titles.went, went)].join('\n\n');
}

function listed(title: string, lines: string[]): string[] {
  if (lines.length === 0) return [];
  const shown = lines
    .slice(0, MOST_LINES)
    .map((line) => `- ${code(oneLine(withoutBullet(line), LINE_CHARS))}`);
  const rest = lines.length > MOST_LINES ? [`- and ${lines.length - MOST_LINES} more`] : [];
  return [[title, '', ...shown, ...rest].join('\n')];
}
