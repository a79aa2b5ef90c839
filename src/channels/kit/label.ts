/** The label of a button: one line, cut between what people see as characters. Pure. */
const characters = new Intl.Segmenter(undefined, { granularity: 'grapheme' });

/** At most so many UTF-16 units. */
export function label(text: string, most: number): string {
  const line = text.replace(/[\s\p{Cc}]+/gu, ' ').trim();
  if (line.length <= most) return line;
  let cut = '';
  for (const { segment } of characters.segment(line)) {
    if (cut.length + segment.length >= most) break;
    cut += segment;
  }
  return `${cut.trimEnd()}…`;
}

/** Short ones stand beside each other, as far as a row has room for them. */
export function rows<Each extends { label: string }>(
  buttons: readonly Each[],
  { most, characters: wide }: { most: number; characters: number },
): Each[][] {
  const all: Each[][] = [];
  for (const button of buttons) {
    const row = all.at(-1) ?? [];
    const width = [...row, button].reduce((sum, each) => sum + each.label.length, 0);
    if (row.length > 0 && row.length < most && width <= wide) row.push(button);
    else all.push([button]);
  }
  return all;
}
