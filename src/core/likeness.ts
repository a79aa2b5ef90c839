/**
 * What a name or a tag looks like to whoever reads it: after the skeletons of Unicode Technical Standard #39, with
 * capitals and accents making no difference. Pure.
 */
import { CONFUSABLES } from './confusables.js';

const SAME_LOOK = new Map(
  CONFUSABLES.join(', ')
    .split(', ')
    .flatMap((row) => {
      const [look = '', letters = ''] = row.split(' ');
      return Array.from(letters, (letter) => [letter, look] as const);
    }),
);

/** Nobody sees these. */
export const INVISIBLE = /[\p{DI}\p{Cf}]/gu;
/** Accents; not the vowel signs that other scripts write as marks. */
const ACCENTS = /[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]/gu;
const APART = /[^\p{L}\p{N}\p{M}]+/gu;

/** One piece of text as it looks; for comparing with another. */
export function lookOf(text: string): string {
  // Accents go first, while they are characters of their own, and once more with those of what a letter looks like.
  const bare = text
    .replace(INVISIBLE, '')
    .normalize('NFKD')
    .replace(INVISIBLE, '')
    .replace(ACCENTS, '')
    .normalize('NFC');
  return Array.from(bare, (letter) => SAME_LOOK.get(letter) ?? letter)
    .join('')
    .toLowerCase();
}

/**
 * How a name can be read: as it is written, where a capital I looks like an l, and in lower case, where it looks like an i.
 * Spaces and punctuation are only gaps; none where there is no letter. Two names that share a reading can be mistaken.
 */
export function readingsOf(name: string): string[] {
  const readings = [name, name.normalize('NFKC').toLowerCase()].map((text) =>
    lookOf(text).replace(APART, ' ').trim(),
  );
  return readings.filter((reading) => reading !== '');
}

export function looksLike(name: string, other: string): boolean {
  const others = readingsOf(other);
  return readingsOf(name).some((reading) => others.includes(reading));
}
