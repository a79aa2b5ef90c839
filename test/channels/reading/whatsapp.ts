/**
 * WhatsApp's markup, from what its help page says and what people see of it: emphasis within a line, from a sign that
 * no letter or digit stands before and no space behind, to the next of which the reverse holds; code between one or
 * three backticks, and addresses, nothing read within; quotes and lists at the beginning of a line. That an invisible sign beside it
 * keeps a sign from being one is an assumption.
 */
import { type Letter, letters } from './seen.js';

const SIGNS: Record<string, string> = { '*': 'bold', _: 'italic', '~': 'strike', '`': 'code' };

export function readWhatsApp(markup: string): Letter[] {
  const seen: Letter[] = [];
  let from = 0;
  for (const found of markup.matchAll(/(?<=^|\n)```((?:(?!```)[\s\S])+)```(?=\n|$)/g)) {
    seen.push(...readLines(markup.slice(from, found.index)));
    seen.push(...letters(found[1] ?? '', ['code']));
    from = found.index + found[0].length;
  }
  return [...seen, ...readLines(markup.slice(from))];
}

function readLines(markup: string): Letter[] {
  return markup.split('\n').flatMap((line) => {
    const [, sign, rest = line] = /^(> ?|[-*] (?=\S)|)(.*)$/su.exec(line) ?? [];
    if (sign?.startsWith('>')) return readWords(rest, ['quote']);
    return sign === '' ? readWords(line, []) : [...letters('• '), ...readWords(rest, [])];
  });
}

function readWords(line: string, styles: readonly string[]): Letter[] {
  const seen: Letter[] = [];
  for (let at = 0; at < line.length; ) {
    const address = /^https?:\/\/[^\s`]+/.exec(line.slice(at))?.[0];
    const sign = line[at] ?? '';
    const code = /^```(.+?)```/.exec(line.slice(at));
    if (code !== null) {
      seen.push(...letters(code[1] ?? '', [...styles, 'code']));
      at += code[0].length;
      continue;
    }
    const end = address === undefined ? closing(line, at) : -1;
    if (end === -1) {
      const shown = address ?? String.fromCodePoint(line.codePointAt(at) ?? 0);
      seen.push(...letters(shown, styles));
      at += shown.length;
      continue;
    }
    const inner = line.slice(at + 1, end);
    const inside = [...styles, SIGNS[sign] ?? ''];
    seen.push(...(sign === '`' ? letters(inner, inside) : readWords(inner, inside)));
    at = end + 1;
  }
  return seen;
}

/** Where that ends which begins here; -1 where nothing does. */
function closing(line: string, at: number): number {
  const sign = line[at] ?? '';
  if (!(sign in SIGNS) || !isSolid(line[at + 1])) return -1;
  const anywhere = sign === '`';
  if (!anywhere && isWord(line[at - 1])) return -1;
  for (let end = line.indexOf(sign, at + 2); end !== -1; end = line.indexOf(sign, end + 1)) {
    if (isSolid(line[end - 1]) && (anywhere || !isWord(line[end + 1]))) return end;
  }
  return -1;
}

function isWord(letter: string | undefined): boolean {
  return letter !== undefined && /[\p{L}\p{N}]/u.test(letter);
}

function isSolid(letter: string | undefined): boolean {
  return letter !== undefined && !/[\s\u2060]/.test(letter);
}
