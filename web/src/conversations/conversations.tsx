/** The place Conversations: those of all channels and a search in them; beside it one of them, and a turn opened. */
import { useEffect, useRef } from 'preact/hooks';
import { useTexts } from '../app.ts';
import { place } from '../place.ts';
import './conversations.css';
import { List } from './list.tsx';
import { OneConversation } from './one.tsx';

export default function Conversations() {
  const { frame, conversations } = useTexts();
  const room = place.value.parts[0] ?? null;
  const lastRoom = useRef(room);
  useEffect(() => {
    // Back in the list, one stands where one left it.
    if (room === null && lastRoom.current !== null && document.activeElement === document.body) {
      document.querySelector<HTMLElement>(`a[data-room="${CSS.escape(lastRoom.current)}"]`)?.focus();
    }
    lastRoom.current = room;
  }, [room]);
  const turn = place.value.values.turn ?? null;
  const shown = room === null ? '' : turn === null ? 'open' : 'open turned';
  return (
    <div class={`fills conversations ${shown}`}>
      <h1>{frame.conversations}</h1>
      <List />
      {room === null ? (
        <p class="none soft">{conversations.choose}</p>
      ) : (
        <OneConversation key={room} room={room} />
      )}
    </div>
  );
}
