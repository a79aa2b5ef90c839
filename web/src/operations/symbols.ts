/** Characters that nobody would see, as symbols: `␛[31m`, `‹202E›`. Line ends and tabs stay, unless it is one line. */
export function visible(text: string, isOneLine = false): string {
  const shown = text.replace(/\r\n/g, '\n').replace(UNSEEN, symbolOf);
  return isOneLine ? shown.replace(/[\n\t]/g, symbolOf) : shown;
}

/** But the joiners of emoji and scripts. */
const UNSEEN = /(?![\n\t\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/gu;

function symbolOf(sign: string): string {
  const code = sign.codePointAt(0) ?? 0;
  if (code < 0x20) return String.fromCodePoint(0x2400 + code);
  if (code === 0x7f) return '\u2421';
  return `‹${code.toString(16).toUpperCase().padStart(4, '0')}›`;
}
