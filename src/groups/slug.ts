/** The id of a persona from the name a person gave it: the name of its folder, and how names are compared. */

/** Folders of a chat that are not personas. */
const RESERVED = ['memory', 'archive'];

const MAX_BYTES = 60;

/**
 * NFKC and lower case; letters and digits of any script stay (with the marks that some scripts write vowels
 * with), every run of anything else becomes one `-`. At most 60 bytes of whole characters; may be empty.
 */
export function slug(name: string): string {
  const plain = name.normalize('NFKC').toLowerCase().normalize('NFKC');
  let kept = '';
  for (const character of plain) {
    const belongs =
      /[\p{L}\p{N}]/u.test(character) || (/\p{M}/u.test(character) && /[\p{L}\p{M}]$/u.test(kept));
    if (belongs) kept += character;
    else if (kept !== '' && !kept.endsWith('-')) kept += '-';
  }
  return shorten(kept).replace(/-$/, '');
}

export function isReserved(id: string): boolean {
  return RESERVED.includes(id);
}

/** An id is the slug of itself; nothing else may become a folder. */
export function isPersonaId(id: string): boolean {
  return id !== '' && slug(id) === id && !isReserved(id);
}

function shorten(text: string): string {
  let short = '';
  let bytes = 0;
  for (const character of text) {
    bytes += Buffer.byteLength(character);
    if (bytes > MAX_BYTES) break;
    short += character;
  }
  return short;
}
