/** One task opened: its goal, course and outcome, and what may still be said to it. */
import { useCallback, useEffect, useId, useRef, useState } from 'preact/hooks';
import type { TaskDetails, TaskItem } from '../../../src/board/protocol.ts';
import { ask, read, sentenceOf } from '../api.ts';
import { useTexts } from '../app.ts';
import { chatName } from '../kit/chats.ts';
import { Fault } from '../kit/fault.tsx';
import { useFollowed } from '../kit/follow.ts';
import { Markdown, PlainText } from '../kit/markdown.tsx';
import { Call } from '../kit/row.tsx';
import { languageOfPage, sizeInWords, timeInWords } from '../kit/words.ts';
import { addressOf, go } from '../place.ts';
import { filled } from '../texts/texts.ts';
import { setGoal } from './task-requests.ts';
import { isOpen, Status, StopTask } from './task-state.tsx';

export function Task({ id }: { id: string }) {
  const { work } = useTexts();
  const title = useId();
  const region = useRef<HTMLElement>(null);
  const { answer: details, fault } = useFollowed(
    ['work'],
    useCallback(
      (signal: AbortSignal) => read<TaskDetails>(`api/board/tasks/${encodeURIComponent(id)}`, signal),
      [id],
    ),
  );
  // The list may be gone from the screen, and the focus with it.
  useEffect(() => region.current?.focus({ preventScroll: true }), []);
  return (
    <section ref={region} class="second stack" aria-labelledby={title} tabIndex={-1}>
      <div class="back">
        <a href={addressOf('work', ['tasks'])}>{work.allTasks}</a>
      </div>
      <h2 id={title}>{details?.task.goal ?? work.task}</h2>
      {details === null && <Fault says={fault} />}
      {details !== null && <Opened details={details} />}
    </section>
  );
}

function Opened({ details }: { details: TaskDetails }) {
  const { work } = useTexts();
  const { task, goal, plan, messages, calls, isCut, result, error, artifacts } = details;
  return (
    <>
      <Course task={task} />
      {goal !== task.goal && (
        <details>
          <summary>{work.wholeGoal}</summary>
          <PlainText text={goal} />
        </details>
      )}
      {plan !== null && (
        <details>
          <summary>{work.plan}</summary>
          <Markdown text={plan} level={3} />
        </details>
      )}
      {messages.length > 0 && (
        <details>
          <summary>{work.givenWords}</summary>
          {messages.map(({ role, content }, n) => (
            <p key={n} class="plain small">
              <b>{role}</b> {content}
            </p>
          ))}
        </details>
      )}
      {calls.length > 0 && (
        <>
          <h3>{work.calls}</h3>
          <div class="stack tight">
            {isCut && <p class="tiny soft">{work.callsCut}</p>}
            {calls.map((call) => (
              <Call key={call.id} call={call} />
            ))}
          </div>
        </>
      )}
      {result !== null && (
        <>
          <h3>{work.result}</h3>
          <Markdown text={result} level={3} />
        </>
      )}
      {error !== null && <p class="fault">{error}</p>}
      {artifacts.length > 0 && (
        <>
          <h3>{work.artifacts}</h3>
          <ul class="files">
            {artifacts.map(({ task: from, id, name, title, bytes }) => (
              <li key={id}>
                <a class="file" href={addressOf('work', ['artifacts', from, id])}>
                  {title ?? name} <small class="soft">{sizeInWords(bytes, languageOfPage())}</small>
                </a>
              </li>
            ))}
          </ul>
        </>
      )}
      {isOpen(task) ? <Tell id={task.id} /> : <Again goal={goal} />}
    </>
  );
}

function Course({ task }: { task: TaskItem }) {
  const { work, kit } = useTexts();
  const { from, agent, createdAt, startedAt, completedAt } = task;
  const time = (at: number) => timeInWords(at, languageOfPage());
  return (
    <>
      <div class="row">
        <Status task={task} />
        {task.status === 'interrupted' && <span class="small soft">{work.whyInterrupted}</span>}
        <StopTask task={task} />
      </div>
      <p class="small soft">
        {filled(work.given, { time: time(createdAt) })}
        {startedAt !== null && ` · ${filled(work.startedAt, { time: time(startedAt) })}`}
        {completedAt !== null &&
          ` · ${filled(work.tookTime, { time: lasted(completedAt - (startedAt ?? createdAt)) })}`}
        {` · ${filled(work.byAgent, { name: agent })}`}
        {from !== null && (
          <>
            {' · '}
            <a href={addressOf('conversations', [from.room])}>
              {filled(work.delegated, {
                name: from.persona,
                chat: chatName(from.room, from.chat, kit.mainChat),
              })}
            </a>
          </>
        )}
      </p>
    </>
  );
}

function lasted(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1_000));
  const [unit, value] =
    seconds < 120
      ? ['second', seconds]
      : seconds < 7_200
        ? ['minute', Math.round(seconds / 60)]
        : ['hour', Math.round(seconds / 3_600)];
  return new Intl.NumberFormat(languageOfPage(), { style: 'unit', unit: `${unit}` }).format(Number(value));
}

type Mode = 'followup' | 'steer';

function Tell({ id }: { id: string }) {
  const { work } = useTexts();
  const [message, setMessage] = useState('');
  const [mode, setMode] = useState<Mode>('followup');
  const [isTold, setTold] = useState(false);
  const [fault, setFault] = useState<string | null>(null);
  const isSending = useRef(false);

  async function send(): Promise<void> {
    if (message.trim() === '' || isSending.current) return;
    isSending.current = true;
    setTold(false);
    setFault(null);
    try {
      await ask(`api/tasks/${encodeURIComponent(id)}/messages`, { method: 'POST', json: { message, mode } });
      setMessage('');
      setTold(true);
    } catch (error) {
      setFault(sentenceOf(error));
    } finally {
      isSending.current = false;
    }
  }

  return (
    <form
      class="card"
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      <label>
        {work.message}
        <textarea
          rows={2}
          value={message}
          onInput={({ currentTarget }) => {
            setMessage(currentTarget.value);
            setTold(false);
            setFault(null);
          }}
        />
      </label>
      <fieldset class="row" aria-label={work.when}>
        {(['followup', 'steer'] as const).map((each) => (
          <label key={each}>
            <input type="radio" name="mode" checked={mode === each} onChange={() => setMode(each)} />
            {work[each]}
          </label>
        ))}
      </fieldset>
      <div class="row">
        <button type="submit">{work.send}</button>
        <p class="small" role="status">
          {isTold ? work.told : ''}
        </p>
        <Fault says={fault} />
      </div>
    </form>
  );
}

function Again({ goal }: { goal: string }) {
  const { work } = useTexts();
  return (
    <div>
      <button
        type="button"
        class="quiet again"
        onClick={() => {
          setGoal(goal);
          go(addressOf('work', ['tasks']));
        }}
      >
        {work.again}
      </button>
    </div>
  );
}
