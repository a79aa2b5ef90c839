/** Pieces of the boxes: a region with its state, moments, strangers' words, and what follows a press. */
import type { ComponentChildren } from 'preact';
import { useCallback, useEffect, useId, useRef, useState } from 'preact/hooks';
import type { OperationsLevel } from '../../../src/board/protocol-operations.ts';
import { Refusal, read } from '../api.ts';
import { useTexts } from '../app.ts';
import { languageOfPage, timeInWords } from '../kit/words.ts';

export function Box({
  title,
  level = 'good',
  line,
  children,
}: {
  title: string;
  level?: OperationsLevel;
  /** The state in a few words. */
  line?: ComponentChildren;
  children?: ComponentChildren;
}) {
  const id = useId();
  return (
    <section class={`card box ${level}`} aria-labelledby={id}>
      <header class="row">
        <h2 id={id}>{title}</h2>
        {line && <p class="soft small grow">{line}</p>}
      </header>
      {children}
    </section>
  );
}

export function When({ at }: { at: number }) {
  const language = languageOfPage();
  const whole = new Intl.DateTimeFormat(language, { dateStyle: 'full', timeStyle: 'medium' }).format(at);
  return (
    <time dateTime={new Date(at).toISOString()} title={whole}>
      {timeInWords(at, language)}
    </time>
  );
}

const REREAD_MS = 10_000;

/** An answer of the gateway, read again every ten seconds while somebody sees it. `again` reads now. */
export function useReading<Answer>(path: string, everyMs = REREAD_MS) {
  const [answer, setAnswer] = useState<Answer | null>(null);
  const [isAway, setAway] = useState(false);
  const asked = useRef(0);
  const again = useCallback(async () => {
    asked.current += 1;
    const mine = asked.current;
    try {
      const found = await read<Answer>(path);
      // An answer that was overtaken is old.
      if (mine !== asked.current) return;
      setAnswer(found);
      setAway(false);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      if (mine === asked.current) setAway(true);
    }
  }, [path]);
  useEffect(() => {
    void again();
    const reread = () => void (document.visibilityState === 'visible' && again());
    const timer = setInterval(reread, everyMs);
    document.addEventListener('visibilitychange', reread);
    return () => {
      asked.current += 1;
      clearInterval(timer);
      document.removeEventListener('visibilitychange', reread);
    };
  }, [again, everyMs]);
  return { answer, isAway, again };
}

/** Runs what a button does: its outcome as a status, a refusal as an alert. */
export function useDeed(done: () => void) {
  const { frame } = useTexts();
  const [outcome, setOutcome] = useState<{ words: string; isBad: boolean } | null>(null);
  const [isBusy, setBusy] = useState(false);
  async function run(work: () => Promise<unknown>, words: string): Promise<void> {
    setBusy(true);
    setOutcome(null);
    try {
      await work();
      setOutcome({ words, isBad: false });
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      setOutcome({ words: error.message || frame.failed, isBad: true });
    } finally {
      setBusy(false);
      done();
    }
  }
  const said = (
    <>
      <p role="status" class="small">
        {outcome?.isBad === false ? outcome.words : ''}
      </p>
      {outcome?.isBad && <p role="alert">{outcome.words}</p>}
    </>
  );
  return { run, isBusy, said };
}
