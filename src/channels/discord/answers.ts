/**
 * Native commands that wait for their answer. Discord shows whoever gave one that it failed unless it hears of an answer
 * within three seconds: what takes longer is announced, and the answer then fills its place. What cannot be answered as
 * such any more is left to an ordinary message.
 */
import type { Reception, SendResult } from '../../core/channel.js';
import type { Clock } from '../../core/clock.js';
import type { ChatId } from '../../core/ids.js';
import type { Answering, Command } from './answering.js';
import type { Content, Outgoing } from './outbound.js';

/** Of Discord's three seconds, so many are ours to answer at once. */
const DEFER_MS = 1_800;
/** Discord's patience is fifteen minutes. */
const EXPIRES_MS = 14 * 60_000;

type Why = Reception['turnedAway'][number]['why'];

export interface Waiting extends Pick<Command, 'id' | 'token' | 'applicationId'> {
  /** Our ids of the chat, and of the guild that it is part of. */
  chat: ChatId;
  within: ChatId | null;
}

export interface Answers {
  /** From now on it waits. Twice is once. */
  open(command: Waiting): void;
  awaits(id: string): boolean;
  /** Tells whoever gave the command why they were not let in, and nobody else. Never rejects. */
  turnAway(id: string, why: Why): Promise<void>;
  /** null where it is not such a command, or cannot be answered as one any more. */
  answer(id: string, content: Content, message: Outgoing, signal: AbortSignal): Promise<SendResult | null>;
  close(): void;
}

interface Entry extends Command, Waiting {
  /** One step at a time. */
  turn: Promise<unknown>;
  cancelTimers(): void;
}

export function createAnswers(answering: Answering, clock: Clock): Answers {
  const entries = new Map<string, Entry>();

  function inTurn<T>(entry: Entry, act: () => Promise<T>): Promise<T> {
    const done = entry.turn.then(act);
    entry.turn = done.catch(() => {});
    return done;
  }

  function remove(entry: Entry): void {
    entry.cancelTimers();
    entries.delete(entry.id);
  }

  function expire(entry: Entry): void {
    remove(entry);
    void inTurn(entry, () => answering.withdraw(entry));
  }

  return {
    open(command) {
      if (entries.has(command.id)) return;
      const timers = [
        clock.after(DEFER_MS, () => void inTurn(entry, () => answering.defer(entry))),
        clock.after(EXPIRES_MS, () => expire(entry)),
      ];
      const cancelTimers = () => {
        for (const cancel of timers) cancel();
      };
      const entry: Entry = {
        ...command,
        ...{ stage: 'open', arrived: new Map(), turn: Promise.resolve(), cancelTimers },
      };
      entries.set(entry.id, entry);
    },

    awaits(id) {
      const stage = entries.get(id)?.stage;
      return stage === 'open' || stage === 'deferred';
    },

    async turnAway(id, why) {
      const entry = entries.get(id);
      if (entry === undefined) return;
      remove(entry);
      await inTurn(entry, () => answering.whisper(entry, turnedAway(why, entry)));
    },

    async answer(id, content, message, signal) {
      const entry = entries.get(id);
      if (entry === undefined) return null;
      return inTurn(entry, () => answering.answer(entry, content, message, signal));
    },

    close() {
      for (const entry of entries.values()) remove(entry);
    },
  };
}

/** One sentence for whoever gave a native command and was not let in. */
function turnedAway(why: Why, { chat, within }: Waiting): string {
  switch (why) {
    case 'unlisted group': {
      const whole = within === null ? '' : `, the id of the whole server is \`${within}\``;
      return `I do not talk in this channel yet: whoever runs me can let it in (its id is \`${chat}\`${whole}).`;
    }
    case 'unknown sender':
      return 'I do not know you yet: please give the code that I sent you here to whoever runs me.';
    case 'closed':
      return 'I am not open to new conversations.';
  }
}
