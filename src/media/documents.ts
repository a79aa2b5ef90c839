/** Recognises text documents by their bytes, because names and types are too often wrong, and decodes them. Pure. */
import { cutWithMarker, decodedAs, markedEncoding } from '../core/cut.js';

const MOST_CHARS = 20_000;
/** A character takes at most 4 bytes, so a longer document is always recognised as too long. */
const HEAD_BYTES = 4 * (MOST_CHARS + 1);

/** null: it is no text. */
export function readDocument(bytes: Buffer): string | null {
  // PDF, PostScript and RTF may be plain ASCII, but are not readable as text.
  const isPrint = /^(%PDF-|%!PS|\{\\rtf)/.test(bytes.toString('latin1', 0, 5));
  const text = isPrint ? null : decode(bytes.subarray(0, HEAD_BYTES));
  return text === null ? null : cutWithMarker(text, MOST_CHARS, 'document-max-chars');
}

function decode(head: Buffer): string | null {
  const marked = markedEncoding(head);
  if (marked === null && head.includes(0)) return null;
  const text = decodedAs(marked ?? 'utf-8', head, true);
  if (text !== null) return !text.includes('\0') && share(text, CONTROLS) <= MOST_CONTROLS ? text : null;
  if (marked !== null) return null;
  // Any bytes are valid windows-1252: require mostly ASCII.
  const western = fromWestern(head);
  return share(western, CONTROLS) === 0 && share(western, NOT_ASCII) <= MOST_NOT_ASCII ? western : null;
}

/** windows-1252 from 0x80 on, where Latin-1 has control characters; five positions are unassigned. */
const WESTERN = '€\x81‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ';

/** Some versions of Node decode windows-1252 as Latin-1. */
function fromWestern(head: Buffer): string {
  return head
    .toString('latin1')
    .replace(/[\x80-\x9f]/g, (character) => WESTERN[character.charCodeAt(0) - 0x80] ?? character);
}

/** Text has none, except escape sequences in terminal logs. */
const CONTROLS = /(?!\s)\p{Cc}/gu;
const MOST_CONTROLS = 0.1;
const NOT_ASCII = /\P{ASCII}/gu;
const MOST_NOT_ASCII = 0.3;

/** As a share of all characters. */
function share(text: string, characters: RegExp): number {
  return (text.match(characters)?.length ?? 0) / Math.max(1, text.length);
}
