/** Derives a persona's id from its name: the id is the name of its folder, and names are compared by it. */

/** Folders of a chat that are not personas. */
const RESERVED = ['memory', 'archive'];

const MAX_BYTES = 60;

/**
 * NFKC and lower case; letters and digits of all scripts are kept (with combining marks, which some scripts use for
 * vowels), every run of other characters becomes one `-`. At most 60 bytes, cut at a character; may be empty.
 */
export function slug(name: string): string {
  let id = '';
  for (const character of name.normalize('NFKC').toLowerCase().normalize('NFKC')) {
    const belongs =
      /[\p{L}\p{N}]/u.test(character) || (/\p{M}/u.test(character) && /[\p{L}\p{M}]$/u.test(id));
    if (!belongs && (id === '' || id.endsWith('-'))) continue;
    const longer = id + (belongs ? character : '-');
    if (Buffer.byteLength(longer) > MAX_BYTES) break;
    id = longer;
  }
  return id.replace(/-$/, '');
}

export function isReserved(id: string): boolean {
  return RESERVED.includes(id);
}

/** Most ids; what they are is seen at once. */
const PLAIN_ID = /^(?=.{1,60}$)[a-z0-9]+(?:-[a-z0-9]+)*$/;

/** An id is its own slug; nothing else may become a folder. */
export function isPersonaId(id: string): boolean {
  return (PLAIN_ID.test(id) || (id !== '' && slug(id) === id)) && !isReserved(id);
}
