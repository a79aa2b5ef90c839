/** All conversations, the newest first; or what a search in them found. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { ConversationItem, FoundRow } from '../../../src/board/protocol.ts';
import { useTexts } from '../app.ts';
import { chatName } from '../kit/chats.ts';
import { Fault } from '../kit/fault.tsx';
import { Time } from '../kit/time.tsx';
import { languageOfPage, timeInWords } from '../kit/words.ts';
import { place } from '../place.ts';
import { filled } from '../texts/texts.ts';
import { addressWith, goTo, NO_MESSAGE } from './address.ts';
import { useConversations, useSearch } from './reads.ts';

const TYPED_MS = 250;

export function List() {
  const { conversations: texts } = useTexts();
  const query = place.value.values.q ?? '';
  const [typed, setTyped] = useState(query);
  // The address does not give back the words that this field put there: more may have been typed since.
  const put = useRef(query);
  useEffect(() => {
    if (query !== put.current) setTyped(query);
    put.current = query;
  }, [query]);
  useEffect(() => {
    if (typed.trim() === query.trim()) return;
    const later = setTimeout(() => {
      put.current = typed.trim();
      goTo({ q: put.current }, true);
    }, TYPED_MS);
    return () => clearTimeout(later);
  }, [typed, query]);
  return (
    <div class="finder">
      <form onSubmit={(event) => event.preventDefault()}>
        <input
          data-slash
          type="search"
          aria-label={texts.search}
          placeholder={texts.search}
          maxLength={500}
          value={typed}
          onInput={({ currentTarget }) => setTyped(currentTarget.value)}
        />
      </form>
      <div class="found-or-all">{query === '' ? <All /> : <Found key={query} query={query} />}</div>
    </div>
  );
}

function All() {
  const { conversations: texts } = useTexts();
  const { items, hasMore, more, fault } = useConversations();
  const room = place.value.parts[0];
  return (
    <>
      {items === null && <Fault says={fault} />}
      {items?.length === 0 && <p class="soft">{texts.empty}</p>}
      <ul class="list" aria-label={texts.list}>
        {items?.map((item) => (
          <Item key={item.room} item={item} isCurrent={item.room === room} />
        ))}
      </ul>
      {hasMore && (
        <button type="button" class="quiet" onClick={more}>
          {texts.more}
        </button>
      )}
    </>
  );
}

/** The link is the title; it is as large as its line. */
function Item({
  item: { room, channel, title, last },
  isCurrent,
}: {
  item: ConversationItem;
  isCurrent: boolean;
}) {
  const { kit } = useTexts();
  return (
    <li class={`item ${isCurrent ? 'current' : ''}`}>
      <a
        data-room={room}
        href={addressWith({ ...NO_MESSAGE, room })}
        {...(isCurrent && { 'aria-current': 'true' })}
      >
        {chatName(room, title, kit.mainChat)}
      </a>
      <span class="tag">{channelName(channel)}</span>
      {last !== null && (
        <>
          <p class="last">
            <b>{last.author || kit.you}</b> {last.text}
          </p>
          <Time class="soft tiny" at={last.at} />
        </>
      )}
    </li>
  );
}

function Found({ query }: { query: string }) {
  const { conversations: texts } = useTexts();
  const { rows, state, backTo, more, fault } = useSearch(query);
  const { around } = place.value.values;
  const back = backTo === null ? '' : timeInWords(backTo, languageOfPage());
  return (
    <>
      <Fault says={fault} />
      <ul class="list" aria-label={texts.results}>
        {rows.map((row) => (
          <Result key={`${row.room} ${row.key}`} row={row} isCurrent={row.around === around} />
        ))}
      </ul>
      <p role="status" class="soft small">
        {state === 'runs' && (back === '' ? texts.searching : filled(texts.searchedTo, { time: back }))}
        {state === 'over' && (rows.length === 0 ? texts.nothing : texts.thatIsAll)}
      </p>
      {state === 'waits' && (
        <button type="button" class="quiet" onClick={more}>
          {filled(texts.moreBefore, { time: back })}
        </button>
      )}
    </>
  );
}

function Result({ row, isCurrent }: { row: FoundRow; isCurrent: boolean }) {
  const { kit } = useTexts();
  const { room, around, key, title, author, at, excerpt } = row;
  return (
    <li class={`result ${isCurrent ? 'current' : ''}`}>
      <a href={addressWith({ room, around, key, turn: '' })} {...(isCurrent && { 'aria-current': 'true' })}>
        <span class="soft tiny">
          {chatName(room, title, kit.mainChat)} · <Time at={at} />
        </span>
        <span class="excerpt">
          <b>{author || kit.you}</b> {excerpt}
        </span>
      </a>
    </li>
  );
}

const NAMES: Record<string, string> = { whatsapp: 'WhatsApp' };

export function channelName(channel: string): string {
  return NAMES[channel] ?? channel.charAt(0).toUpperCase() + channel.slice(1);
}
