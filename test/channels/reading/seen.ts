/** What a person sees of a message: its letters, each with the styles that it is shown in. */
export interface Letter {
  letter: string;
  styles: ReadonlySet<string>;
}

export function letters(text: string, styles: Iterable<string> = []): Letter[] {
  const all = new Set(styles);
  return [...text].map((letter) => ({ letter, styles: all }));
}

export function words(seen: readonly Letter[]): string {
  return seen.map(({ letter }) => letter).join('');
}

/** Without what is not to be seen: whitespace, which may differ at ends of lines and of marks, and invisible signs. */
export function visible(seen: readonly Letter[]): Letter[] {
  return seen.filter(({ letter }) => !/[\s\u200b\u2060]/.test(letter));
}

export function stylesOf({ styles }: Letter): string {
  return [...styles].sort().join(' ');
}
