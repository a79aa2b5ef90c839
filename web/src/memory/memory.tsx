/** The place Memory: the files of a persona in a chat, and the history of their changes. */
import { useCallback, useEffect, useId, useState } from 'preact/hooks';
import type { MemoryChat, MemoryPlaces } from '../../../src/board/protocol.ts';
import { useTexts } from '../app.ts';
import { chatName, MAIN_CHAT } from '../kit/chats.ts';
import { Dialog } from '../kit/dialog.tsx';
import { Fault } from '../kit/fault.tsx';
import { useFollowed } from '../kit/follow.ts';
import { Tabs } from '../kit/tabs.tsx';
import { addressOf, go, place } from '../place.ts';
import { Editor } from './editor.tsx';
import { discardDrafts, type FileOf, fileKey, readChats, readPlaces, unsaved } from './files.ts';
import { History } from './history.tsx';
import './memory.css';

const TABS = ['memory', 'log', 'persona', 'principles', 'history'] as const;
type TabName = (typeof TABS)[number];

const FIRST_PERSONA = 'default';

/** Where one was last, for the next visit. */
let lastParts: readonly string[] = [];

export default function Memory() {
  const { memory, frame, kit } = useTexts();
  const chats = useFollowed(['conversations'], readChats);
  const { parts, values } = place.value;
  const [chatId = firstOf(chats.answer), personaName, tabName] = parts.length > 0 ? parts : lastParts;
  const places = useFollowed(
    ['memory', 'personas'],
    useCallback((signal: AbortSignal) => readPlaces(chatId, signal), [chatId]),
  );
  // Of the chat before, until this one's are there.
  const known = places.answer?.chatId === chatId ? places.answer.places : null;
  const personaId = personaName ?? known?.personas[0]?.id ?? FIRST_PERSONA;
  const tab =
    TABS.find((each) => each === tabName) ?? (values.file?.startsWith('memory/') ? 'log' : 'memory');
  useEffect(() => {
    if (parts.length > 0) lastParts = [chatId, personaId, tab];
  });

  const choose = (chat: string, persona: string | null, to: TabName, file?: string) =>
    go(addressOf('memory', persona === null ? [chat] : [chat, persona, to], file ? { file } : {}));
  const named = new Map((known?.personas ?? []).map(({ id, name }) => [id, name]));
  const ids = withCurrent([...named.keys()], personaId);
  const all = new Map((chats.answer ?? []).map((each) => [each.chatId, each.title]));
  return (
    <div class="place memory">
      <h1>{frame.memory}</h1>
      <div class="row chosen">
        <Choice
          label={memory.chat}
          chosen={chatId}
          options={withCurrent([...all.keys()], chatId).map((id) => [
            id,
            titleOf(id, all.get(id), kit.mainChat),
          ])}
          choose={(id) => choose(id, null, tab)}
        />
        <Choice
          label={memory.persona}
          chosen={personaId}
          options={ids.map((id) => [id, named.get(id) ?? id])}
          choose={(id) => choose(chatId, id, tab)}
        />
      </div>
      {known === null && <Fault says={places.fault} />}
      <Tabs
        label={frame.memory}
        tabs={TABS.map((name) => ({ name, title: memory.tabs[name] }))}
        chosen={tab}
        choose={(name) => choose(chatId, personaId, name)}
      >
        {known !== null && (
          <Panel
            key={`${chatId}/${personaId}/${tab}`}
            {...{ chatId, personaId, tab, values, known, named }}
            chooseFile={(file) => choose(chatId, personaId, tab, file)}
          />
        )}
      </Tabs>
      <Leaving />
    </div>
  );
}

/** The page's own chat, if it is there. */
function firstOf(chats: MemoryChat[] | null): string {
  return chats?.some(({ chatId }) => chatId === MAIN_CHAT) === false
    ? (chats[0]?.chatId ?? MAIN_CHAT)
    : MAIN_CHAT;
}

/** An address may name what is not there yet. */
function withCurrent(ids: string[], current: string): string[] {
  return ids.includes(current) ? ids : [...ids, current];
}

/** Two chats of other channels may have the same title. */
function titleOf(id: string, title: string | undefined, mainChat: string): string {
  const name = chatName(id, title ?? id, mainChat);
  return name === id || name !== title ? name : `${name} (${id})`;
}

