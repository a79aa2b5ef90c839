/** One conversation, to be read: its log from any place, and at each answer what is behind it. */
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { LogRow } from '../../../src/board/protocol.ts';
import { sentenceOf } from '../api.ts';
import { useTexts } from '../app.ts';
import { chatName } from '../kit/chats.ts';
import { Fault } from '../kit/fault.tsx';
import { useFollowed } from '../kit/follow.ts';
import { Icon } from '../kit/icons.tsx';
import { type Log, openLog } from '../kit/log.ts';
import { LogList } from '../kit/log-list.tsx';
import { Row } from '../kit/row.tsx';
import { place } from '../place.ts';
import type { Texts } from '../texts/en.ts';
import { addressWith, goTo, NO_MESSAGE } from './address.ts';
import { channelName } from './list.tsx';
import { conversation, rowAt } from './reads.ts';
import { Turn } from './turn.tsx';

export function OneConversation({ room }: { room: string }) {
  const { conversations: texts } = useTexts();
  const log = useMemo(() => openLog(room), [room]);
  const { around, key, turn } = place.value.values;
  useEffect(() => () => log.close(), [log]);
  useEffect(() => {
    for (const row of document.querySelectorAll('.log-row.found')) row.classList.remove('found');
    if (around !== undefined) void log.find(around, key ?? around);
    else if (!log.isRead.peek()) void log.newest();
  }, [log, around, key]);
  const draw = useMemo(() => drawWith(texts), [texts]);
  return (
    <>
      <div class="one">
        <Head room={room} log={log} />
        <LogList log={log} draw={draw} />
      </div>
      {turn !== undefined && <Turn key={turn} id={turn} />}
    </>
  );
}

function Head({ room, log }: { room: string; log: Log }) {
  const { conversations: texts, kit } = useTexts();
  // A title may come later.
  const { answer: item, fault } = useFollowed(
    ['conversations'],
    useCallback((signal: AbortSignal) => conversation(room, signal), [room]),
  );
  const [dayFault, setDayFault] = useState<string | null>(null);
  const heading = useRef<HTMLHeadingElement>(null);
  useLayoutEffect(() => {
    // On a phone the list goes, and the chosen link with it.
    const focused = document.activeElement;
    const isGone = focused instanceof HTMLElement && focused.closest('.finder')?.clientHeight === 0;
    if (isGone) heading.current?.focus();
  }, [room]);

  async function goToDay(day: string): Promise<void> {
    const at = new Date(`${day}T00:00`).getTime();
    if (Number.isNaN(at)) return;
    try {
      const found = await rowAt(room, at);
      setDayFault(null);
      if (found !== null) goTo({ around: found, key: found });
    } catch (error) {
      setDayFault(sentenceOf(error));
    }
  }

  return (
    <header class="one-head">
      <a
        class="button quiet back"
        aria-label={texts.all}
        title={texts.all}
        href={addressWith({ ...NO_MESSAGE, room: null })}
      >
        <Icon name="back" />
      </a>
      <h2 ref={heading} tabIndex={-1}>
        {chatName(room, item?.title ?? room, kit.mainChat)}
      </h2>
      {item !== null && <span class="tag">{channelName(item.channel)}</span>}
      <div class="row ends">
        <button type="button" onClick={() => leave(() => log.first())}>
          {texts.first}
        </button>
        <input
          type="date"
          aria-label={texts.date}
          onChange={({ currentTarget }) => void goToDay(currentTarget.value)}
        />
        <button type="button" onClick={() => leave(() => log.newest())}>
          {texts.newest}
        </button>
      </div>
      <Fault says={dayFault ?? (item === null ? fault : null)} />
    </header>
  );
}

/** The address does not name the message any more that one has left. */
function leave(then: () => void): void {
  goTo({ around: '', key: '' }, true);
  then();
}

/** The same function for each row, so that rows that have not changed are not drawn again. */
function drawWith(texts: Texts['conversations']) {
  const actions = {
    below: ({ turn, author }: LogRow) =>
      turn !== undefined &&
      author.kind !== 'person' && (
        <button type="button" class="quiet details" data-turn={turn} onClick={() => goTo({ turn })}>
          {texts.details}
        </button>
      ),
  };
  return (row: LogRow, isFirst: boolean) => <Row row={row} isFirst={isFirst} actions={actions} />;
}
