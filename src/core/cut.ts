/** Cuts text without splitting a character, and marks the cut: text is never shortened silently. */

/** The first `most` characters (UTF-16 units), one fewer where that would split a surrogate pair. */
export function cutAt(words: string, most: number): string {
  const last = words.charCodeAt(most - 1);
  return words.slice(0, last >= 0xd800 && last <= 0xdbff ? most - 1 : most);
}

/** The marker that follows cut text, after a blank line. `limit` names the setting or rule. */
export function cutMarker(limit: string, most: number): string {
  return `<<truncated due to ${limit}=${most}>>`;
}

/** The whole text, or as much as the limit allows, plus the marker. */
export function cutWithMarker(words: string, most: number, limit: string): string {
  return words.length <= most ? words : `${cutAt(words, most)}\n\n${cutMarker(limit, most)}`;
}

export interface Cut {
  text: string;
  /** The number of characters of the trimmed text that are shown. */
  kept: number;
}

/** At most `max` characters of the trimmed text, followed by a marker that names the limit. */
export function cut(text: string, max: number, limit: string): Cut {
  const trimmed = text.trim();
  return {
    text: cutWithMarker(trimmed, max, limit),
    kept: trimmed.length <= max ? trimmed.length : cutAt(trimmed, max).length,
  };
}

/** Whether a text contains such a marker: then it is a shortened copy and must not replace the original. */
export function hasMarker(text: string): boolean {
  return /<<truncated due to [a-z-]+=\d+>>/.test(text);
}
