/** Tasks: a goal to give, all that were given, newest first, and one of them opened beside the list. */
import { useEffect, useId, useState } from 'preact/hooks';
import type { TaskItem } from '../../../src/board/protocol.ts';
import { useTexts } from '../app.ts';
import { chatName } from '../kit/chats.ts';
import { Fault } from '../kit/fault.tsx';
import { Time } from '../kit/time.tsx';
import { addressOf } from '../place.ts';
import { filled } from '../texts/texts.ts';
import { Task } from './task.tsx';
import { begin, goal, setGoal, useTasks } from './task-requests.ts';
import { Status, StopTask } from './task-state.tsx';

export function Tasks({ opened }: { opened: string | null }) {
  const { work } = useTexts();
  const id = useId();
  const { items: tasks, hasMore, more, fault } = useTasks();
  return (
    <div class={`pair ${opened === null ? '' : 'chosen'}`}>
      <div class="first stack">
        <Goal />
        {tasks === null && <Fault says={fault} />}
        <h2 id={id}>{work.tasks}</h2>
        {tasks?.length === 0 && <p class="soft">{work.noTasks}</p>}
        {/* biome-ignore lint/a11y/noRedundantRoles: without markers, Safari takes the role away. */}
        <ul class="list items" role="list" aria-labelledby={id}>
          {tasks?.map((task) => (
            <li key={task.id}>
              <Item task={task} isOpened={task.id === opened} />
            </li>
          ))}
        </ul>
        {hasMore && (
          <div>
            <button type="button" class="quiet" onClick={more}>
              {work.more}
            </button>
          </div>
        )}
      </div>
      {opened !== null && <Task key={opened} id={opened} />}
    </div>
  );
}

function Goal() {
  const { work } = useTexts();
  const [state, setState] = useState<'idle' | 'sending' | 'waiting' | 'begun'>('idle');
  const [fault, setFault] = useState<string | null>(null);
  const [over] = useState(() => new AbortController());
  useEffect(() => () => over.abort(), [over]);

  async function start(): Promise<void> {
    if (goal.peek().trim() === '' || state === 'sending' || state === 'waiting') return;
    setFault(null);
    setState('sending');
    try {
      const answer = await begin(goal.peek(), () => setState('waiting'), over.signal);
      if (answer.kind === 'begun') setGoal('');
      else setFault(answer.reason);
      setState(answer.kind === 'begun' ? 'begun' : 'idle');
    } catch (error) {
      // The goal is still in its field on the next visit.
      if (!over.signal.aborted) throw error;
    }
  }

  return (
    <form
      class="stack goal"
      onSubmit={(event) => {
        event.preventDefault();
        void start();
      }}
    >
      <label>
        {work.goal}
        <textarea
          rows={2}
          value={goal.value}
          placeholder={work.goalExample}
          readOnly={state === 'sending' || state === 'waiting'}
          onInput={({ currentTarget }) => {
            setGoal(currentTarget.value);
            setState('idle');
          }}
          onKeyDown={(event) => {
            if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey) || event.isComposing) return;
            event.preventDefault();
            void start();
          }}
        />
      </label>
      <div class="row">
        <button type="submit" class="primary">
          {work.start}
        </button>
        <p role="status" class="small soft">
          {state === 'waiting' ? work.waits : state === 'begun' ? work.begun : ''}
        </p>
      </div>
      <Fault says={fault} />
    </form>
  );
}

function Item({ task, isOpened }: { task: TaskItem; isOpened: boolean }) {
  const { work, kit } = useTexts();
  const { id, words, from, agent, createdAt } = task;
  return (
    <article class={`item ${isOpened ? 'opened' : ''}`}>
      <div class="line">
        <a href={addressOf('work', ['tasks', id])} {...(isOpened && { 'aria-current': 'true' })}>
          {task.goal}
        </a>
        <Status task={task} />
      </div>
      {words !== null && words !== '' && <p class="small words">{words}</p>}
      <div class="row tiny soft">
        <Time at={createdAt} />
        {from !== null && (
          <span class="cuts">
            {filled(work.delegated, {
              name: from.persona,
              chat: chatName(from.room, from.chat, kit.mainChat),
            })}
          </span>
        )}
        {agent !== 'utility' && <span class="cuts">{agent}</span>}
        <StopTask task={task} />
      </div>
    </article>
  );
}
