/**
 * The port of what is recorded of a turn beside the store, for `coterie replay`: each request as it was sent, what came
 * of it, and what stood beside the conversation. Nobody waits for it, and no turn fails by it.
 */
import type { ChatId, PersonaId, RoomId } from './ids.js';
import type { ModelClient } from './model.js';
import type { Position } from './view.js';

export interface TurnRecords {
  /**
   * Begins the record of one run of a turn: of one that is suspended, each run has its own. A run whose signal aborts
   * leaves none.
   */
  open(turn: RecordedTurn, signal: AbortSignal): TurnRecorder;
  /**
   * Removes what was recorded of a persona in a chat (null: of all of them), also what is still to be written of turns
   * that have begun. Rejects where that cannot be done.
   */
  forget(chatId: ChatId, personaId: PersonaId | null): Promise<void>;
}

export interface RecordedTurn {
  turnId: string;
  chatId: ChatId;
  room: RoomId;
  personaId: PersonaId;
}

export interface TurnRecorder {
  /** What the requests that follow were made from. */
  saw(sight: TurnSight): void;
  /** The same model, each request to which is recorded. */
  watch(model: ModelClient): ModelClient;
  /** The run is over: it is written in the background. */
  end(): void;
}

export interface TurnSight {
  /** The recalled lines, as shown. */
  recalled: string[];
  summary: string | null;
  /** Where the window began, and how many messages it held with those that are answered. */
  windowAfter: Position;
  messages: number;
  /** Our own estimate of the request, in tokens. */
  estimatedTokens: number;
}
