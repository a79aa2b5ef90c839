/** The field at the bottom: words, files, commands that complete themselves. What was typed survives a reload. */
import { signal } from '@preact/signals';
import { useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { BoardCommand } from '../../../src/board/protocol.ts';
import { useTexts } from '../app.ts';
import { draftOf, keepDraft } from '../kit/drafts.ts';
import { Fault } from '../kit/fault.tsx';
import { Icon } from '../kit/icons.tsx';
import { Listbox, movedBy } from '../kit/listbox.tsx';
import { languageOfPage, sizeInWords } from '../kit/words.ts';
import { filled } from '../texts/texts.ts';
import { useFiles } from './attaching.ts';
import { completionsFor } from './complete.ts';
import type { Attached } from './queue.ts';

/** Words to be put into the field by something else on the page; taken once. */
export const suggested = signal<{ text: string; isBegin?: true } | null>(null);

export function Composer({
  chat,
  commands,
  isUnderWay,
  send,
  stop,
}: {
  chat: string;
  commands: readonly BoardCommand[];
  /** An answer is. */
  isUnderWay: boolean;
  send: (text: string, files: Attached[]) => void;
  stop: () => void;
}) {
  const { chat: texts } = useTexts();
  const field = useRef<HTMLTextAreaElement>(null);
  const [text, setText] = useState(() => draftOf(chat));
  const { files, fault, coming, attach, detach, clear } = useFiles(() => field.current?.focus());
  useDraft(chat, text);
  useLayoutEffect(() => grow(field.current), [text]);
  useEffect(() => {
    const words = suggested.value;
    if (words === null) return;
    suggested.value = null;
    setText((last) => (words.isBegin ? words.text + last : words.text));
    field.current?.focus();
  }, [suggested.value]);

  function submit(): void {
    if ((text.trim() === '' && files.length === 0) || coming > 0) return;
    send(text, files);
    setText('');
    keepDraft(chat, '');
    clear();
    // On a phone, the keyboard would come back over what one wants to read.
    if (matchMedia('(pointer: fine)').matches) field.current?.focus();
  }
  const completion = useCompletion(text, setText, commands);
  const composing = useComposing();

  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      {completion.listbox}
      <Fault says={fault} />
      {coming > 0 && <p role="status">{filled(texts.attaching, { count: `${coming}` })}</p>}
      {files.length > 0 && <Attachments files={files} detach={detach} />}
      <div class="field-row">
        <Attach attach={attach} />
        <textarea
          ref={field}
          data-slash
          rows={1}
          aria-label={texts.message}
          placeholder={texts.placeholder}
          value={text}
          {...completion.attributes}
          onInput={({ currentTarget }) => setText(currentTarget.value)}
          onPaste={(event) => {
            const pasted = event.clipboardData?.files;
            if (pasted && pasted.length > 0) attach(pasted);
          }}
          onCompositionStart={composing.begin}
          onCompositionEnd={composing.end}
          onKeyDown={(event) => {
            if (composing.has(event) || completion.takes(event)) return;
            if (event.key !== 'Enter' || event.shiftKey) return;
            event.preventDefault();
            submit();
          }}
        />
        {isUnderWay && (
          <button type="button" class="icon stop" aria-label={texts.stop} title={texts.stop} onClick={stop}>
            <Icon name="stop" />
          </button>
        )}
        <button type="submit" class="icon primary" aria-label={texts.send} title={texts.send}>
          <Icon name="send" />
        </button>
      </div>
    </form>
  );
}

function Attach({ attach }: { attach: (list: FileList | null) => void }) {
  const { chat } = useTexts();
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <button
        type="button"
        class="icon quiet"
        aria-label={chat.attach}
        title={chat.attach}
        onClick={() => input.current?.click()}
      >
        <Icon name="attach" />
      </button>
      <input
        ref={input}
        type="file"
        multiple
        hidden
        aria-label={chat.attach}
        onChange={({ currentTarget }) => {
          attach(currentTarget.files);
          currentTarget.value = '';
        }}
      />
    </>
  );
}

function Attachments({ files, detach }: { files: readonly Attached[]; detach: (id: string) => void }) {
  const { chat } = useTexts();
  return (
    <ul class="files">
      {files.map(({ id, name, bytes }) => (
        <li key={id} class="file">
          {name} <small class="soft">{sizeInWords(bytes, languageOfPage())}</small>
          <button
            type="button"
            class="icon quiet"
            aria-label={filled(chat.detach, { name })}
            onClick={() => detach(id)}
          >
            <Icon name="close" />
          </button>
        </li>
      ))}
    </ul>
  );
}

const KEEP_MS = 300;

function useDraft(chat: string, text: string): void {
  useEffect(() => {
    const timer = setTimeout(() => keepDraft(chat, text), KEEP_MS);
    const keep = () => keepDraft(chat, text);
    addEventListener('pagehide', keep);
    return () => {
      clearTimeout(timer);
      removeEventListener('pagehide', keep);
    };
  }, [chat, text]);
  const last = useRef(text);
  last.current = text;
  // Leaving the place within that time loses nothing.
  useEffect(() => () => keepDraft(chat, last.current), [chat]);
}

/** Whether a key belongs to an input method. Some browsers end the composition before the key that ended it. */
function useComposing() {
  const isComposing = useRef(false);
  return {
    begin: () => {
      isComposing.current = true;
    },
    end: () => {
      setTimeout(() => {
        isComposing.current = false;
      });
    },
    has: (event: KeyboardEvent) => event.isComposing || event.keyCode === 229 || isComposing.current,
  };
}

/** The listbox, and the keys that move in it. */
function useCompletion(text: string, setText: (text: string) => void, commands: readonly BoardCommand[]) {
  const { chat } = useTexts();
  const id = useId();
  const [active, setActive] = useState(0);
  const [closedAt, setClosedAt] = useState<string | null>(null);
  const all = closedAt === text ? [] : completionsFor(text, commands);
  const at = Math.min(active, all.length - 1);
  const isOpen = all.length > 0;

  function choose(n: number): void {
    const chosen = all[n];
    if (chosen === undefined) return;
    setText(chosen.text);
    setActive(0);
    if (!chosen.text.endsWith(' ')) setClosedAt(chosen.text);
  }

  return {
    listbox: isOpen && (
      <Listbox
        id={id}
        label={chat.commands}
        active={at}
        choose={choose}
        options={all.map((each) => ({
          name: each.text,
          shown: (
            <>
              <b>{each.text}</b> <span class="soft small">{each.description}</span>
            </>
          ),
        }))}
      />
    ),
    attributes: {
      'aria-autocomplete': 'list' as const,
      ...(isOpen && { 'aria-controls': id, 'aria-activedescendant': `${id}-${at}` }),
    },
    /** Whether the key was for the listbox. */
    takes(event: KeyboardEvent): boolean {
      if (!isOpen || event.altKey || event.ctrlKey || event.metaKey) return false;
      const next = movedBy(event.key, at, all.length);
      const isWhole = all[at]?.text.trim() === text.trim();
      if (next !== null) setActive(next);
      else if (event.key === 'Escape') setClosedAt(text);
      else if (event.key === 'Tab' || (event.key === 'Enter' && !event.shiftKey && !isWhole)) choose(at);
      else return false;
      event.preventDefault();
      event.stopPropagation();
      return true;
    },
  };
}

/** As high as its words, to a third of the screen (by the style). */
function grow(field: HTMLTextAreaElement | null): void {
  if (field === null) return;
  field.style.height = 'auto';
  field.style.height = `${field.scrollHeight + field.offsetHeight - field.clientHeight}px`;
}
