/** Changes to memory, newest first: when, by whom, what, and Undo. */
import { useCallback, useRef, useState } from 'preact/hooks';
import type { MemoryChange } from '../../../src/board/protocol.ts';
import { sentenceOf } from '../api.ts';
import { useTexts } from '../app.ts';
import { Difference } from '../kit/difference.tsx';
import { Fault } from '../kit/fault.tsx';
import { usePages } from '../kit/follow.ts';
import { Time } from '../kit/time.tsx';
import { filled } from '../texts/texts.ts';
import { readHistory, undo } from './files.ts';

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
  const { memory } = useTexts();
  const [done, setDone] = useState('');
  const { items, hasMore, more, fault, again } = usePages(
    ['memory', 'conversations'],
    useCallback(
      (before: number | null, signal: AbortSignal) => readHistory({ chatId, personaId }, before, signal),
      [chatId, personaId],
    ),
  );
  if (items === null) return <Fault says={fault} />;
  return (
    <div class="stack">
      <p class="soft small">{memory.historyNote}</p>
      <p role="status" class="small">
        {done}
      </p>
      {items.length === 0 && <p class="soft">{memory.noHistory}</p>}
      <ol class="history">
        {items.map((change) => (
          <Entry
            key={change.id}
            change={change}
            who={whoIn(change, names)}
            undone={(file) => {
              setDone(filled(memory.undone, { file }));
              void again();
            }}
          />
        ))}
      </ol>
      {hasMore && (
        <div>
          <button type="button" class="quiet" onClick={more}>
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
  const { memory, kit } = useTexts();
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
      setFault(sentenceOf(error));
    } finally {
      isBusy.current = false;
    }
  }

  return (
    <li class={`card ${isUndone ? 'undone' : ''}`}>
      <header class="row">
        <div class="grow">
          <b>{who}</b> <Time class="soft small" at={at} />
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
      <Fault says={fault} />
      {now !== null && (
        <div class="stack">
          <p role="alert">{memory.overwritten}</p>
          <Difference before={parts[0]?.after ?? ''} after={now} around={1} />
        </div>
      )}
    </li>
  );
}
