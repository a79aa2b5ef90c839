/** An agent's run waits for what owners decide about a call. Nothing else does. */
import type { AskedCall } from '../../core/access.js';
import { GATEWAY } from '../../core/journal.js';
import type { Services } from '../services.js';

/** `ended`: the task is over. */
export type Decision = 'approved' | 'denied' | 'expired' | 'ended';

/** Resolves when it is decided, has expired, or the signal has aborted, which makes it expire. */
export async function decisionOn(
  services: Services,
  { id, until }: Pick<AskedCall, 'id' | 'until'>,
  signal: AbortSignal,
): Promise<Decision> {
  const { store, clock } = services;
  let isNews = false;
  let wake = () => {};
  const changed = () => {
    isNews = true;
    wake();
  };
  const stopWatching = store.watchTasks(changed);
  signal.addEventListener('abort', changed, { once: true });
  try {
    for (;;) {
      isNews = false;
      const decision = await store.taskDecision(id);
      if (decision !== null) return decision;
      if (signal.aborted || clock.now() >= until) return await expire(services, id);
      const cancel = clock.after(Math.max(1, until - clock.now()), changed);
      if (!isNews) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
      cancel();
    }
  } finally {
    stopWatching();
    signal.removeEventListener('abort', changed);
  }
}

/** Its buttons are over. No chat is told: the task's outcome says it. Whoever decided just before counts. */
async function expire({ store, clock, audit }: Services, id: string): Promise<Decision> {
  const now = clock.now();
  const call = await store.askedCall(id, now);
  const expired = await store.expire({ id, now, refusal: { content: '', told: null } });
  if (call !== null && expired !== null) {
    const what = `${call.tool} expired (${id})`;
    await audit.note({ kind: 'call', who: GATEWAY, where: call.chatId, what, word: null });
  }
  return (await store.taskDecision(id)) ?? 'expired';
}
