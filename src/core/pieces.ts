/** The pieces in which a long line of a file is searched, and known (`Origins`). Pure. */

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
