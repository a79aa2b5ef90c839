/** The place Memory: the files of a persona in a chat, and the history of their changes. */
import { useCallback, useEffect, useId } from 'preact/hooks';
import type { MemoryChat, MemoryPlaces } from '../../../src/board/protocol.ts';
import { useTexts } from '../app.ts';
import { chatName, MAIN_CHAT } from '../kit/chats.ts';
import { Fault } from '../kit/fault.tsx';
import { useFollowed } from '../kit/follow.ts';
import { Tabs } from '../kit/tabs.tsx';
import { addressOf, go, place } from '../place.ts';
import { Editor } from './editor.tsx';
import { type FileOf, fileKey, readChats, readPlaces } from './files.ts';
import { History } from './history.tsx';
import { Leaving } from './leaving.tsx';
import './memory.css';

const TABS = ['memory', 'log', 'persona', 'lore', 'principles', 'history'] as const;
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
  if (tab === 'lore') {
    const file = asked ?? `${personaId}/lorebook.yaml`;
    return (
      <div class="stack">
        <Books {...{ personaId, known, file, chooseFile }} />
        {edited(file, memory.bookNote)}
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

/** Lorebooks of the persona, its library, the chat and all chats. */
function Books({
  personaId,
  known,
  file,
  chooseFile,
}: {
  personaId: string;
  known: MemoryPlaces;
  file: string;
  chooseFile: (file: string) => void;
}) {
  const { memory } = useTexts();
  const library = known.personas.find(({ id }) => id === personaId)?.library ?? null;
  const named = new Map([
    [`${personaId}/lorebook.yaml`, memory.ownBook],
    ...(library === null ? [] : [[library.replace(/\.md$/, '/lorebook.yaml'), memory.libraryBook] as const]),
  ]);
  const options = withCurrent([...named.keys(), ...known.books], file);
  return (
    <Choice
      label={memory.file}
      chosen={file}
      options={options.map((book) => [book, named.get(book) ?? book])}
      choose={chooseFile}
    />
  );
}

function dayIn(file: string): string {
  return file.replace(/^memory\/|\.md$/g, '');
}
