/**
 * Who follows tasks in this process, and what they have not read yet. Nobody waits for a follower: of what it does not
 * read, the oldest is forgotten. The end is not kept here: it stands in the store.
 */
import type { TaskEvent } from '../core/task.js';

export interface Followers {
  /** Something happened to a task. */
  saw(taskId: string, events: readonly TaskEvent[]): void;
  /** The task may be over: whoever follows it looks. */
  ended(taskId: string): void;
  join(taskId: string): Follower;
}

export interface Follower {
  /** What happened since it was asked last, in order. */
  read(): TaskEvent[];
  /** Resolves at once where something can be read, else as soon as something happens, or the signal aborts. */
  wait(signal: AbortSignal): Promise<void>;
  leave(): void;
}

/** Events are shared by all who follow a task, so a follower costs no more than this many references. */
const MOST_UNREAD = 200;

interface Unread {
  events: TaskEvent[];
  /** It may be over, which nobody has looked at yet. */
  mayBeOver: boolean;
  wake(): void;
}

export function createFollowers(): Followers {
  const followed = new Map<string, Set<Unread>>();
  const of = (taskId: string) => followed.get(taskId) ?? [];

  return {
    saw(taskId, events) {
      for (const follower of of(taskId)) {
        follower.events.push(...events);
        if (follower.events.length > MOST_UNREAD)
          follower.events.splice(0, follower.events.length - MOST_UNREAD);
        follower.wake();
      }
    },

    ended(taskId) {
      for (const follower of of(taskId)) {
        follower.mayBeOver = true;
        follower.wake();
      }
    },

    join(taskId) {
      const all = followed.get(taskId) ?? new Set();
      followed.set(taskId, all);
      const unread: Unread = { events: [], mayBeOver: false, wake() {} };
      all.add(unread);
      return {
        read() {
          const { events } = unread;
          unread.events = [];
          unread.mayBeOver = false;
          return events;
        },
        wait: (signal) =>
          new Promise((resolve) => {
            const done = () => {
              unread.wake = () => {};
              signal.removeEventListener('abort', done);
              resolve();
            };
            if (signal.aborted || unread.mayBeOver || unread.events.length > 0) return resolve();
            unread.wake = done;
            signal.addEventListener('abort', done, { once: true });
          }),
        leave() {
          all.delete(unread);
          if (all.size === 0 && followed.get(taskId) === all) followed.delete(taskId);
        },
      };
    },
  };
}
