/**
 * What Discord refuses us, so that it is not asked for again and again: ten thousand refused calls in ten minutes, and it
 * bans the address. What the bot may not do somewhere is left alone for a while, longer each time, until Discord tells
 * of a change of roles or channels; and if far too much is refused nevertheless, nothing is asked for some minutes.
 */
import type { Clock } from '../../core/clock.js';
import { bounded } from '../kit/bounded.js';
import { CODE, type Failure } from './failure.js';

/** How many things of one kind are remembered; older ones go. */
const MOST_NOTED = 1_000;
const FIRST_PAUSE_MS = 60_000;
const LONGEST_PAUSE_MS = 3_600_000;
const WINDOW_MS = 600_000;
/** Of Discord's ten thousand, what we allow ourselves. */
const MOST_IN_WINDOW = 2_000;
/** With these it will say no to all of the same kind. */
const LASTING = new Set<number | null>([
  CODE.missingAccess,
  CODE.missingPermissions,
  CODE.noDirectMessages,
  CODE.noHistoryToReplyTo,
  CODE.noVoiceHere,
]);

export type Forbidden = ReturnType<typeof createForbidden>;

export function createForbidden(clock: Clock) {
  /** By kind of call. */
  const barred = bounded<string, { kind: string; until: number; pauseMs: number; failure: Failure }>(
    MOST_NOTED,
  );
  let lifts = 0;
  let refused: number[] = [];

  function recently(): number {
    if (refused.length > 0) refused = refused.filter((at) => clock.now() - at < WINDOW_MS);
    return refused.length;
  }

  return {
    /** Why such a call is not made now; null where it may be. */
    reason(kind: string): Failure | null {
      const bar = barred.get(kind);
      if (bar !== undefined && clock.now() < bar.until) {
        const minutes = Math.ceil((bar.until - clock.now()) / 60_000);
        const { failure } = bar;
        return { ...failure, reason: `${failure.reason}; it is not asked again for up to ${minutes} min` };
      }
      if (recently() < MOST_IN_WINDOW) return null;
      const retryAfterMs = (refused[0] ?? clock.now()) + WINDOW_MS - clock.now();
      const reason = `Discord refused ${MOST_IN_WINDOW} calls within ten minutes; nothing is asked of it for ${Math.ceil(retryAfterMs / 1000)} s`;
      return { reason, code: null, status: 429, retryAfterMs };
    },
    /** The answer to any call. Discord does not count it where the limit was not ours. */
    count(status: number, scope: string | null): void {
      if (status === 401 || status === 403 || (status === 429 && scope !== 'shared'))
        refused.push(clock.now());
    },
    /** Such a call was refused. */
    note(kind: string, failure: Failure): void {
      if (failure.status !== 403 || !LASTING.has(failure.code)) return;
      const pauseMs = Math.min(LONGEST_PAUSE_MS, 2 * (barred.get(kind)?.pauseMs ?? FIRST_PAUSE_MS / 2));
      barred.set(kind, { kind, until: clock.now() + pauseMs, pauseMs, failure });
    },
    /** Such a call was not refused. */
    clear: (kind: string) => barred.delete(kind),
    /** Roles or channels have changed: each may be tried once more. */
    lift(): void {
      lifts += 1;
      for (const bar of barred.values()) bar.until = 0;
    },
    /** Somebody has written in a direct chat: whoever did not take messages there may take them now. */
    liftIn(room: string): void {
      for (const bar of barred.values()) if (bar.kind.includes(room)) bar.until = 0;
    },
    /** Grows with every change of roles and channels. */
    lifts: () => lifts,
  };
}
