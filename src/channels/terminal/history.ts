/** The lines that were typed, kept in a file for the next chat: one a line, oldest first. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { phraseOf } from '../../core/phrase.js';

export const MOST_LINES = 500;
/** Pasted documents are not what somebody looks for with the arrow keys. */
const LONGEST = 2000;

/** Newest first, as readline has it. A file that cannot be read is an empty history. */
export async function loadHistory(file: string): Promise<string[]> {
  const text = await readFile(file, 'utf8').catch(() => '');
  return text
    .split('\n')
    .filter((line) => line !== '')
    .slice(-MOST_LINES)
    .reverse();
}

export async function saveHistory(file: string, newestFirst: string[]): Promise<void> {
  const lines = withoutForgotten(newestFirst)
    .filter((line) => line.length <= LONGEST)
    .slice(0, MOST_LINES);
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, `${lines.reverse().join('\n')}\n`, { mode: 0o600 });
}

/** What somebody wanted forgotten may be in the history, too, not least in the command that named it. */
function withoutForgotten(lines: string[]): string[] {
  const phrases = lines.flatMap((line) => {
    const named = /^\s*\/memory\s+(?:forget|yes)\s+(.*\S)/i.exec(line)?.[1]?.replace(/^["“„']|["”“']$/g, '');
    return named ? [phraseOf(named)] : [];
  });
  return lines.filter((line) => !phrases.some((phrase) => phrase.isIn(line)));
}
