/** The place Chat: the page's own conversation with its personas. */
import { useComputed } from '@preact/signals';
import type { ComponentChild } from 'preact';
import { useCallback, useEffect, useMemo, useState } from 'preact/hooks';
import type { BoardCommand, BoardPersonas, LogRow } from '../../../src/board/protocol.ts';
import { sentenceOf } from '../api.ts';
import { useTexts } from '../app.ts';
import { MAIN_CHAT } from '../kit/chats.ts';
import { Fault } from '../kit/fault.tsx';
import { useFollowed } from '../kit/follow.ts';
import { type Log, openLog } from '../kit/log.ts';
import { LogList } from '../kit/log-list.tsx';
import { Row, type RowActions } from '../kit/row.tsx';
import { place } from '../place.ts';
import './chat.css';
import { useDrop } from './attaching.ts';
import { ChatSwitch, NewChat, useChats } from './chat-switch.tsx';
import { Composer } from './composer.tsx';
import { Faces } from './faces.tsx';
import { Offers } from './offers.tsx';
import { arrived, say, waiting } from './outgoing.ts';
import { Outgoing } from './outgoing-rows.tsx';
import { commands, order, personasOf, press } from './requests.ts';
import { Versions } from './versions.tsx';

export default function Chat() {
  const chat = place.value.parts[0] ?? MAIN_CHAT;
  return <OneChat key={chat} chat={chat} />;
}

function OneChat({ chat }: { chat: string }) {
  const { frame, chat: texts } = useTexts();
  const { isOver, takes } = useDrop();
  const log = useLog(chat);
  const { active, personas } = usePersonas(chat);
  const known = useCommands();
  const [isNewChat, setNewChat] = useState(false);
  const [fault, setFault] = useState<string | null>(null);
  const switching = { chat, chats: useChats(chat), begin: () => setNewChat(true) };
  const writing = useComputed(() => writingIn(log.rows.value));
  const isUnderWay = useComputed(
    () =>
      writing.value.size > 0 ||
      log.rows.value.some(({ state, author }) => state === 'waiting' && isOwn(author)),
  );
  const sayHere = useMemo(() => (text: string) => say(chat, text), [chat]);
  const draw = useMemo(() => {
    const told = async (work: Promise<void>) => setFault(await work.then(() => null, sentenceOf));
    const below = (row: LogRow) =>
      row.versions && <Versions {...{ chat, row, isUnderWay }} order={(text) => told(order(chat, text))} />;
    return drawWith(actionsOf(chat, log, told), below);
  }, [chat, log, isUnderWay]);
  const isUnsaid = ![...arrived.value, ...waiting.value].some((each) => each.chat === chat);
  const isEmpty = log.isRead.value && log.rows.value.length === 0 && isUnsaid;

  return (
    <div class={`fills chat ${isOver ? 'dropping' : ''}`} {...takes}>
      {isOver && <p class="drop-here">{texts.drop}</p>}
      <h1 class="hidden">{frame.chat}</h1>
      <div class="chat-head">
        <Faces
          switching={switching}
          chat={chat}
          active={active}
          personas={personas}
          writing={writing.value}
          say={sayHere}
        />
        <ChatSwitch {...switching} />
      </div>
      <LogList log={log} draw={draw}>
        {isEmpty && (
          <Offers chat={chat} active={personas.find(({ id, name }) => id === active && name !== id)?.name} />
        )}
        <Outgoing chat={chat} log={log} />
      </LogList>
      <Fault says={fault} />
      <Composer
        chat={chat}
        commands={known}
        isUnderWay={isUnderWay.value}
        send={(text, files) => {
          say(chat, text, files);
          // One wants to see what one has written.
          if (!log.follows) void log.newest();
        }}
        stop={() => say(chat, '/stop')}
      />
      {isNewChat && <NewChat close={() => setNewChat(false)} />}
    </div>
  );
}

function useLog(chat: string): Log {
  const log = useMemo(() => openLog(chat), [chat]);
  useEffect(() => {
    void log.newest();
    return () => log.close();
  }, [log]);
  return log;
}

function usePersonas(chat: string): BoardPersonas {
  const read = useCallback((signal: AbortSignal) => personasOf(chat, signal), [chat]);
  return useFollowed(['personas'], read).answer ?? { active: '', personas: [] };
}

function useCommands(): BoardCommand[] {
  const [known, setKnown] = useState<BoardCommand[]>([]);
  useEffect(() => {
    commands().then(
      (answer) => setKnown(answer.commands),
      // They can be typed in full.
      () => {},
    );
  }, []);
  return known;
}

function isOwn(author: LogRow['author']): boolean {
  return author.kind === 'person' && author.own === true;
}

function writingIn(rows: readonly LogRow[]): Set<string> {
  const ids = rows.flatMap(({ state, author }) =>
    state === 'writing' && author.kind === 'persona' ? [author.id] : [],
  );
  return new Set(ids);
}

/**
 * The same function for each row, so that rows that have not changed are not drawn again. `below`: controls of an answer; an
 * article holds what was said, and nothing that it might imitate.
 */
function drawWith(actions: RowActions, below: (row: LogRow) => ComponentChild) {
  return (row: LogRow, isFirst: boolean) => (
    <>
      <Row row={row} isFirst={isFirst} actions={actions} />
      {below(row)}
    </>
  );
}

function actionsOf(chat: string, log: Log, told: (work: Promise<void>) => Promise<void>): RowActions {
  return {
    decide: ({ id }, decision) => say(chat, `/${decision} ${id}`),
    choose: (value) => told(press(chat, value)),
    undo: (turn) => say(chat, `/memory undo ${turn}`),
    tryAgain(row) {
      const rows = log.rows.peek();
      const before = rows.slice(0, rows.indexOf(row)).reverse();
      const asked = isOwn(row.author) ? row : before.find(({ author }) => isOwn(author));
      if (asked !== undefined) say(chat, asked.text);
    },
  };
}
