/**
 * Browsers that have signed in with the token. A browser holds a random session in a cookie; the store keeps its hash, of
 * which the token is a part, so that a new token ends them all. Also slows down guessing.
 */
import { createHmac } from 'node:crypto';
import type { ChannelState } from '../core/channel.js';
import type { Clock } from '../core/clock.js';
import { createMutex } from '../core/concurrency.js';
import type { WatchStore } from '../core/store.js';

export const SESSION_MS = 30 * 86_400_000;
/** The oldest makes room. */
const MOST_SESSIONS = 200;
const NAME = 'sessions';
/** 32 random bytes in base64url. */
const FORM = /^[\w-]{43}$/;

/** After another gateway has written. */
const READ_EVERY_MS = 1_000;

/** Where they are kept; `watch` tells of other gateways, at which sessions begin and end, too. */
export type SessionPlace = ChannelState & { watch?: WatchStore['watch'] };

/** Without a place they last as long as the process. */
export async function openSessions(
  place: SessionPlace | undefined,
  clock: Clock,
  newSession: () => string,
): Promise<Sessions> {
  const sessions = new Sessions(clock, newSession);
  await sessions.keepIn(place);
  return sessions;
}

export class Sessions {
  private place: SessionPlace | undefined;
  /** When each is over, by hash. */
  private readonly open = new Map<string, number>();
  /** Ended here: none comes back. */
  private readonly ended = new Set<string>();
  private readonly users = new Map<string, Set<() => void>>();
  private readonly inTurn = createMutex();
  private readAt = Number.NEGATIVE_INFINITY;
  private cancelRead: (() => void) | null = null;
  private unwatch = () => {};

  constructor(
    private readonly clock: Clock,
    private readonly newSession: () => string,
  ) {}

  /** From now on: the store was opened, perhaps anew. */
  async keepIn(place: SessionPlace | undefined): Promise<void> {
    this.unwatch();
    this.cancelRead?.();
    this.cancelRead = null;
    const isFirst = this.place === undefined;
    this.place = place;
    this.unwatch = place?.watch?.(() => this.readSoon()) ?? (() => {});
    if (isFirst) await this.inTurn(() => this.read());
  }

  /** Whether a session may be known now that was not before: it may have begun at another gateway a moment ago. */
  async refresh(): Promise<boolean> {
    if (this.place?.watch === undefined || this.clock.now() < this.readAt + READ_EVERY_MS) return false;
    await this.inTurn(() => this.read()).catch(() => {});
    return true;
  }

  isOpen(session: string, token: string): boolean {
    return FORM.test(session) && this.endOf(hashOf(session, token)) !== null;
  }

  async begin(token: string): Promise<string> {
    const session = this.newSession();
    await this.change((all) => all.set(hashOf(session, token), this.clock.now() + SESSION_MS));
    return session;
  }

  /** It is over at once; on disk, too, when this resolves. */
  async end(session: string, token: string): Promise<void> {
    const hash = hashOf(session, token);
    this.open.delete(hash);
    this.ended.add(hash);
    this.cut(hash);
    await this.change((all) => all.delete(hash));
  }

  /** Calls when the session is over. Returns the function that ends this. */
  whileOpen(session: string, token: string, cut: () => void): () => void {
    const hash = hashOf(session, token);
    const set = this.users.get(hash) ?? new Set();
    this.users.set(hash, set.add(cut));
    const cancel = this.clock.after((this.endOf(hash) ?? 0) - this.clock.now(), cut);
    return () => {
      cancel();
      set.delete(cut);
      if (set.size === 0) this.users.delete(hash);
    };
  }

  private endOf(hash: string): number | null {
    const end = this.open.get(hash);
    return end === undefined || end <= this.clock.now() ? null : end;
  }

  private cut(hash: string): void {
    for (const cut of this.users.get(hash) ?? []) cut();
  }

  /** Sessions that began or ended at another gateway begin and end here, too. */
  private async read(): Promise<void> {
    const { place, open, ended } = this;
    if (place === undefined) return;
    this.readAt = this.clock.now();
    const kept = (await place.get([NAME])).get(NAME) ?? '[]';
    const found = new Map((JSON.parse(kept) as [string, number][]).filter(([hash]) => !ended.has(hash)));
    const gone = [...open.keys()].filter((hash) => !found.has(hash));
    for (const hash of gone) open.delete(hash);
    for (const [hash, end] of found) open.set(hash, end);
    for (const hash of gone) this.cut(hash);
  }

  /** If the store is away, the next request asks again. */
  private readSoon(): void {
    this.cancelRead ??= this.clock.after(READ_EVERY_MS, () => {
      this.cancelRead = null;
      void this.inTurn(() => this.read()).catch(() => {});
    });
  }

  /** Writes all of them, with those of other gateways. */
  private change(act: (all: Map<string, number>) => void): Promise<void> {
    return this.inTurn(async () => {
      await this.read();
      const next = new Map(this.open);
      this.apply(act, next);
      await this.place?.set(new Map([[NAME, JSON.stringify([...next])]]));
      this.apply(act, this.open);
    });
  }

  private apply(act: (all: Map<string, number>) => void, all: Map<string, number>): void {
    act(all);
    for (const [hash, end] of all) {
      if (end <= this.clock.now() || all.size > MOST_SESSIONS) all.delete(hash);
    }
  }
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
