/** Changes of memory, newest first: when, by whom, what, and Undo. */
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import type { MemoryChange } from '../../../src/board/protocol.ts';
import { Refusal } from '../api.ts';
import { useTexts } from '../app.ts';
import { Difference } from '../kit/difference.tsx';
import { languageOfPage, timeInWords } from '../kit/words.ts';
import { onChange } from '../live.ts';
import { filled } from '../texts/texts.ts';
import { type HistoryPage, readHistory, undo } from './files.ts';

export function History({
  chatId,
  personaId,
  names,
}: {
  chatId: string;
  personaId: string;
  /** Of personas, by id. */
  names: ReadonlyMap<string, string>;
}) {
  const { memory, frame } = useTexts();
  const [pages, setPages] = useState<HistoryPage[] | null>(null);
  const count = useRef(1);
  const [fault, setFault] = useState<string | null>(null);
  const [done, setDone] = useState('');
  const load = useCallback(async () => {
    try {
      const found: HistoryPage[] = [];
      for (let n = 0; n < count.current; n++) {
        const last = found.at(-1);
        if (last?.before === null) break;
        found.push(await readHistory(chatId, personaId, last?.before ?? null));
      }
      setPages(found);
      setFault(null);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      setFault(error.message || frame.failed);
    }
  }, []);
  useEffect(() => {
    void load();
    const ends = [onChange('memory', load), onChange('conversations', load)];
    return () => {
      for (const end of ends) end();
    };
  }, []);
  if (pages === null) return fault === null ? null : <p role="alert">{fault}</p>;
  const changes = pages.flatMap((page) => page.changes);
  return (
    <div class="stack">
      <p class="soft small">{memory.historyNote}</p>
      {fault !== null && <p role="alert">{fault}</p>}
      <p role="status" class="small">
        {done}
      </p>
      {changes.length === 0 && <p class="soft">{memory.noHistory}</p>}
      <ol class="history">
        {changes.map((change) => (
          <Entry
            key={change.id}
            change={change}
            who={whoIn(change, names)}
            undone={(file) => {
              setDone(filled(memory.undone, { file }));
              void load();
            }}
          />
        ))}
      </ol>
      {pages.at(-1)?.before !== null && (
        <div>
          <button
            type="button"
            class="quiet"
            onClick={() => {
              count.current++;
              void load();
            }}
          >
            {memory.older}
          </button>
        </div>
      )}
    </div>
  );

  function whoIn({ kind, personaId: by }: MemoryChange, all: ReadonlyMap<string, string>): string {
    const name = all.get(by) ?? by;
    if (kind === 'owner') return memory.byYou;
    if (kind === 'night') return filled(memory.byNight, { name });
    return kind === 'flush' ? filled(memory.byFlush, { name }) : name;
  }
}

function Entry({
  change,
  who,
  undone,
}: {
  change: MemoryChange;
  who: string;
  undone: (file: string) => void;
}) {
  const { memory, frame, kit } = useTexts();
  const { id, file, at, isUndone, isTainted, parts } = change;
  const [now, setNow] = useState<string | null>(null);
  const [fault, setFault] = useState<string | null>(null);
  const isBusy = useRef(false);

  async function takeBack(): Promise<void> {
    if (isBusy.current) return;
    isBusy.current = true;
    setFault(null);
    try {
      const text = await undo(id);
      setNow(text);
      if (text === null) undone(file);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      setFault(error.message || frame.failed);
    } finally {
      isBusy.current = false;
    }
  }

  return (
    <li class={`card ${isUndone ? 'undone' : ''}`}>
      <header class="row">
        <div class="grow">
          <b>{who}</b>{' '}
          <time class="soft small" dateTime={new Date(at).toISOString()}>
            {timeInWords(at, languageOfPage())}
          </time>
          <p class="soft small">
            {file}
            {isTainted && ` · ${memory.tainted}`}
          </p>
        </div>
        {isUndone ? (
          <span class="tag">{memory.isUndone}</span>
        ) : (
          <button type="button" onClick={takeBack}>
            {kit.undo}
          </button>
        )}
      </header>
      {parts.map(({ tier, before, after }) => (
        <div key={tier}>
          {tier !== null && <p class="soft tiny">{filled(memory.tier, { tier })}</p>}
          <Difference before={before} after={after} around={1} />
        </div>
      ))}
      {fault !== null && <p role="alert">{fault}</p>}
      {now !== null && (
        <div class="stack">
          <p role="alert">{memory.overwritten}</p>
          <Difference before={parts[0]?.after ?? ''} after={now} around={1} />
        </div>
      )}
    </li>
  );
}
