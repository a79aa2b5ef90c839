/** Finds the words that two texts share: a simple measure that anybody can verify by eye. Pure. */

/**
 * Common words that say nothing about a text's subject, for languages in which the three-letter minimum is not enough.
 */
const STOP_WORDS = new Set(
  (
    'the and for are was were has have had not but you your yours our his her hers him she they them their its ' +
    'this that these those there here with from into onto over about what which who whom when where why how ' +
    'will would can could should shall may might must does did done been being than then too very just also ' +
    'only some any all each more most such own out off ' +
    'der die das den dem des ein eine einer einem einen und oder aber ist sind war waren hat haben ich sie wir ' +
    'ihr mir mich dir dich sich nicht mit von aus bei zum zur auf für als auch noch nur dass wenn wie was wer ' +
    'les des une est sont dans pour que qui pas avec sur par vous nous ils elle los las una por para con del ' +
    'como más pero sus esta este'
  ).split(' '),
);

/** Alphabets in which words of one or two letters seldom carry meaning. */
const ALPHABET = /\p{Script=Latin}|\p{Script=Greek}|\p{Script=Cyrillic}|\p{Script=Arabic}|\p{Script=Hebrew}/u;

/** Creates the function that finds a text's words by Unicode's rules (by dictionary in scripts without spaces). */
export function wordFinder(): (text: string) => Set<string> {
  const segmenter = new Intl.Segmenter('en', { granularity: 'word' });
  return (text) => {
    const words = new Set<string>();
    for (const { segment, isWordLike } of segmenter.segment(text.normalize('NFKC').toLowerCase())) {
      if (isWordLike && hasWeight(segment)) words.add(segment);
    }
    return words;
  };
}

function hasWeight(word: string): boolean {
  const least = ALPHABET.test(word) ? 3 : 2;
  return Array.from(word).length >= least && !STOP_WORDS.has(word);
}

/** In the order of `words`. */
export function sharedWords(words: Set<string>, others: Set<string>): string[] {
  return [...words].filter((word) => others.has(word));
}
