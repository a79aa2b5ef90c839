/**
 * Words of others, safe for a terminal: line ends and tabs stay; control characters, and marks that are not seen or turn
 * the writing, are spelled out, but for the joiners of emoji and scripts.
 */
export function printable(text: string): string {
  return text.replace(/\r\n?/g, '\n').replace(UNSEEN, spelledOut);
}

/** The same on one line. */
export function printableLine(text: string): string {
  return printable(text).replace(/[\n\t]+/g, ' ');
}

/** JSON that is safe for a terminal: what it holds is the same when it is parsed. */
export function printableJson(value: unknown, indent?: number): string {
  // Within a JSON text such characters stand in strings alone.
  return (JSON.stringify(value, null, indent) ?? 'null').replace(UNSEEN, (sign) =>
    Array.from({ length: sign.length }, (_, n) => `\\u${hex(sign.charCodeAt(n), 4)}`).join(''),
  );
}

const UNSEEN = /(?![\n\t\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/gu;

function spelledOut(sign: string): string {
  return `\\u{${hex(sign.codePointAt(0) ?? 0, 1)}}`;
}

function hex(number: number, digits: number): string {
  return number.toString(16).padStart(digits, '0');
}
