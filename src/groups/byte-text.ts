/**
 * Text as a string of one character for each of its UTF-8 bytes: what is cut out of it and put together again
 * is the same to the byte, also where somebody's file is not quite UTF-8.
 */

export const BOM = '\xef\xbb\xbf';

export function encode(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1');
}

export function decode(bytes: string): string {
  return Buffer.from(bytes, 'latin1').toString('utf8');
}

/** Whether what comes behind this stands at the beginning of a line. */
export function endsLine(bytes: string): boolean {
  return bytes === '' || bytes.endsWith('\n') || bytes.endsWith('\r');
}

/** The lines, each with its line end. */
export function linesOf(bytes: string): string[] {
  return bytes.match(/[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+$/g) ?? [];
}
