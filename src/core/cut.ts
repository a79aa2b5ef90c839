/** Cutting text without halving a character, and the marker that says so: nothing is ever cut without a word. */

/** The first `most` characters (UTF-16 units), one less where that would halve a surrogate pair. */
export function cutAt(words: string, most: number): string {
  const last = words.charCodeAt(most - 1);
  return words.slice(0, last >= 0xd800 && last <= 0xdbff ? most - 1 : most);
}

/** What stands, behind a blank line, where text was cut. `limit` names the setting or rule. */
export function cutMarker(limit: string, most: number): string {
  return `<<truncated due to ${limit}=${most}>>`;
}

/** All of it, or as much as the limit allows and the marker. */
export function cutWithMarker(words: string, most: number, limit: string): string {
  return words.length <= most ? words : `${cutAt(words, most)}\n\n${cutMarker(limit, most)}`;
}
