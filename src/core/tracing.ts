/**
 * The steps of the route as an outside system for traces sees them. Each is told when it is over, with ids that say where
 * it belongs, so nothing is carried along the route. Never told: words, names, chats and people.
 */
import type { PersonaId, RoomId } from './ids.js';
import type { Usage } from './model.js';

/** Absent where nothing is traced. */
export interface Tracing {
  /** Never throws, never waits. */
  tell(step: TracedStep): void;
}

/** Times are ms since 1970. `error`: a code, if it failed. */
export type TracedStep = { from: number; until: number; error?: string | undefined } & (
  | { kind: 'receive'; channel: string; message: TracedMessage }
  | TracedTurn
  | {
      kind: 'model';
      turnId: string;
      model: string;
      /** Absent without an answer. */
      answered?: { model?: string | undefined; usage: Usage | null };
    }
  | { kind: 'tool'; turnId: string; tool: string; callId: string }
  /** One attempt to send a part. `turnId` null: the gateway's own text. */
  | { kind: 'send'; turnId: string | null; channel: string; outcome: string }
);

/** A persona's turn, or a task, which has an agent; told once, by the process that ends it. */
export interface TracedTurn {
  kind: 'turn';
  turnId: string;
  agent: PersonaId;
  outcome: string;
  /** The messages it answers. */
  answers: TracedMessage[];
  /** The turn that gave the task. */
  givenBy?: string | undefined;
}

/** By values that are known when it comes and when it is answered. */
export interface TracedMessage {
  room: RoomId;
  platformMessageId: string;
}

/** Ids of turns have hyphens, those of messages have none. */
const OF_A_TURN = /^(?:turn|tool|notice|interrupted):([^:]*-[^:]*)(?::|$)/;

/** The turn, or task, behind the origin of a delivery. */
export function turnOfOrigin(origin: string): string | null {
  return OF_A_TURN.exec(origin)?.[1] ?? null;
}
