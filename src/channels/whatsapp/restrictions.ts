/**
 * Chats into which WhatsApp forbids this account to write (463). Each further try counts against the account, so
 * such a chat backs off, also across restarts; it is retried at once when the obstacle is gone.
 */
import * as z from 'zod';
import type { ChannelState } from '../../core/channel.js';
import type { Clock } from '../../core/clock.js';
import { createMutex } from '../../core/concurrency.js';
import { describe } from '../../core/errors.js';
import type { Log } from '../../core/log.js';

const ALERTS = ['trouble', 'restriction'] as const;

/** A problem for an operator, kept in the channel's state until it is over: `doctor` is another process. */
export function createAlert(name: (typeof ALERTS)[number], state: ChannelState, log: Log) {
  let current: string | null | undefined;
  const inTurn = createMutex();

  return {
    /** null: it is over. */
    set(reason: string | null): void {
      if (current === reason) return;
      current = reason;
      inTurn(() => state.set(new Map([[name, reason]]))).catch((error) =>
        log.debug({ channel: 'whatsapp', reason: describe(error) }, 'storing an alert for doctor failed'),
      );
    },
    /** Resolves when it is on disk. */
    settled: () => inTurn(() => {}),
  };
}

export async function alertsIn(state: ChannelState): Promise<string[]> {
  const kept = await state.get([...ALERTS]);
  return ALERTS.flatMap((name) => kept.get(name) ?? []);
}

const MINUTE = 60_000;
const PAUSES = [10 * MINUTE, 60 * MINUTE, 4 * 60 * MINUTE];
const LONGEST_PAUSE = 12 * 60 * MINUTE;

const NAME = 'holds';
/** A waiting message is retried within this time after the pause; if none was, none is waiting. */
const TRIED_WITHIN_MS = 60 * MINUTE;
/** How long a chat's refusals are remembered after its pause. */
const FORGOTTEN_AFTER_MS = 7 * 24 * 60 * MINUTE;

const keptSchema = z.object({
  restrictedUntil: z.number(),
  held: z.array(z.tuple([z.string(), z.object({ until: z.number(), refusals: z.number() })])),
});

export type Restrictions = ReturnType<typeof createRestrictions>;

export function createRestrictions(state: ChannelState, clock: Clock, log: Log) {
  const alert = createAlert('restriction', state, log);
  const paused = new Map<string, { until: number; refusals: number }>();
  const inTurn = createMutex();
  let restrictedUntil = 0;

  function save(): void {
    const held = [...paused].filter(([, { until }]) => until + FORGOTTEN_AFTER_MS > clock.now());
    const isEmpty = held.length === 0 && restrictedUntil <= clock.now();
    const kept = isEmpty ? null : JSON.stringify({ restrictedUntil, held });
    inTurn(() => state.set(new Map([[NAME, kept]]))).catch((error) => {
      const fields = { channel: 'whatsapp', reason: describe(error) };
      log.warn(fields, 'storing the paused chats (463) failed; a restart would forget them');
    });
  }

  const reason = () => reasonOf([...paused.values()], restrictedUntil, clock.now());

  function changed(): void {
    save();
    alert.set(reason());
  }

  return {
    /** Reads the pauses of the previous run. */
    async load(): Promise<void> {
      const kept = keptSchema.safeParse(JSON.parse((await state.get([NAME])).get(NAME) ?? 'null')).data;
      restrictedUntil = kept?.restrictedUntil ?? 0;
      for (const [chat, pause] of kept?.held ?? []) paused.set(chat, pause);
      if (kept) alert.set(reason());
    },

    /** Resolves when everything is on disk. */
    settled: () => inTurn(() => {}),
    /** Remaining pause of this chat, ms; 0 if there is none. */
    leftFor: (chat: string): number => Math.max(0, (paused.get(chat)?.until ?? 0) - clock.now()),

    /** WhatsApp refused a message to this chat. Returns the new pause, ms. */
    refused(chat: string): number {
      const refusals = (paused.get(chat)?.refusals ?? 0) + 1;
      const until = Math.max(clock.now() + (PAUSES[refusals - 1] ?? LONGEST_PAUSE), restrictedUntil);
      paused.set(chat, { until, refusals });
      changed();
      const fields = { channel: 'whatsapp', chat, refusals, until: new Date(until).toISOString() };
      log.warn(fields, 'WhatsApp refused a message to a chat (463); the chat pauses');
      return until - clock.now();
    },

    /** The missing token came: the chat may be retried. */
    opened(chat: string): void {
      const pause = paused.get(chat);
      if (pause === undefined) return;
      pause.until = clock.now();
      save();
    },

    taken(chat: string): void {
      if (paused.delete(chat)) changed();
      else alert.set(reason());
    },

    /** Until then (ms) the account may not begin chats; null: no restriction. */
    restricted(until: number | null): void {
      restrictedUntil = until ?? 0;
      if (until === null)
        for (const pause of paused.values()) pause.until = Math.min(pause.until, clock.now());
      changed();
      if (until === null) log.info({ channel: 'whatsapp' }, 'WhatsApp lifted the restriction on new chats');
      else {
        const fields = { channel: 'whatsapp', until: new Date(until).toISOString() };
        log.warn(fields, 'WhatsApp restricted this account: it may begin no chats; existing ones go on');
      }
    },

    /** For an operator; null if all is well. */
    reason,
  };
}

function reasonOf(paused: { until: number }[], restrictedUntil: number, now: number): string | null {
  const isRestricted = restrictedUntil > now;
  const waiting = paused.filter(({ until }) => until + TRIED_WITHIN_MS > now).length;
  if (waiting === 0 && !isRestricted) return null;
  const chats = waiting === 1 ? 'one chat' : `${waiting} chats`;
  const until = isRestricted ? ` until ${new Date(restrictedUntil).toISOString()}` : '';
  return `WhatsApp does not let this account write to some people (463)${until}; what is for them waits (${chats}). Others are answered as before. Have these people write first, and write to no strangers meanwhile: that makes it last longer, and may end in a ban`;
}
