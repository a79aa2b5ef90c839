/** Text in bytes of an encoding that nobody told. */

/** By its byte order mark; null: none. */
export function markedEncoding(bytes: Buffer): 'utf-8' | 'utf-16le' | 'utf-16be' | null {
  const mark = bytes.toString('latin1', 0, 3);
  if (mark === '\xef\xbb\xbf') return 'utf-8';
  if (mark.startsWith('\xff\xfe')) return 'utf-16le';
  return mark.startsWith('\xfe\xff') ? 'utf-16be' : null;
}

/** Without the byte order mark; null if it is something else. `isCut`: the last character may be incomplete. */
export function decodedAs(encoding: string, bytes: Buffer, isCut = false): string | null {
  try {
    return new TextDecoder(encoding, { fatal: true }).decode(bytes, { stream: isCut });
  } catch {
    return null;
  }
}
