/** Tables of Markdown: a secret stands under its name or right of it, and is read as if it stood after it. */
import { linesOf, type Secret } from './found.js';
import { namedSecrets } from './named.js';

export function tableSecrets(text: string): Secret[] {
  const lines = linesOf(text);
  let header: string[] | null = null;
  return lines.flatMap(({ text: line, at }, row) => {
    if (!line.includes('|')) {
      header = null;
      return [];
    }
    if (isRule(line)) {
      header = cellsOf(lines[row - 1]?.text ?? '');
      return [];
    }
    const cells = cellsOf(line);
    const besides = cells.slice(1).map((cell, column): Pair => [cells[column] ?? '', cell]);
    // Outside a table's body, what stands side by side need not be a name and its value.
    if (header === null) return read(besides, ' ', at);
    const under = cells.map((cell, column): Pair => [header?.[column] ?? '', cell]);
    return read([...under, ...besides], ': ', at);
  });
}

type Pair = [name: string, value: string];

function read(pairs: Pair[], joint: string, at: number): Secret[] {
  return pairs
    .filter(([name, value]) => name !== '' && value !== '')
    .flatMap(([name, value]) => namedSecrets(`${name}${joint}${value}`))
    .map((secret) => ({ ...secret, at }));
}

/** The line between the header of a table and its body. */
function isRule(line: string): boolean {
  return line.includes('-') && /^[\s|:-]+$/.test(line);
}

function cellsOf(line: string): string[] {
  return line
    .trim()
    .replace(/^\||\|$/g, '')
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim());
}
