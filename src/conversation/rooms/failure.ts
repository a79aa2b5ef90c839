/** Beside step 6 of the route: what people are told of a turn that came to no answer. Pure. */
import { jobOfEvent } from '../../core/jobs.js';
import { headOfTaskEnd, taskOfEvent } from '../../core/task.js';
import type { StoredMessage } from '../../core/transcript.js';

/**
 * What only a schedule led to is tried again, and told of when that was in vain. What became of a task is told all the
 * same: whoever wanted it would wait for ever.
 */
export function failureIn(batch: readonly StoredMessage[], sentence: string): string {
  if (batch.every(({ platformMessageId }) => jobOfEvent(platformMessageId) !== null)) return '';
  return [taskEndsIn(batch), sentence].filter((part) => part !== '').join('\n\n');
}

/** Empty if no task has ended. */
export function taskEndsIn(batch: readonly StoredMessage[]): string {
  const ends = batch.filter(({ platformMessageId }) => taskOfEvent(platformMessageId) !== null);
  return ends.map(({ text }) => headOfTaskEnd(text)).join('\n\n');
}
