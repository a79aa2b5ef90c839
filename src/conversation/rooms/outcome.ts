/** Between steps 5 and 6 of the route: what came of a turn's requests. Pure. */
import { Fault } from '../../core/errors.js';
import { jobOfEvent } from '../../core/jobs.js';
import { headOfTaskEnd, taskOfEvent } from '../../core/task.js';
import type { Step, StoredMessage } from '../../core/transcript.js';
import type { TurnSight } from '../../core/turn-record.js';
import type { Measured } from '../../core/view.js';
import type { Context } from '../context/context.js';
import { stepMessages } from '../turn/steps.js';
import { tokensOf } from '../turn/tokens.js';
import type { TurnOutcome } from '../turn/turn.js';
import type { Turn } from './room-services.js';

/** The reason why there is no reply; null when there is one. */
export function faultOf(outcome: TurnOutcome & { kind: 'answered' | 'failed' }): Fault | null {
  if (outcome.kind === 'failed') return outcome.fault;
  const isSilent = outcome.text === '' && outcome.wordless === undefined;
  return isSilent ? new Fault('model_empty', 'no words') : null;
}

/**
 * What only a schedule led to is tried again, and told of when that was in vain. What became of a task is told all the
 * same: whoever wanted it would wait for ever.
 */
export function failureIn({ batch }: Pick<Turn, 'batch'>, sentence: string): string {
  if (batch.every(({ platformMessageId }) => jobOfEvent(platformMessageId) !== null)) return '';
  return [taskEndsIn(batch), sentence].filter((part) => part !== '').join('\n\n');
}

/** Empty if no task has ended. */
export function taskEndsIn(batch: readonly StoredMessage[]): string {
  const ends = batch.filter(({ platformMessageId }) => taskOfEvent(platformMessageId) !== null);
  return ends.map(({ text }) => headOfTaskEnd(text)).join('\n\n');
}

/** What `coterie replay` is to know of a request's making. */
export function sightOf({ recalled, view, sizes, requestTokens }: Context): TurnSight {
  const { windowAfter, summary } = view;
  return { recalled, summary, windowAfter, messages: sizes.messages, estimatedTokens: requestTokens };
}

/** The server's token count for the turn's last request, next to our estimate of the same request. */
export function measuredOf(outcome: TurnOutcome, context: Context, steps: Step[]): Measured | null {
  // What a server counts of a request that it has cut says nothing about its size.
  if (outcome.kind !== 'answered' || outcome.cut || !outcome.last || outcome.last.inputTokens <= 0)
    return null;
  const estimated = context.requestTokens + tokensOf(stepMessages(steps));
  return { counted: outcome.last.inputTokens, estimated };
}
