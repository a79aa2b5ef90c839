/**
 * Where lines appear: at a terminal above the one that is being typed, and what grows is rewritten in its place; else one
 * below the other.
 */
import { createInterface, type Interface } from 'node:readline';
import type { Printed } from './words.js';

export interface Screen {
  print(printed: Printed): void;
  /** What stands before the line that is typed. */
  prompt(text: string): void;
  /** Lines as they are typed or come, until the end of input. */
  lines: AsyncIterable<string>;
  close(): void;
}

export function openScreen(input: NodeJS.ReadStream, output: NodeJS.WriteStream): Screen {
  return input.isTTY && output.isTTY ? terminal(input, output) : plain(input, output);
}

function plain(input: NodeJS.ReadStream, output: NodeJS.WriteStream): Screen {
  let newest = '';
  let reader: Interface | null = null;
  return {
    print({ text, added = text }) {
      // Typing is shown again every few seconds.
      if (added !== newest) output.write(`${added}\n`);
      newest = added;
    },
    prompt() {},
    // Made only when lines are asked for: a script does not wait for input.
    get lines() {
      reader ??= createInterface({ input });
      return reader;
    },
    close: () => void reader?.close(),
  };
}

function terminal(input: NodeJS.ReadStream, output: NodeJS.WriteStream): Screen {
  const reader = createInterface({ input, output });
  /** What was printed last, if it may be replaced: by more of the same key; where it has none, by anything. */
  let growing: { key: string | null; rows: number } | null = null;

  const up = (rows: number) => (rows > 0 ? `\u001b[${rows}A` : '');
  const rowsOf = (text: string) =>
    text
      .split('\n')
      .reduce((sum, line) => sum + Math.max(1, Math.ceil([...line].length / output.columns)), 0);

  // What was typed is shown again as the platform shows it.
  reader.on('line', (line) => {
    output.write(`${up(rowsOf(reader.getPrompt() + line))}\r\u001b[J`);
    growing = null;
  });

  return {
    print({ text, added = text, key, fleeting = false }) {
      // While a message grows, that is to be seen.
      if (fleeting && growing?.key) return;
      const again = growing !== null && (growing.key === null || growing.key === key) ? growing.rows : 0;
      // What reaches beyond the top of the screen cannot be rewritten: it goes on below.
      const isTooTall = again + 1 >= output.rows;
      const above = isTooTall ? 0 : again;
      output.write(`${up(reader.getCursorPos().rows + above)}\r\u001b[J${isTooTall ? added : text}\n`);
      growing = key === null && !fleeting ? null : { key, rows: isTooTall ? again : rowsOf(text) };
      reader.prompt(true);
    },
    prompt(text) {
      reader.setPrompt(`${text} › `);
      reader.prompt(true);
    },
    lines: reader,
    close: () => reader.close(),
  };
}
