/**
 * What a command has asked somebody: a plain `yes` of the same person in the same room is the answer, anything
 * else of theirs ends the waiting. Asked in the control lane, looked at in step 1. Only in memory: after a
 * restart nobody is waited for, and a command that needs a yes is given again.
 */
import type { Clock } from '../core/clock.js';
import type { ChatId, RoomId } from '../core/ids.js';
import type { NewCommand } from '../core/store.js';

export interface Question {
  room: RoomId;
  senderId: ChatId;
  /** The message that led to it: when a platform hands that in once more, it is no answer. */
  askedBy: string;
  /** What a yes does. */
  ifYes: NewCommand;
}

/** A question and when the waiting for its answer ends. */
export type Asked = Question & { until: number };

export interface Questions {
  /** Replaces what this person was asked in this room before. */
  ask(question: Question): void;
  /** Ends the waiting for this person; null when nothing was asked, or too long ago. */
  take(from: { room: RoomId; senderId: ChatId; platformMessageId: string }): Asked | null;
  /** The message that ended the waiting could not be stored, and comes again. */
  putBack(asked: Asked): void;
}

const WAIT_MS = 120_000;

export function createQuestions(clock: Pick<Clock, 'now'>): Questions {
  const waiting = new Map<string, Asked>();

  function forgetOld(): void {
    const now = clock.now();
    for (const [key, { until }] of waiting) if (until <= now) waiting.delete(key);
  }

  return {
    ask(question) {
      forgetOld();
      waiting.set(keyOf(question), { ...question, until: clock.now() + WAIT_MS });
    },
    take(from) {
      forgetOld();
      const asked = waiting.get(keyOf(from));
      if (!asked || asked.askedBy === from.platformMessageId) return null;
      waiting.delete(keyOf(from));
      return asked;
    },
    putBack(asked) {
      // Meanwhile a newer one may have been asked.
      if (!waiting.has(keyOf(asked))) waiting.set(keyOf(asked), asked);
    },
  };
}

function keyOf({ room, senderId }: { room: RoomId; senderId: ChatId }): string {
  return `${room} ${senderId}`;
}
