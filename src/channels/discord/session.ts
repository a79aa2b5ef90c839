/**
 * The session at Discord's gateway, and which of its events are taken in. It outlives the process, so that the next one
 * can resume it: its id and address are in the channel's state, and the last event's number is the cursor of each
 * batch, stored in one transaction with what the batch holds.
 */
import { createHash } from 'node:crypto';
import * as z from 'zod';
import type { ChannelState } from '../../core/channel.js';
import type { Clock } from '../../core/clock.js';
import { describe } from '../../core/errors.js';
import type { Log } from '../../core/log.js';
import type { Address } from '../../core/message.js';
import type { Identity } from './identity.js';

/** One event of the gateway. The numbers of a session's events grow. */
export interface Packet {
  kind: string;
  payload: unknown;
  sequence: number;
  /** It happened while there was no connection. */
  isReplay: boolean;
}

const NAME = 'session';
/** Until when everything is taken in, whatever became of the session. */
const HEARD = 'heard';
/** It need not be exact: what is fetched twice is stored once. */
const HEARD_EVERY_MS = 300_000;

const stored = z.object({
  /** A session belongs to a token, of which only a hash is kept. */
  tokenHash: z.string(),
  id: z.string(),
  resumeUrl: z.string(),
  sequence: z.int(),
  me: z.object({
    id: z.string(),
    name: z.string(),
    username: z.string().exactOptional(),
    applicationId: z.string(),
  }),
});

interface Current {
  id: string;
  resumeUrl: string;
  /** The first event: the one that told of the session. */
  first: number;
  /** The newest event that came; 0 before the first. */
  received: number;
  /** Events that came and are not taken in yet, in order. */
  pending: Set<Packet>;
  /** Whether what was missed before it is taken in: until then the next process has to begin a session of its own. */
  isComplete: boolean;
}

export type Session = ReturnType<typeof createSession>;

export function createSession(parts: {
  state: ChannelState;
  /** The cursor that was stored last for an account. */
  cursor(account: Address): Promise<string | null>;
  identity: Identity;
  token: string;
  clock: Clock;
  log: Log;
}) {
  const { state, identity, clock, log } = parts;
  const tokenHash = createHash('sha256').update(parts.token).digest('hex');
  let current: Current | null = null;
  let savedSequence = 0;
  let heardAt: number | null = null;
  let writing: Promise<void> = Promise.resolve();

  /** The last event before which all are taken in, once those of `taken` are. */
  function sequence({ first, pending, received }: Current, taken: readonly Packet[] = []): number {
    for (const packet of pending) if (!taken.includes(packet)) return Math.max(first, packet.sequence - 1);
    return Math.max(first, received);
  }

  /** One write after the other. If one fails, the next process begins a session of its own and fetches what it missed. */
  function write(act: () => Promise<void>): Promise<void> {
    writing = writing.then(act).catch((error) => {
      const reason = describe(error);
      log.warn({ channel: 'discord', reason }, 'the session at Discord could not be noted');
    });
    return writing;
  }

  function save(): Promise<void> {
    const me = identity.known();
    if (current === null || !current.isComplete || me === null) return writing;
    const { id, resumeUrl } = current;
    const reached = sequence(current);
    if (reached === savedSequence) return writing;
    savedSequence = reached;
    const value = JSON.stringify({ tokenHash, id, resumeUrl, sequence: reached, me });
    return write(() => state.set(new Map([[NAME, value]])));
  }

  function noteHeard(): void {
    if (current === null || !current.isComplete || current.pending.size > 0) return;
    if (heardAt !== null && clock.now() - heardAt < HEARD_EVERY_MS) return;
    heardAt = clock.now();
    void write(() => state.set(new Map([[HEARD, String(heardAt)]])));
  }

  return {
    /** Takes up the session of the process before, if it left one that is this bot's. */
    async load(): Promise<void> {
      const known = await state.get([NAME, HEARD]);
      const until = Number(known.get(HEARD));
      if (until > 0) heardAt = Math.min(until, clock.now());
      const text = known.get(NAME);
      const found = text === undefined ? undefined : stored.safeParse(JSON.parse(text)).data;
      if (found === undefined || found.tokenHash !== tokenHash) return;
      const { id, resumeUrl, me } = found;
      const [session, reached] = ((await parts.cursor(me.id)) ?? '').split('/');
      savedSequence = found.sequence;
      const received = session === id ? Math.max(Number(reached), found.sequence) : found.sequence;
      current = { id, resumeUrl, first: 0, received, pending: new Set(), isComplete: true };
      identity.restore(me);
    },
    /**
     * As the library wants to know it: it resumes behind the last event that is stored. It compares the number with that
     * of each event, and takes longer over one that is greater. The event that begins a session must not be, or the
     * library hands on the next event before it.
     */
    info: () =>
      current === null
        ? null
        : {
            sessionId: current.id,
            resumeURL: current.resumeUrl,
            sequence: sequence(current),
            shardId: 0,
            shardCount: 1,
          },
    begin(id: string, resumeUrl: string, first: number): void {
      current = { id, resumeUrl, first, received: 0, pending: new Set(), isComplete: false };
      savedSequence = 0;
    },
    /** Its own address does not answer: it is resumed at this one. */
    resumeAt(resumeUrl: string): void {
      if (current !== null) current.resumeUrl = resumeUrl;
    },
    /** It cannot be resumed. */
    forget(): void {
      current = null;
      void write(() => state.set(new Map([[NAME, null]])));
    },
    /** What was missed before this session is taken in. */
    complete(): void {
      if (current === null) return;
      current.isComplete = true;
      heardAt = null;
      noteHeard();
      void save();
    },
    /** Everything until then is taken in, give or take some minutes; null where that is not known. */
    heardAt: () => heardAt,
    /** The connection lives. Never rejects. */
    async beat(): Promise<void> {
      noteHeard();
      await save();
    },
    /** False for an event that came before: a resume may bring it again. */
    note(packet: Packet): boolean {
      if (current === null) return true;
      if (packet.sequence <= current.received) return false;
      current.received = packet.sequence;
      current.pending.add(packet);
      return true;
    },
    /** They are stored, or there is nothing in them to be stored. */
    done(packets: readonly Packet[]): void {
      for (const packet of packets) current?.pending.delete(packet);
    },
    /** How far all is taken in when these are stored. */
    cursorAfter: (packets: readonly Packet[]): string | undefined =>
      current === null ? undefined : `${current.id}/${sequence(current, packets)}`,
    /** Notes how far all is taken in, for times in which nothing is stored. Never rejects. */
    save,
  };
}
