/**
 * Represents UTF-8 bytes as a string with one character per byte, so that cutting and joining preserves every byte,
 * even of invalid UTF-8.
 */

export const BOM = '\xef\xbb\xbf';

export function encode(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1');
}

export function decode(bytes: string): string {
  return Buffer.from(bytes, 'latin1').toString('utf8');
}

/** Whether text appended to this starts at the beginning of a line. */
export function endsLine(bytes: string): boolean {
  return bytes === '' || bytes.endsWith('\n') || bytes.endsWith('\r');
}

/** The lines, each with its line end. */
export function linesOf(bytes: string): string[] {
  return bytes.match(/[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+$/g) ?? [];
}
