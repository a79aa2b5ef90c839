/** Bytes as text: which encodings are read, what is no text, and lines. Pure. */

export interface Text {
  text: string;
  /** What stands before it in the file. */
  bom: 'utf-8' | 'utf-16le' | null;
}

const UTF_8 = Buffer.from([0xef, 0xbb, 0xbf]);
const UTF_16 = Buffer.from([0xff, 0xfe]);

/** null for what is no text in UTF-8, or in UTF-16 with its mark. */
export function textOf(bytes: Buffer): Text | null {
  if (bytes.subarray(0, 2).equals(UTF_16)) {
    const text = decoded('utf-16le', bytes.subarray(2));
    return text === null ? null : { text, bom: 'utf-16le' };
  }
  const bom = bytes.subarray(0, 3).equals(UTF_8) ? 'utf-8' : null;
  const rest = bom === null ? bytes : bytes.subarray(3);
  if (rest.includes(0)) return null;
  const text = decoded('utf-8', rest);
  return text === null ? null : { text, bom };
}

export function bytesOf({ text, bom }: Text): Buffer {
  if (bom === 'utf-16le') return Buffer.concat([UTF_16, Buffer.from(text, 'utf16le')]);
  return bom === null ? Buffer.from(text) : Buffer.concat([UTF_8, Buffer.from(text)]);
}

/** Without their ends; a last line that is ended is no empty one more. */
export function linesOf(text: string): string[] {
  if (text === '') return [];
  const lines = text.split(/\r?\n/);
  if (lines.at(-1) === '') lines.pop();
  return lines;
}

/**
 * Where `wanted` stands in a text, also where it overlaps itself; no more than `most` places. Takes as long as both are,
 * whatever they are made of (Knuth, Morris and Pratt): what comes with a language may take their product.
 */
export function placesIn(text: string, wanted: string, most: number): number[] {
  const fallback = [0];
  for (let n = 1, held = 0; n < wanted.length; n++) {
    while (held > 0 && wanted[n] !== wanted[held]) held = fallback[held - 1] ?? 0;
    if (wanted[n] === wanted[held]) held++;
    fallback.push(held);
  }
  const found: number[] = [];
  for (let n = 0, held = 0; n < text.length && found.length < most; n++) {
    while (held > 0 && text[n] !== wanted[held]) held = fallback[held - 1] ?? 0;
    if (text[n] === wanted[held]) held++;
    if (held < wanted.length) continue;
    found.push(n - wanted.length + 1);
    held = fallback[held - 1] ?? 0;
  }
  return found;
}

function decoded(encoding: string, bytes: Buffer): string | null {
  try {
    return new TextDecoder(encoding, { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}
