/** What a task is told while it runs: which of the waiting messages come next. Pure. */
import type { TaskMessage } from '../core/task.js';

export interface NextMessages {
  /** As one message of the user's. */
  text: string;
  ns: number[];
}

/** What steers comes first, all of it together; then what follows up, one by one; at last what was collected, together. */
export function nextMessages(waiting: readonly TaskMessage[]): NextMessages | null {
  const of = (mode: TaskMessage['mode']) => waiting.filter((message) => message.mode === mode);
  const next = [of('steer'), of('followup').slice(0, 1), of('collect')].find(({ length }) => length > 0);
  if (next === undefined) return null;
  return { text: next.map(({ text }) => text).join('\n'), ns: next.map(({ n }) => n) };
}
