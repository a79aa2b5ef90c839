/** In the menu: a dot beside Operations while something there needs a person. */
import { useEffect } from 'preact/hooks';
import { useTexts } from '../app.ts';
import { watchWorst, worst } from './worst.ts';

/** For `aria-describedby` of the link, whose name stays as it is. */
export const WORST_MARK = 'worst-mark';

export function WorstMark() {
  const { operations } = useTexts();
  useEffect(watchWorst, []);
  const level = worst.value;
  if (level === null || level === 'good') return null;
  return (
    <>
      <i class={`worst-mark ${level}`} aria-hidden="true" />
      <span id={WORST_MARK} hidden>
        {operations.attention}
      </span>
    </>
  );
}
