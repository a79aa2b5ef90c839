/** The state of a task in plain words, and the way to end it. */
import { useRef, useState } from 'preact/hooks';
import type { TaskItem } from '../../../src/board/protocol.ts';
import { ask, Refusal } from '../api.ts';
import { useTexts } from '../app.ts';

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
export function StopTask({ task, changed }: { task: TaskItem; changed: () => Promise<void> }) {
  const { work, frame } = useTexts();
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
      if (!(error instanceof Refusal)) throw error;
      // It may have ended by itself, which the list shows.
      if (error.status !== 409) setFault(error.message || frame.failed);
    } finally {
      isAsked.current = false;
    }
    await changed();
  }

  return (
    <>
      <button type="button" class="stop" onClick={stop}>
        {work.stop}
      </button>
      {fault !== null && <span role="alert">{fault}</span>}
    </>
  );
}
