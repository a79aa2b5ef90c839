/** Where the budget of a prompt cuts a text, and the part of a text that an edit replaces. Pure. */
import type { MemoryText } from '../../../src/board/protocol.ts';

export interface Shown {
  /** Characters, as the gateway counts them: without white space around the text, Windows line ends as two. */
  used: number;
  /** The text up to here is in a prompt; null: all of it is. */
  cutAt: number | null;
  /** Of the cut, from 1 on. */
  line: number;
}

export function shownOf(text: string, { most, isCrlf }: Pick<MemoryText, 'most' | 'isCrlf'>): Shown {
  const start = text.length - text.trimStart().length;
  const words = text.trim();
  const counted = isCrlf ? words.replaceAll('\n', '\r\n') : words;
  const used = counted.length;
  if (most === null || used <= most) return { used, cutAt: null, line: 0 };
  const isSplit = /[\ud800-\udbff]/.test(counted[most - 1] ?? '');
  const kept = counted.slice(0, isSplit ? most - 1 : most).replaceAll('\r', '').length;
  const cutAt = start + kept;
  return { used, cutAt, line: text.slice(0, cutAt).split('\n').length };
}

/** The shortest replacement that makes one text of the other. */
export function spliceOf(before: string, after: string): { at: number; gone: number; text: string } {
  const shorter = Math.min(before.length, after.length);
  let at = 0;
  while (at < shorter && before[at] === after[at]) at++;
  let end = 0;
  while (end < shorter - at && before[before.length - 1 - end] === after[after.length - 1 - end]) end++;
  return { at, gone: before.length - at - end, text: after.slice(at, after.length - end) };
}

/** Front matter and the rest; `matter` null: it has none. */
export function matterOf(text: string): { matter: string | null; body: string } {
  const found = /^---[ \t]*\n([\s\S]*?\n)?---[ \t]*(?:\n|$)/.exec(text);
  if (found === null) return { matter: null, body: text };
  return { matter: found[1] ?? '', body: text.slice(found[0].length) };
}
