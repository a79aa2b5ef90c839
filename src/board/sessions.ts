/**
 * Browsers that have signed in with the token. A browser holds a random session in a cookie; the store keeps its hash, of
 * which the token is a part, so that a new token ends them all. Also slows down guessing.
 */
import { createHmac } from 'node:crypto';
import type { ChannelState } from '../core/channel.js';
import type { Clock } from '../core/clock.js';

export const SESSION_MS = 30 * 86_400_000;
/** The oldest makes room. */
const MOST_SESSIONS = 200;
const NAME = 'sessions';
/** 32 random bytes in base64url. */
const FORM = /^[\w-]{43}$/;

export type Sessions = Awaited<ReturnType<typeof openSessions>>;

/** Without a place they last as long as the process. */
export async function openSessions(first: ChannelState | undefined, clock: Clock, newSession: () => string) {
  const kept = await first?.get([NAME]);
  let place = first;
  /** When each is over, by hash. */
  const open = new Map<string, number>(JSON.parse(kept?.get(NAME) ?? '[]') as [string, number][]);
  const users = new Map<string, Set<() => void>>();
  let last: Promise<void> = Promise.resolve();

  function endOf(hash: string): number | null {
    const end = open.get(hash);
    return end === undefined || end <= clock.now() ? null : end;
  }

  function apply(act: (sessions: Map<string, number>) => void, sessions: Map<string, number>): void {
    act(sessions);
    for (const [hash, end] of sessions) {
      if (end <= clock.now() || sessions.size > MOST_SESSIONS) sessions.delete(hash);
    }
  }

  /** One after the other: each writes all of them. What ends meanwhile does not come back. */
  function change(act: (sessions: Map<string, number>) => void): Promise<void> {
    const done = last.then(async () => {
      const next = new Map(open);
      apply(act, next);
      await place?.set(new Map([[NAME, JSON.stringify([...next])]]));
      apply(act, open);
    });
    // Its own caller hears of a failure; the next change is tried all the same.
    last = done.catch(() => {});
    return done;
  }

  return {
    /** The store was opened anew. */
    keepIn(next: ChannelState | undefined): void {
      place = next;
    },
    isOpen(session: string, token: string): boolean {
      return FORM.test(session) && endOf(hashOf(session, token)) !== null;
    },
    async begin(token: string): Promise<string> {
      const session = newSession();
      await change((sessions) => sessions.set(hashOf(session, token), clock.now() + SESSION_MS));
      return session;
    },
    /** It is over at once; on disk, too, when this resolves. */
    async end(session: string, token: string): Promise<void> {
      const hash = hashOf(session, token);
      open.delete(hash);
      for (const cut of users.get(hash) ?? []) cut();
      await change((sessions) => sessions.delete(hash));
    },
    /** Calls when the session is over. Returns the function that ends this. */
    whileOpen(session: string, token: string, cut: () => void): () => void {
      const hash = hashOf(session, token);
      const set = users.get(hash) ?? new Set();
      users.set(hash, set.add(cut));
      const cancel = clock.after((endOf(hash) ?? 0) - clock.now(), cut);
      return () => {
        cancel();
        set.delete(cut);
        if (set.size === 0) users.delete(hash);
      };
    },
  };
}

function hashOf(session: string, token: string): string {
  return createHmac('sha256', token).update(session).digest('base64url');
}

const MINUTE_MS = 60_000;
const FREE_TRIES = 5;
const SHORTEST_PAUSE_MS = 1_000;
/** Guessing must not push older entries out of the audit log. */
const TELL_EVERY_MS = 10 * MINUTE_MS;

export type Patience = ReturnType<typeof createPatience>;

/**
 * After five wrong tokens within a minute there is one try after each pause, and each pause is twice as long, up to a
 * minute; until a minute went by without a wrong one. It knows no addresses: behind a proxy all may have the same.
 */
export function createPatience(clock: Clock) {
  let wrong: number[] = [];
  let pauseMs = 0;
  let pauseEnds = 0;
  let untold = 0;
  let toldAt = Number.NEGATIVE_INFINITY;
  return {
    /** Until the next try; 0: now. */
    seconds(): number {
      return Math.max(0, Math.ceil((pauseEnds - clock.now()) / 1000));
    },
    /** Somebody tried a wrong one. Returns the pause in seconds. */
    lose(): number {
      const now = clock.now();
      untold += 1;
      const isCalm = now >= pauseEnds + MINUTE_MS;
      if (isCalm) pauseMs = 0;
      wrong = [...wrong.filter((at) => at > now - MINUTE_MS), now];
      if (pauseMs > 0) pauseMs = Math.min(2 * pauseMs, MINUTE_MS);
      else if (wrong.length >= FREE_TRIES) pauseMs = SHORTEST_PAUSE_MS;
      if (pauseMs > 0) pauseEnds = now + pauseMs;
      return pauseMs / 1000;
    },
    /** How many wrong ones nobody was told of, to be told now; 0: none, or it is too soon. */
    toTell(): number {
      if (untold === 0 || clock.now() < toldAt + TELL_EVERY_MS) return 0;
      toldAt = clock.now();
      const all = untold;
      untold = 0;
      return all;
    },
  };
}
