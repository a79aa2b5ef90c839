/** Below the newest answer: its versions, and a menu that says it anew, goes on, edits it or takes it back. */
import type { ReadonlySignal } from '@preact/signals';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { LogRow } from '../../../src/board/protocol.ts';
import { useTexts } from '../app.ts';
import { Dialog } from '../kit/dialog.tsx';
import { Icon, type IconName } from '../kit/icons.tsx';
import { Popover } from '../kit/popover.tsx';
import { addressOf } from '../place.ts';
import { filled } from '../texts/texts.ts';
import { suggested } from './composer.tsx';

type Way = 'back' | 'forward' | 'again';

/** The button by which the last version was asked for: the next one takes its focus over. */
let asked: Way | null = null;

export function Versions({
  chat,
  row,
  isUnderWay,
  order,
}: {
  chat: string;
  row: LogRow;
  isUnderWay: ReadonlySignal<boolean>;
  /** Sends a command. */
  order: (text: string) => void;
}) {
  const { chat: texts } = useTexts();
  const [isEdited, setEdited] = useState(false);
  const controls = useRef<HTMLDivElement>(null);
  const isGone = row.versions === undefined || isUnderWay.value;
  useLayoutEffect(() => {
    if (isGone || asked === null) return;
    const way = asked;
    asked = null;
    // The focus of somebody who has gone on meanwhile stays.
    if (document.activeElement === document.body)
      controls.current?.querySelector<HTMLElement>(`[data-way="${way}"]`)?.focus();
  }, [isGone]);
  if (row.versions === undefined || isGone) return null;

  const { shown, all } = row.versions;
  const at = all.indexOf(shown);
  const isGreeting = row.turn === undefined;
  const button = (way: Way, icon: IconName, label: string, to: number | undefined | null) => (
    <button
      type="button"
      class="icon quiet"
      aria-label={label}
      title={label}
      data-way={way}
      aria-disabled={to === undefined}
      onClick={() => {
        if (to === undefined) return;
        asked = way;
        order(to === null ? '/again' : `/again ${to}`);
      }}
    >
      <Icon name={icon} />
    </button>
  );
  return (
    <div ref={controls} class="versions row">
      {all.length > 1 && (
        <fieldset class="row" aria-label={texts.versions}>
          {button('back', 'back', texts.earlierVersion, all[at - 1])}
          <span class="small soft">{filled(texts.versionOf, { n: at + 1, all: all.length })}</span>
          {button('forward', 'forward', texts.laterVersion, all[at + 1])}
          {!isGreeting && button('again', 'again', texts.again, null)}
        </fieldset>
      )}
      <Change {...{ chat, row, order }} edit={() => setEdited(true)} />
      {isEdited && (
        <Edit text={row.text} save={(text) => order(`/edit ${text}`)} close={() => setEdited(false)} />
      )}
    </div>
  );
}

function Change({
  chat,
  row,
  order,
  edit,
}: {
  chat: string;
  row: LogRow;
  order: (text: string) => void;
  edit: () => void;
}) {
  const { chat: texts, conversations } = useTexts();
  return (
    <Popover label={texts.changeAnswer}>
      {(act) => (
        <div class="stack actions">
          {row.turn !== undefined && (
            <>
              <button type="button" class="quiet" onClick={act(() => order('/again'))}>
                {texts.again}
              </button>
              <button
                type="button"
                class="quiet"
                onClick={act(() => {
                  suggested.value = { text: '/again ', isBegin: true };
                })}
              >
                {texts.againWith}
              </button>
              <button type="button" class="quiet" onClick={act(() => order('/continue'))}>
                {texts.goOn}
              </button>
            </>
          )}
          <button type="button" class="quiet" onClick={act(edit)}>
            {texts.edit}
          </button>
          <button type="button" class="quiet" onClick={act(() => order('/undo'))}>
            {texts.unsay}
          </button>
          {row.turn !== undefined && (
            <a class="button quiet" href={addressOf('conversations', [chat], { turn: row.turn })}>
              {conversations.details}
            </a>
          )}
        </div>
      )}
    </Popover>
  );
}

function Edit({ text, save, close }: { text: string; save: (text: string) => void; close: () => void }) {
  const { chat, kit } = useTexts();
  const [words, setWords] = useState(text);
  return (
    <Dialog title={chat.editTitle} close={close} isWide>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          close();
          if (words.trim() !== text.trim()) save(words.trim());
        }}
      >
        <textarea
          rows={10}
          required
          aria-label={chat.answerText}
          value={words}
          onInput={({ currentTarget }) => setWords(currentTarget.value)}
        />
        <div class="buttons">
          <button type="button" onClick={close}>
            {kit.cancel}
          </button>
          <button type="submit" class="primary">
            {chat.replace}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
