/** The outcome of a step: under way, done, or why not. A step that is saved is told again when it is in effect. */
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { sentenceOf } from '../api.ts';
import { useTexts } from '../app.ts';
import { Fault } from '../kit/fault.tsx';
import { filled } from '../texts/texts.ts';
import { reread, type SavedKeys, setup } from './requests.ts';

export type Outcome =
  | { kind: 'under way' | 'done'; says: ComponentChildren; warnings?: readonly string[] }
  | { kind: 'failed'; says: string };

const LOOK_EVERY_MS = 500;
/** A gateway that stays away longer says why in its log. */
const MOST_LOOKS = 40;

export function useSteps() {
  const { setup: texts } = useTexts();
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  const run = useRef(0);
  useEffect(() => () => void run.current++, []);

  /** Only the newest step is told. */
  async function step(underWay: string, work: (isNewest: () => boolean) => Promise<Outcome>): Promise<void> {
    const own = ++run.current;
    const isNewest = () => run.current === own;
    setOutcome({ kind: 'under way', says: underWay });
    let end: Outcome;
    try {
      end = await work(isNewest);
    } catch (error) {
      end = { kind: 'failed', says: sentenceOf(error) };
    }
    if (isNewest()) setOutcome(end);
  }

  return {
    outcome,
    step,
    /** `isInEffect`: by the state that the gateway tells. */
    save: (work: () => Promise<SavedKeys>, isInEffect: () => boolean): Promise<void> =>
      step(texts.saving, async (isNewest) => {
        const { file, isSame, warnings } = await work();
        if (isSame) return { kind: 'done', says: texts.same };
        setOutcome({ kind: 'done', says: filled(texts.saved, { file }), warnings });
        for (let looks = 0; looks < MOST_LOOKS && isNewest(); looks++) {
          await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
          await reread();
          if (setup.value !== null && isInEffect()) return { kind: 'done', says: texts.inEffect, warnings };
        }
        return { kind: 'done', says: filled(texts.saved, { file }), warnings };
      }),
  };
}

/** The status is there from the first, so that readers hear what comes into it. */
export function Told({ outcome }: { outcome: Outcome | null }) {
  const isDone = outcome !== null && outcome.kind !== 'failed';
  return (
    <>
      <div role="status" class={outcome?.kind === 'done' ? 'note stack' : 'soft small'}>
        {isDone && <p>{outcome.says}</p>}
        {isDone && outcome.warnings?.map((warning) => <p key={warning}>{warning}</p>)}
      </div>
      <Fault says={outcome?.kind === 'failed' ? outcome.says : null} />
    </>
  );
}
