/** The state of a task in plain words, and the way to end it. */
import { useRef, useState } from 'preact/hooks';
import type { TaskItem } from '../../../src/board/protocol.ts';
import { ask, Refusal, sentenceOf } from '../api.ts';
import { useTexts } from '../app.ts';
import { Fault } from '../kit/fault.tsx';

export function isOpen({ status }: TaskItem): boolean {
  return status === 'pending' || status === 'running';
}

const LOOKS: Record<TaskItem['status'], string> = {
  pending: '',
  running: 'warn',
  completed: 'good',
  error: 'bad',
  stopped: '',
  interrupted: 'bad',
};

export function Status({ task: { status } }: { task: TaskItem }) {
  const { work } = useTexts();
  return <span class={`tag ${LOOKS[status]}`}>{work.status[status]}</span>;
}

/** While it waits or runs. */
export function StopTask({ task }: { task: TaskItem }) {
  const { work } = useTexts();
  const [fault, setFault] = useState<string | null>(null);
  const isAsked = useRef(false);
  if (!isOpen(task)) return null;

  async function stop(): Promise<void> {
    if (isAsked.current) return;
    isAsked.current = true;
    setFault(null);
    try {
      await ask(`api/tasks/${encodeURIComponent(task.id)}/stop`, { method: 'POST', json: {} });
    } catch (error) {
      const words = sentenceOf(error);
      // It may have ended by itself, which the list shows.
      if (!(error instanceof Refusal && error.status === 409)) setFault(words);
    } finally {
      isAsked.current = false;
    }
  }

  return (
    <>
      <button type="button" class="stop" onClick={stop}>
        {work.stop}
      </button>
      <Fault says={fault} />
    </>
  );
}
