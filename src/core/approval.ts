/**
 * Tool calls that wait for a person. The turn is suspended with the question (`RouteStore.suspend`); the first decision
 * counts and brings the turn back, which then runs the call, once, or tells the model that it must not.
 */
import { createHash } from 'node:crypto';
import type { Offer } from './access.js';
import type { Post } from './delivery.js';
import type { ChatId, PersonaId, RoomId } from './ids.js';

export interface AskedCall {
  /** Letters and digits, as people type it: `/approve ID`. */
  id: string;
  /** What the suspended turn waits for: `waitsForCall`. */
  waitsFor: string;
  room: RoomId;
  chatId: ChatId;
  personaId: PersonaId;
  turnId: string;
  callId: string;
  tool: string;
  /** Exactly what is approved: the call runs with these, or not at all. Empty when it is over. */
  arguments: string;
  /** Why it asks: a sentence for whoever decides. Empty when it is over. */
  why: string;
  askedAt: number;
  until: number;
}

/** A question that is stored with the step by which a turn waits. */
export interface NewQuestion {
  call: AskedCall;
  /** Where it stands: in the control chats, or in the chat itself. */
  posts: Post[];
  /** The buttons below it; their keys begin with `offerKeyOf(id)`. */
  offers: Offer[];
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
    by: ChatId;
    /** The command that decides. */
    commandId: number;
    now: number;
    /** null: yes. */
    refusal: Refusal | null;
  }): Promise<{ kind: 'approved' | 'denied'; wakes: RoomId } | { kind: 'over' | 'unknown' }>;
  /** Nobody has decided in time, which is a no. Returns the room that goes on; null if it was over already. */
  expire(ask: { id: string; now: number; refusal: Refusal }): Promise<RoomId | null>;
}

/** What comes of a call that is not allowed. */
export interface Refusal {
  /** Its result, for the model. */
  content: string;
  /** What the chat of the call is told; null: nothing. */
  told: Post | null;
}

/** Why a question about a whole run of an agent is asked: the words by which it is known from one about a single call. */
export const WHOLE_RUN =
  'A yes is to the whole of this run: to all its commands, and to all by which it leaves this machine.';

/** While it is open: what is over has lost its words. */
export function isAboutRun({ why }: Pick<AskedCall, 'why'>): boolean {
  return why === WHOLE_RUN;
}

const WAITS_FOR = 'approval:';

/** It holds what was asked, in short: a call whose arguments are others by now (`/memory forget`) is not the one. */
export function waitsForCall({ id, arguments: given }: Pick<AskedCall, 'id' | 'arguments'>): string {
  return `${WAITS_FOR}${id}:${createHash('sha256').update(given).digest('hex').slice(0, 32)}`;
}

/** The id of the call that a turn waits for; null if it waits for something else. */
export function askedCallIn(waitsFor: string): string | null {
  return waitsFor.startsWith(WAITS_FOR) ? (waitsFor.split(':')[1] ?? null) : null;
}

export function offerKeyOf(id: string): string {
  return `asked-${id}-`;
}
