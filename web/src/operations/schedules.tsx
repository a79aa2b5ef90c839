/** Scheduled tasks of all chats, with their next run. */
import { useId, useState } from 'preact/hooks';
import type { ScheduleItem } from '../../../src/board/protocol-operations.ts';
import { ask } from '../api.ts';
import { useTexts } from '../app.ts';
import { chatName, isOwnChat } from '../kit/chats.ts';
import { Dialog } from '../kit/dialog.tsx';
import { languageOfPage } from '../kit/words.ts';
import { filled } from '../texts/texts.ts';
import { Box, useDeed } from './parts.tsx';
import { visible } from './symbols.ts';

const change = (what: 'pause' | 'resume' | 'cancel', { id }: ScheduleItem) =>
  ask(`api/board/schedules/${encodeURIComponent(id)}/${what}`, { method: 'POST', json: {} });

/** More are folded. */
const SHOWN = 5;

export function Schedules({
  schedules: { items, isCut },
  again,
}: {
  schedules: { items: ScheduleItem[]; isCut: boolean };
  again: () => void;
}) {
  const { operations } = useTexts();
  const { run, isBusy, said } = useDeed(again);
  const [ending, setEnding] = useState<ScheduleItem | null>(null);
  const stuck = items.filter(({ state }) => state === 'parked');
  const others = items.filter(({ state }) => state !== 'parked');
  const row = (item: ScheduleItem) => (
    <Schedule
      key={item.id}
      item={item}
      isBusy={isBusy}
      pause={() => run(() => change('pause', item), filled(operations.paused, { n: item.n }))}
      resume={() => run(() => change('resume', item), filled(operations.goesOn, { n: item.n }))}
      cancel={() => setEnding(item)}
    />
  );
  return (
    <Box
      title={operations.schedules}
      level={stuck.length > 0 ? 'warn' : 'good'}
      line={items.length === 0 ? operations.noSchedules : filled(operations.tasks, { n: items.length })}
    >
      {said}
      {items.length > 0 && <ul class="list">{[...stuck, ...others.slice(0, SHOWN)].map(row)}</ul>}
      {others.length > SHOWN && (
        <details>
          <summary class="small">{filled(operations.moreTasks, { n: others.length - SHOWN })}</summary>
          <ul class="list">{others.slice(SHOWN).map(row)}</ul>
          {isCut && <p class="soft small">{operations.tasksCut}</p>}
        </details>
      )}
      {ending !== null && (
        <Dialog title={filled(operations.cancelTask, { n: ending.n })} close={() => setEnding(null)}>
          <p class="words">{visible(ending.prompt, true)}</p>
          <div class="buttons">
            <button type="button" onClick={() => setEnding(null)}>
              {operations.keep}
            </button>
            <button
              type="button"
              class="danger"
              onClick={() => {
                setEnding(null);
                void run(() => change('cancel', ending), filled(operations.cancelled, { n: ending.n }));
              }}
            >
              {operations.cancel}
            </button>
          </div>
        </Dialog>
      )}
    </Box>
  );
}

function Schedule({
  item,
  isBusy,
  pause,
  resume,
  cancel,
}: {
  item: ScheduleItem;
  isBusy: boolean;
  pause: () => void;
  resume: () => void;
  cancel: () => void;
}) {
  const { operations, kit } = useTexts();
  const about = useId();
  const { n, title, chatId, persona, setBy, prompt, state, why, nextAt, cron, timezone } = item;
  return (
    <li class="row item">
      <div id={about} class="grow stack tight">
        <p class="words">{visible(prompt, true)}</p>
        <p class="soft small words">
          {state === 'active' && nextAt !== null ? (
            <>
              {operations.next} <b>{timeIn(timezone, nextAt)}</b>
            </>
          ) : (
            <span class="tag warn">
              {state === 'parked' ? operations.parked[why ?? 'failed'] : operations.isPaused}
            </span>
          )}
          {cron !== null && (
            <>
              , <code>{cron}</code>
            </>
          )}{' '}
          ({timezone})
        </p>
        <p class="soft small words">
          {filled(operations.taskOf, {
            n,
            chat: visible(chatName(chatId, title ?? chatId, kit.mainChat), true),
            persona: visible(persona, true),
          })}
          {setBy === null && `, ${operations.ownIdea}`}
          {setBy && !isOwnChat(chatId) && `, ${filled(operations.setBy, { name: visible(setBy, true) })}`}
        </p>
      </div>
      <div class="row">
        {state === 'active' ? (
          <button type="button" aria-describedby={about} disabled={isBusy} onClick={pause}>
            {operations.pause}
          </button>
        ) : (
          <button type="button" aria-describedby={about} disabled={isBusy} onClick={resume}>
            {operations.resume}
          </button>
        )}
        <button type="button" class="quiet" aria-describedby={about} disabled={isBusy} onClick={cancel}>
          {operations.cancel}
        </button>
      </div>
    </li>
  );
}

/** In the zone of the task, which is shown beside it. */
function timeIn(timeZone: string, at: number): string {
  return new Intl.DateTimeFormat(languageOfPage(), {
    ...{ weekday: 'short', day: 'numeric', month: 'short', hour: 'numeric', minute: '2-digit' },
    timeZone,
  }).format(at);
}
