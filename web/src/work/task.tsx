/** One task opened: its goal, course and outcome, and what may still be said to it. */
import { signal } from '@preact/signals';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import type { TaskDetails } from '../../../src/board/protocol.ts';
import { ask, Refusal, read } from '../api.ts';
import { useTexts } from '../app.ts';
import { Markdown, PlainText } from '../kit/markdown.tsx';
import { Call } from '../kit/row.tsx';
import { languageOfPage, sizeInWords, timeInWords } from '../kit/words.ts';
import { addressOf, go } from '../place.ts';
import { filled } from '../texts/texts.ts';
import { useWork } from './collected.ts';
import { setGoal } from './task-requests.ts';
import { isOpen, Status, StopTask } from './task-state.tsx';

export function Task({ id, changed }: { id: string; changed: () => Promise<void> }) {
  const { work, frame } = useTexts();
  const title = useId();
  const region = useRef<HTMLElement>(null);
  const [{ details, fault, reread }] = useState(() => openedTask(id));
  useWork(reread);
  // The list may be gone from the screen, and the focus with it.
  useEffect(() => region.current?.focus({ preventScroll: true }), []);
  const now = details.value;
  return (
    <section ref={region} class="second stack" aria-labelledby={title} tabIndex={-1}>
      <div class="back">
        <a href={addressOf('work', ['tasks'])}>{work.allTasks}</a>
      </div>
      <h2 id={title}>{now?.task.goal ?? work.task}</h2>
      {fault.value !== null && <p role="alert">{fault.value || frame.failed}</p>}
      {now !== null && <Opened details={now} changed={changed} reread={reread} />}
    </section>
  );
}

function openedTask(id: string) {
  const details = signal<TaskDetails | null>(null);
  const fault = signal<string | null>(null);
  return {
    ...{ details, fault },
    async reread(): Promise<void> {
      try {
        details.value = await read<TaskDetails>(`api/board/tasks/${encodeURIComponent(id)}`);
        fault.value = null;
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        if (details.peek() === null || error.status === 404) fault.value = error.message;
      }
    },
  };
}

interface Seen {
  details: TaskDetails;
  changed: () => Promise<void>;
  reread: () => Promise<void>;
}

function Opened({ details, changed, reread }: Seen) {
  const { work } = useTexts();
  const { task, goal, plan, messages, calls, isCut, result, error, artifacts } = details;
  return (
    <>
      <Course details={details} changed={changed} />
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
      {isOpen(task) ? <Tell id={task.id} reread={reread} /> : <Again goal={goal} />}
    </>
  );
}

function Course({ details: { task }, changed }: Omit<Seen, 'reread'>) {
  const { work } = useTexts();
  const { from, agent, createdAt, startedAt, completedAt } = task;
  const time = (at: number) => timeInWords(at, languageOfPage());
  return (
    <>
      <div class="row">
        <Status task={task} />
        {task.status === 'interrupted' && <span class="small soft">{work.whyInterrupted}</span>}
        <StopTask task={task} changed={changed} />
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
              {filled(work.delegated, { name: from.persona, chat: from.chat })}
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

function Tell({ id, reread }: { id: string; reread: () => Promise<void> }) {
  const { work, frame } = useTexts();
  const [message, setMessage] = useState('');
  const [mode, setMode] = useState<Mode>('followup');
  const [outcome, setOutcome] = useState<{ told: boolean; words: string } | null>(null);
  const isSending = useRef(false);

  async function send(): Promise<void> {
    if (message.trim() === '' || isSending.current) return;
    isSending.current = true;
    setOutcome(null);
    try {
      await ask(`api/tasks/${encodeURIComponent(id)}/messages`, { method: 'POST', json: { message, mode } });
      setMessage('');
      setOutcome({ told: true, words: work.told });
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      setOutcome({ told: false, words: error.message || frame.failed });
    } finally {
      isSending.current = false;
    }
    await reread();
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
            setOutcome(null);
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
        {outcome !== null && (
          <p class="small" role={outcome.told ? 'status' : 'alert'}>
            {outcome.words}
          </p>
        )}
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
        class="quiet"
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
