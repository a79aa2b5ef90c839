/**
 * The one loop of model and tools, as whoever runs a task uses it. The conversation implements it: limits and budgets,
 * the journal, questions to people and what they decide are the same as in a turn.
 */
import type { AgentDefinition } from './agents.js';
import type { Fault } from './errors.js';
import type { JournalWrite } from './journal.js';
import type { ModelMessage } from './model.js';
import type { Task, TaskEvent } from './task.js';
import type { AgentPlace } from './tool.js';
import type { Step } from './transcript.js';

export interface WorkAsk {
  task: Task;
  agent: AgentDefinition;
  place: AgentPlace;
  /** System prompt first; the last one is what is asked. */
  messages: ModelMessage[];
  /** Words from outside stood before the model in what the task was given, or in an earlier request. */
  isTainted: boolean;
  /** Which request of the task it is, from 0: the ids of its calls depend on it. */
  round: number;
  /** Stores what it did, first. False: the task is over, and so is this. */
  note(what: { entries?: readonly JournalWrite[]; events?: readonly TaskEvent[] }): Promise<boolean>;
  /** It waits for a person, or goes on: such time does not count against its budget. */
  waits(isWaiting: boolean): void;
}

export interface WorkDone {
  /** All that was said and done: the messages that were given, calls, results, and the answer. */
  messages: ModelMessage[];
  /** Of this request alone. */
  steps: Step[];
  /** Words from outside stood before the model. */
  tainted: boolean;
  /** A call was refused that would have needed an owner's word on this very task. */
  wasExternalRefused: boolean;
}

export type WorkEnd =
  | ({ kind: 'answered'; text: string } & WorkDone)
  | ({ kind: 'failed'; fault: Fault } & WorkDone)
  /** The signal aborted, or the task is over: a call that was cut off has a result that says so. */
  | ({ kind: 'dropped' } & WorkDone);

export interface Work {
  do(ask: WorkAsk, signal: AbortSignal): Promise<WorkEnd>;
}

/** What a call is told that leaves the machine without an owner's word. */
export const NEEDS_INSTRUCTION = 'requires explicit owner instruction';
