/** Tasks as the gateway knows them, and a goal on its way to it. */
import { effect, signal } from '@preact/signals';
import type { TaskItem, TaskPage } from '../../../src/board/protocol.ts';
import { ask, isSignedIn, Refusal, read } from '../api.ts';
import { draftOf, keepDraft } from '../kit/drafts.ts';
import { usePages } from '../kit/follow.ts';

const AGAIN_MS = 2_000;
/** Newest first. */
export function useTasks() {
  return usePages(['work'], tasks);
}

async function tasks(
  before: string | null,
  signal: AbortSignal,
): Promise<{ items: TaskItem[]; next: string | null }> {
  const query = new URLSearchParams(before === null ? {} : { before });
  const page = await read<TaskPage>(`api/board/tasks?${query}`, signal);
  return { items: page.tasks, next: page.next };
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
