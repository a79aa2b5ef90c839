/** Quotes untrusted text in an answer, on one line, without affecting the answer's markup. Pure. */

/** Inline code, with more backticks than the text contains. */
export function code(text: string): string {
  const longest = Math.max(0, ...Array.from(text.matchAll(/`+/g), (run) => run[0].length));
  const ticks = '`'.repeat(longest + 1);
  const gap = /^`|`$|^ .* $/.test(text) ? ' ' : '';
  return `${ticks}${gap}${text}${gap}${ticks}`;
}

/** Characters that change the writing direction, and thus the look of the text after them. */
const TURNS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

/** Collapses white space and control characters to single spaces; cuts to `most` characters. */
export function oneLine(text: string, most: number): string {
  const characters = Array.from(
    text
      .slice(0, most * 20)
      .replace(TURNS, '')
      .replace(/[\s\p{Cc}]+/gu, ' ')
      .trim(),
  );
  if (characters.length <= most) return characters.join('');
  const beginning = characters.slice(0, most - 1).join('');
  return `${beginning.trimEnd()}…`;
}

/** Letters and the punctuation of names: on no platform a link, mention, phone number or markup. */
const PLAIN_NAME =
  /^(?=.*\p{L})(?!.*\p{N}{5})(?:[\p{L}\p{M}\p{N}\p{Extended_Pictographic} ,!?&'’-]|\ufe0f|\u200d)+$/u;
const NAME_CHARS = 60;

/** A name within the gateway's own text: `[x](https://…)`, `@everyone` and `notes.md` become inline code, which no platform interprets. */
export function nameInWords(name: string): string {
  const line = oneLine(name, NAME_CHARS) || '?';
  return PLAIN_NAME.test(line) ? line : code(line);
}

/** A line of a Markdown file without its list marker. */
export function withoutBullet(line: string): string {
  return line.trim().replace(/^(?:[-*+]|\d{1,9}[.)])\s+/, '');
}

/** `1 line`, `2 lines`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}

/** Closes an open code fence (e.g. after a cut), which would swallow the text after it. */
export function withFencesClosed(markdown: string): string {
  let open = '';
  for (const line of markdown.split('\n')) {
    const fence = /^ {0,3}(`{3,}|~{3,})(.*)$/.exec(line);
    const marks = fence?.[1] ?? '';
    if (open === '') {
      const isInline = marks.startsWith('`') && (fence?.[2] ?? '').includes('`');
      if (!isInline) open = marks;
    } else if (marks.startsWith(open) && fence?.[2]?.trim() === '') {
      open = '';
    }
  }
  return open === '' ? markdown : `${markdown}\n${open}`;
}
