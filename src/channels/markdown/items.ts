/**
 * Which lines are list items that may be written as a list in the platform's markup: a platform draws bullets by depth
 * and counts numbers itself, so what it shows must be what is in the text.
 */

export interface Item {
  indent: string;
  /** `•` or `3.`, say. */
  marker: string;
}

interface Open {
  indent: number;
  /** The last number, or the bullet; null where a line of this depth could not be shown as an item. */
  last: number | string | null;
  /** A blank line followed: the list may go on, but nothing is nested in this item any more. */
  ended: boolean;
}

const ITEM = /^( *)([•◦▪]|(?:0|[1-9]\d{0,8})\.) (?=\S)/;

/** `bullets` by depth, the last one for all that is deeper; lists deeper than `deepest` are text. */
export function createItems(bullets: readonly string[], deepest: number) {
  let open: Open[] = [];

  /** Whether a list may begin with it there. */
  function begins(marker: string, indent: number): boolean {
    const parent = open.at(-1);
    const isNested =
      parent !== undefined && parent.last !== null && !parent.ended && indent >= parent.indent + 2;
    if (indent > 0 && !isNested) return false;
    return /\d/.test(marker) || marker === bullets[Math.min(open.length, bullets.length - 1)];
  }

  return {
    /** The line as an item, or null where it must be written as text. */
    take(line: string): Item | null {
      if (line.trim() === '') {
        open = open.filter((each) => each.indent === 0).map((each) => ({ ...each, ended: true }));
        return null;
      }
      const found = ITEM.exec(line);
      const indent = found?.[1]?.length ?? line.length - line.trimStart().length;
      const marker = found?.[2];
      if (marker === undefined) {
        open = open.filter((each) => each.indent < indent);
        return null;
      }
      open = open.filter((each) => each.indent <= indent);
      const sibling = open.at(-1)?.indent === indent ? open.pop() : undefined;
      const next = typeof sibling?.last === 'number' ? `${sibling.last + 1}.` : sibling?.last;
      const fits = sibling === undefined ? begins(marker, indent) : marker === next;
      const isItem = fits && open.length < deepest;
      const last = /\d/.test(marker) ? Number.parseInt(marker, 10) : marker;
      open.push({ indent, last: isItem ? last : null, ended: false });
      return isItem ? { indent: ' '.repeat(indent), marker } : null;
    },
    /** A block that is no text ends every list. */
    end(): void {
      open = [];
    },
  };
}
