/**
 * Tool calls that wait for a person. The turn is suspended with the question (`RouteStore.suspend`); the first decision
 * counts and brings the turn back, which then runs the call, once, or tells the model that it must not.
 */
import type { Announcement } from './access.js';
import type { ChatId, PersonaId, RoomId } from './ids.js';

export interface AskedCall {
  /** Letters and digits, as people type it: `/approve ID`. */
  id: string;
  /** What the suspended turn waits for. */
  waitsFor: string;
  room: RoomId;
  chatId: ChatId;
  personaId: PersonaId;
  turnId: string;
  callId: string;
  tool: string;
  /** Exactly what is approved: the call runs with these, or not at all. */
  arguments: string;
  /** Why it asks: a sentence for whoever decides. */
  why: string;
  askedAt: number;
  until: number;
}

/** A question that is stored with the step by which a turn waits. */
export interface NewQuestion {
  call: AskedCall;
  /** Where it stands: the control chats, or the chat itself; with buttons. */
  announcements: Announcement[];
}

export interface ApprovalStore {
  /** By its id in any case; `isOpen`: the turn still waits for it. null if there is none. */
  askedCall(id: string, now: number): Promise<(AskedCall & { isOpen: boolean }) | null>;
  /** The open ones, oldest first; left out: of all chats. */
  askedCalls(now: number, chatId?: ChatId): Promise<AskedCall[]>;
  /**
   * Decides it, once, and makes its turn ready. 'over': it was decided, has expired, or its turn was ended by `/reset` or
   * `/stop`. The same command that asks again after a crash gets the same answer. `wakes`: the room that goes on.
   */
  decide(decision: {
    id: string;
    yes: boolean;
    by: ChatId;
    /** The command that decides. */
    commandId: number;
    now: number;
  }): Promise<{ kind: 'approved' | 'denied'; wakes: RoomId } | { kind: 'over' | 'unknown' }>;
}