function Choice({
  label,
  chosen,
  options,
  choose,
}: {
  label: string;
  chosen: string;
  options: [id: string, shown: string][];
  choose: (id: string) => void;
}) {
  const id = useId();
  return (
    <div class="field grow">
      <label for={id}>{label}</label>
      <select id={id} value={chosen} onChange={({ currentTarget }) => choose(currentTarget.value)}>
        {options.map(([value, shown]) => (
          <option key={value} value={value}>
            {shown}
          </option>
        ))}
      </select>
    </div>
  );
}

function Panel({
  chatId,
  personaId,
  tab,
  values,
  known,
  named,
  chooseFile,
}: {
  chatId: string;
  personaId: string;
  tab: TabName;
  values: Record<string, string>;
  known: MemoryPlaces;
  named: ReadonlyMap<string, string>;
  chooseFile: (file: string) => void;
}) {
  const { memory } = useTexts();
  const { line, file: asked } = values;
  const edited = (file: string, note?: string) => {
    const of: FileOf = { chatId, personaId, file };
    return <Editor key={fileKey(of)} {...{ of, note, line }} />;
  };
  if (tab === 'history') return <History {...{ chatId, personaId }} names={named} />;
  if (tab === 'principles') return edited('AGENTS.md', memory.principlesNote);
  if (tab === 'memory') return edited(`${personaId}/MEMORY.md`);
  if (tab === 'persona') {
    const own = `${personaId}/PERSONA.md`;
    const library = known.personas.find(({ id }) => id === personaId)?.library ?? null;
    const file = asked === library && library !== null ? library : own;
    return (
      <div class="stack">
        {library !== null && (
          <Choice
            label={memory.file}
            chosen={file}
            options={[
              [own, memory.ownFile],
              [library, memory.libraryFile],
            ]}
            choose={chooseFile}
          />
        )}
        {edited(file, file === own ? memory.personaNote : memory.libraryNote)}
      </div>
    );
  }
  const newest = known.days.find(({ isThere }) => isThere) ?? known.days[0];
  const day = asked ?? `memory/${newest?.file}`;
  const ofDay = new Map(known.days.map((each) => [`memory/${each.file}`, each]));
  const isUnseen = ofDay.get(day)?.isThere && !ofDay.get(day)?.isShown;
  return (
    <div class="stack">
      <Choice
        label={memory.day}
        chosen={day}
        options={withCurrent([...ofDay.keys()], day).map((file) => [
          file,
          dayIn(file) + (ofDay.get(file)?.isShown ? ` · ${memory.inPrompts}` : ''),
        ])}
        choose={chooseFile}
      />
      {edited(day, isUnseen ? `${memory.logNote} ${memory.notInPrompts}` : memory.logNote)}
    </div>
  );
}

function dayIn(file: string): string {
  return file.replace(/^memory\/|\.md$/g, '');
}

/** Asks before words are left that are not saved. Back leaves them where they are: they wait for the next visit. */
function Leaving() {
  const { memory } = useTexts();
  const [to, setTo] = useState<string | null>(null);
  useEffect(() => {
    const asks = (event: BeforeUnloadEvent) => unsaved().length > 0 && event.preventDefault();
    function click(event: MouseEvent): void {
      const link = event.target instanceof Element ? event.target.closest('a') : null;
      const address = link?.getAttribute('href') ?? '';
      const isPlain = event.button === 0 && !(event.ctrlKey || event.metaKey || event.shiftKey);
      const leaves = address.startsWith('#/') && !address.startsWith(addressOf('memory'));
      if (!isPlain || !leaves || unsaved().length === 0) return;
      event.preventDefault();
      event.stopPropagation();
      setTo(address);
    }
    addEventListener('beforeunload', asks);
    document.addEventListener('click', click, true);
    return () => {
      removeEventListener('beforeunload', asks);
      document.removeEventListener('click', click, true);
    };
  }, []);
  if (to === null) return null;
  return (
    <Dialog title={memory.leaveTitle} close={() => setTo(null)}>
      <div class="stack">
        <p>{memory.leaveWords}</p>
        <ul class="small">
          {unsaved().map((file) => (
            <li key={file}>{file}</li>
          ))}
        </ul>
        <div class="buttons">
          <button type="button" onClick={() => setTo(null)}>
            {memory.stay}
          </button>
          <button
            type="button"
            class="danger"
            onClick={() => {
              discardDrafts();
              go(to);
            }}
          >
            {memory.discard}
          </button>
        </div>
      </div>
    </Dialog>
  );
}
