/** One file: its text, a preview with the cut of the budget, and Save, which asks if somebody else wrote it meanwhile. */
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { MemoryText } from '../../../src/board/protocol.ts';
import { sentenceOf } from '../api.ts';
import { useTexts } from '../app.ts';
import { Conflict } from '../kit/conflict.tsx';
import { Fault } from '../kit/fault.tsx';
import { Meter } from '../kit/meter.tsx';
import { languageOfPage, timeInWords } from '../kit/words.ts';
import { onChange } from '../live.ts';
import { filled } from '../texts/texts.ts';
import { shownOf } from './budget.ts';
import { draftOf, type FileOf, keepDraft, readFile, saveFile } from './files.ts';
import { Preview } from './preview.tsx';

export function Editor({
  of,
  note,
  line,
}: {
  of: FileOf;
  /** For people, above the text. */
  note?: string | undefined;
  /** To be marked. */
  line?: string | undefined;
}) {
  const { memory } = useTexts();
  const field = useRef<HTMLTextAreaElement>(null);
  const [draft, setDraft] = useState(draftOf(of));
  const now = useRef(draft);
  const [newer, setNewer] = useState<MemoryText | null>(null);
  const [conflict, setConflict] = useState<MemoryText | null>(null);
  const [fault, setFault] = useState<string | null>(null);
  const [isSaved, setSaved] = useState(false);
  const [isPreview, setPreview] = useState(line !== undefined);
  const isBusy = useRef(false);
  const caret = useRef<[number, number] | null>(null);

  const change = useCallback((base: MemoryText, text: string) => {
    now.current = { base, text };
    keepDraft(of, now.current);
    setDraft(now.current);
  }, []);

  const load = useCallback(async () => {
    if (isBusy.current) return;
    try {
      const found = await readFile(of);
      setFault(null);
      const current = now.current;
      if (current !== null && found.tag === current.base.tag) return setNewer(null);
      if (current !== null && current.text !== current.base.text) return setNewer(found);
      const { selectionStart = 0, selectionEnd = 0 } = field.current ?? {};
      caret.current = [selectionStart, selectionEnd];
      change(found, found.text);
    } catch (error) {
      const words = sentenceOf(error);
      // The text stays; the head of the page says that the gateway is away.
      if (now.current === null || words !== '') setFault(words);
    }
  }, []);

  useEffect(() => {
    void load();
    // A command may have taken something back.
    const stop = onChange(['memory', 'conversations'], load);
    // Nothing tells of a change in an editor.
    addEventListener('focus', load);
    return () => {
      stop();
      removeEventListener('focus', load);
    };
  }, []);

  // A new text moves the caret to its end.
  useLayoutEffect(() => {
    const at = caret.current;
    caret.current = null;
    if (at !== null && document.activeElement === field.current) field.current?.setSelectionRange(...at);
  }, [draft]);

  if (draft === null) return <Fault says={fault} />;
  const { base, text } = draft;
  const name = of.file.split('/').at(-1) ?? of.file;

  async function save(from: MemoryText, words: string): Promise<void> {
    if (isBusy.current) return;
    isBusy.current = true;
    setSaved(false);
    try {
      const { kind, file } = await saveFile(of, from, words);
      setFault(null);
      setConflict(kind === 'changed' ? file : null);
      if (kind === 'changed') return change(from, words);
      setNewer(null);
      setSaved(true);
      // Somebody may have typed meanwhile.
      change(file, now.current?.text === words ? file.text : (now.current?.text ?? file.text));
    } catch (error) {
      setFault(sentenceOf(error));
    } finally {
      isBusy.current = false;
    }
  }

  const isEdited = text !== base.text;
  const isMarkdown = name.endsWith('.md');
  const shown = shownOf(text, base);
  return (
    <div class={`editor ${isPreview && isMarkdown ? 'previews' : ''}`}>
      {note !== undefined && <p class="soft small">{note}</p>}
      {base.faults.length > 0 && (
        <ul class="note faults">
          {base.faults.map((each) => (
            <li key={each}>{each}</li>
          ))}
        </ul>
      )}
      {newer !== null && <p class="note">{memory.newer}</p>}
      {isMarkdown && (
        <div class="switch row">
          <button type="button" class="quiet" aria-pressed={!isPreview} onClick={() => setPreview(false)}>
            {memory.text}
          </button>
          <button type="button" class="quiet" aria-pressed={isPreview} onClick={() => setPreview(true)}>
            {memory.preview}
          </button>
        </div>
      )}
      <div class={isMarkdown ? 'both' : 'both alone'}>
        <textarea
          ref={field}
          aria-label={name}
          spellcheck={false}
          placeholder={memory.empty}
          value={text}
          onInput={({ currentTarget }) => {
            setSaved(false);
            change(base, currentTarget.value);
          }}
          onKeyDown={(event) => {
            if (event.key !== 's' || !(event.ctrlKey || event.metaKey) || event.altKey) return;
            event.preventDefault();
            void save(base, text);
          }}
        />
        {isMarkdown && <Preview text={text} shown={shown} line={line} />}
      </div>
      {base.most !== null && (
        <Meter
          label={memory.budget}
          value={shown.used}
          most={base.most}
          words={filled(shown.cutAt === null ? memory.within : memory.beyond, {
            used: numberInWords(shown.used),
            most: numberInWords(base.most),
            line: shown.line,
          })}
        />
      )}
      <Fault says={fault} />
      <div class="row saving">
        <button type="button" class="primary" disabled={!isEdited} onClick={() => save(base, text)}>
          {memory.save}
        </button>
        <p role="status" class="small">
          {isSaved && !isEdited ? memory.saved : ''}
        </p>
        <span class="soft tiny grow">
          {isEdited
            ? memory.edited
            : base.changedAt === null
              ? memory.noFile
              : filled(memory.writtenAt, { time: timeInWords(base.changedAt, languageOfPage()) })}
        </span>
      </div>
      {conflict !== null && (
        <Conflict
          mine={text}
          theirs={conflict.text}
          keepMine={(words) => save(conflict, words)}
          takeTheirs={() => {
            setConflict(null);
            setNewer(null);
            change(conflict, conflict.text);
          }}
          cancel={() => {
            setNewer(conflict);
            setConflict(null);
          }}
        />
      )}
    </div>
  );
}

function numberInWords(value: number): string {
  return value.toLocaleString(languageOfPage());
}
