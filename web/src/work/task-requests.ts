/** Tasks as the gateway knows them, and a goal on its way to it. */
import { batch, effect, type ReadonlySignal, signal } from '@preact/signals';
import type { TaskItem, TaskPage } from '../../../src/board/protocol.ts';
import { ask, isSignedIn, Refusal, read } from '../api.ts';
import { draftOf, keepDraft } from '../chat/drafts.ts';

const PAGE = 30;
/** Read anew at once; those further back stay as they were. */
const MOST_ANEW = 300;
const AGAIN_MS = 2_000;

export interface TaskList {
  /** Newest first, as far as they were asked for; null: not read yet. */
  tasks: ReadonlySignal<TaskItem[] | null>;
  hasMore: ReadonlySignal<boolean>;
  /** A sentence; empty: the gateway did not answer. */
  fault: ReadonlySignal<string | null>;
  read(): Promise<void>;
  more(): Promise<void>;
}

export function taskList(): TaskList {
  const tasks = signal<TaskItem[] | null>(null);
  const next = signal<string | null>(null);
  const hasMore = signal(false);
  const fault = signal<string | null>(null);

  async function pageOf(values: Record<string, string>): Promise<TaskPage | null> {
    try {
      const page = await read<TaskPage>(`api/board/tasks?${new URLSearchParams(values)}`);
      fault.value = null;
      return page;
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      // The live line says when to try again; what is there stays.
      if (tasks.peek() === null && error.status !== 401) fault.value = error.message;
      return null;
    }
  }

  function show(all: TaskItem[], before: string | null): void {
    batch(() => {
      tasks.value = all;
      next.value = before;
      hasMore.value = before !== null;
    });
  }

  return {
    ...{ tasks, hasMore, fault },
    async read() {
      const known = tasks.peek() ?? [];
      const most = Math.min(MOST_ANEW, Math.max(PAGE, known.length));
      const page = await pageOf({ most: `${most}` });
      if (page === null) return;
      const last = page.tasks.at(-1)?.id;
      const older = known.slice(known.findIndex(({ id }) => id === last) + 1);
      const isFurther = page.next !== null && older.length > 0 && older.length < known.length;
      show(isFurther ? [...page.tasks, ...older] : page.tasks, isFurther ? next.peek() : page.next);
    },
    async more() {
      const page = await pageOf({ before: next.peek() ?? '' });
      if (page !== null) show([...(tasks.peek() ?? []), ...page.tasks], page.next);
    },
  };
}

// ── A goal on its way ───────────────────────────────────────────────────────────────────────────────────────

const GOAL = 'work goal';
const KEY = 'work key';

/** As it stands in its field, also after a reload. */
export const goal = signal(draftOf(GOAL));
effect(() => {
  if (isSignedIn.value === false) goal.value = '';
});

export function setGoal(text: string): void {
  goal.value = text;
  keepDraft(GOAL, text);
}

export type Begun = { kind: 'begun' } | { kind: 'refused'; reason: string };

/**
 * Goes on trying until the gateway answers. The key is kept over a reload: the same goal is sent under it again, so that
 * an answer that was lost begins nothing twice. `waits`: called when the gateway is away.
 */
export async function begin(text: string, waits: () => void, signal: AbortSignal): Promise<Begun> {
  const key = keyFor(text);
  for (;;) {
    try {
      await ask('api/tasks', { method: 'POST', json: { goal: text, idempotency_key: key }, signal });
      keepDraft(KEY, '');
      return { kind: 'begun' };
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      if (error.status !== 0 && error.status !== 503) {
        if (error.status !== 401) keepDraft(KEY, '');
        return { kind: 'refused', reason: error.message };
      }
      waits();
    }
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, AGAIN_MS);
      signal.addEventListener('abort', () => {
        clearTimeout(timer);
        resolve();
      });
    });
    signal.throwIfAborted();
  }
}

/** That of the last attempt, if nobody knows what became of it. */
function keyFor(text: string): string {
  const [key = '', ...words] = draftOf(KEY).split(' ');
  if (key !== '' && words.join(' ') === text) return key;
  const made = [...crypto.getRandomValues(new Uint32Array(4))].map((n) => n.toString(36)).join('-');
  keepDraft(KEY, `${made} ${text}`);
  return made;
}
