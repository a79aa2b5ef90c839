/**
 * Cuts text without splitting a character, and marks the cut: text is never shortened silently. And text that a terminal
 * or a person can read: without control characters, and sizes in words.
 */

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

interface Cut {
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

// The pieces in which a long line of a file is searched, and known (`Origins`). Pure.

/** Characters: longer lines are split, so that a hit remains short enough to read. */
const LONGEST = 1_500;

export function* piecesOf(line: string): Generator<string> {
  const text = line.trim();
  for (let from = 0; from < text.length; ) {
    let until = Math.min(text.length, from + LONGEST);
    if (until < text.length) {
      const space = text.lastIndexOf(' ', until);
      if (space > from + LONGEST / 2) until = space;
      else if (/[\uD800-\uDBFF]/.test(text[until - 1] ?? '')) until--;
    }
    yield text.slice(from, until).trim();
    from = until;
  }
}

/**
 * Words of others, safe for a terminal: line ends and tabs stay; control characters, and marks that are not seen or turn
 * the writing, are spelled out, but for the joiners of emoji and scripts.
 */
export function printable(text: string): string {
  return text.replace(/\r\n?/g, '\n').replace(UNSEEN, spelledOut);
}

/** The same on one line. */
export function printableLine(text: string): string {
  return printable(text).replace(/[\n\t]+/g, ' ');
}

/** JSON that is safe for a terminal: what it holds is the same when it is parsed. */
export function printableJson(value: unknown, indent?: number): string {
  // Within a JSON text such characters stand in strings alone.
  return (JSON.stringify(value, null, indent) ?? 'null').replace(UNSEEN, (sign) =>
    Array.from({ length: sign.length }, (_, n) => `\\u${hex(sign.charCodeAt(n), 4)}`).join(''),
  );
}

const UNSEEN = /(?![\n\t\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/gu;

function spelledOut(sign: string): string {
  return `\\u{${hex(sign.codePointAt(0) ?? 0, 1)}}`;
}

function hex(number: number, digits: number): string {
  return number.toString(16).padStart(digits, '0');
}

/** A number of bytes in readable form. */
export function sizeInWords(bytes: number): string {
  if (bytes < 1000) return `${bytes} bytes`;
  if (bytes < 999_500) return `${Math.round(bytes / 1000)} kB`;
  if (bytes < 999_950_000) return `${(bytes / 1_000_000).toFixed(1)} MB`;
  return `${(bytes / 1_000_000_000).toFixed(1)} GB`;
}
