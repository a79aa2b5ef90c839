/** A moment in a few words, exact for machines. */
import { languageOfPage, timeInWords } from './words.ts';

export function Time({ at, class: name }: { at: number; class?: string }) {
  return (
    <time class={name} dateTime={new Date(at).toISOString()}>
      {timeInWords(at, languageOfPage())}
    </time>
  );
}
