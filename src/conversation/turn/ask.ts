/** Step 5 of the route: what a turn is asked with, what it may use, and how it stores what it does. */
import type { AskedCall } from '../../core/access.js';
import type { Clock } from '../../core/clock.js';
import type { Zone } from '../../core/dates.js';
import type { RoomId } from '../../core/ids.js';
import type { Audit, JournalPlace, JournalWrite } from '../../core/journal.js';
import type { Log, Metrics } from '../../core/log.js';
import type { Cause, SeenTier } from '../../core/memory.js';
import type { ModelClient, ModelMessage } from '../../core/model.js';
import type { Persona } from '../../core/persona.js';
import type { Authorisation, ToolSet, Wait } from '../../core/tool.js';
import type { Step } from '../../core/transcript.js';
import type { TurnBounds } from './bounds.js';
import type { RunWord } from './leave.js';

export interface TurnServices {
  model: ModelClient;
  audit: Audit;
  zone: Pick<Zone, 'name'>;
  clock: Clock;
  /** 6 letters and digits that are told apart easily. */
  newCallCode(): string;
  log: Log;
  metrics: Metrics;
}

export interface TurnAsk {
  turnId: string;
  /** What the ids of its calls are made from, where more than one request has this `turnId`. Left out: the `turnId`. */
  callSeed?: string;
  room: RoomId;
  tools: ToolSet;
  maxToolRounds: number;
  bounds: TurnBounds;
  persona: Pick<Persona, 'model' | 'temperature'>;
  /** System prompt, history, and finally the batch. */
  messages: ModelMessage[];
  /** What the prompt shows of tiers; the memory tools keep it current. */
  seen: Map<string, SeenTier>;
  authorisation: Authorisation;
  /** Stored with what tools write. */
  cause: Cause;
  /** Where its calls stand in the journal. */
  record: Pick<JournalPlace, 'room' | 'turnId'> & { parentEventId: string | null };
  /** What the model is shown of words from outside. */
  trust: Trust;
  /** What owners have said of the whole run of an agent. Left out: a persona acts, and asks about each call. */
  run?: RunWord;
  /** How long a person may take to decide about a call; null: nobody can be asked. */
  approvalMs: number | null;
  /** Steps stored by an earlier run of this turn; grows as the turn proceeds. */
  steps: Step[];
  /**
   * Stores a step with its entries in the journal, and asks people about a call. False when the claim is lost: the turn
   * must then end silently.
   */
  save(step: Step, more?: Further): Promise<boolean>;
  /**
   * Ends the entries of calls that an abort cut off. Left out: whoever aborts the turn, or goes on with it, does.
   */
  cutOff?(entries: readonly JournalWrite[]): Promise<void>;
  /** Nobody reads the answer: once tools have answered, an empty one is its end. */
  isUnread?: true;
  /** Shows the chat the text of the current round so far; empty when it starts over. */
  show?(text: string): void;
  signal: AbortSignal;
}

/** What is stored in one transaction with a step. */
export interface Further {
  entries?: readonly JournalWrite[];
  asked?: AskedCall;
}

export interface Trust {
  /** Words from outside stand in the window, in its summary, or in what is answered. */
  isTainted: boolean;
  /** Whether a person named this host in words of their own that are there. */
  isNamed(host: string): boolean;
}

/** What ends or suspends a turn before its answer. */
export type CallsEnd =
  /** A call waits for an outside result, or for a person; the step is stored. */
  | ({ kind: 'suspended' } & Wait)
  /** Aborted, or the claim was lost. */
  | { kind: 'dropped' };

/** False when the claim is lost. */
export async function keep(ask: TurnAsk, step: Step, more?: Further): Promise<boolean> {
  if (!(await ask.save(step, more))) return false;
  ask.steps.push(step);
  return true;
}
