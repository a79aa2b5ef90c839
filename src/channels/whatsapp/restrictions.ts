/**
 * What keeps the gateway from WhatsApp, or part of it, in words for an operator. Kept in the channel's state until it
 * is over, for `doctor`, which runs in a process of its own.
 */

import * as z from 'zod';
import type { ChannelState } from '../../core/channel.js';
import type { Clock } from '../../core/clock.js';
import { describe } from '../../core/errors.js';
import type { Log } from '../../core/log.js';

/** What keeps the gateway from WhatsApp, and what WhatsApp does not let it do. */
const NAMES = ['trouble', 'restriction'] as const;

export interface Trouble {
  met(reason: string): void;
  over(): void;
  /** Resolves when it is on the disk. */
  settled(): Promise<void>;
}

export function createTrouble(name: (typeof NAMES)[number], state: ChannelState, log: Log): Trouble {
  let told: string | null | undefined;
  let writing = Promise.resolve();

  function tell(reason: string | null): void {
    if (told === reason) return;
    told = reason;
    writing = writing
      .then(() => state.set(new Map([[name, reason]])))
      // The log has it as well.
      .catch((error) =>
        log.debug({ channel: 'whatsapp', reason: describe(error) }, 'doctor will not know of it'),
      );
  }

  return { met: tell, over: () => tell(null), settled: () => writing };
}

export async function troublesIn(state: ChannelState): Promise<string[]> {
  const kept = await state.get([...NAMES]);
  return NAMES.flatMap((name) => kept.get(name) ?? []);
}

const MINUTE = 60_000;
const PAUSES = [10 * MINUTE, 60 * MINUTE, 4 * 60 * MINUTE, 12 * 60 * MINUTE];

const NAME = 'holds';
/** What waits for a chat is tried within this time after its rest; where nothing was, nothing waits. */
const TRIED_WITHIN_MS = 60 * MINUTE;
/** So long a chat's refusals are remembered when it may be tried again. */
const FORGOTTEN_AFTER_MS = 7 * 24 * 60 * MINUTE;

const keptSchema = z.object({
  restrictedUntil: z.number(),
  held: z.array(z.tuple([z.string(), z.object({ until: z.number(), refusals: z.number() })])),
});

export interface Holds {
  /** What was so before the gateway was started. */
  load(): Promise<void>;
  /** Resolves when it is on the disk. */
  settled(): Promise<void>;
  /** For how long nothing may go to this chat, ms; 0 if it may go. */
  leftFor(chat: string): number;
  /** WhatsApp refused a message to this chat. For how long it rests now, ms. */
  refused(chat: string): number;
  /** What it lacked is there: it may be tried again. */
  opened(chat: string): void;
  /** WhatsApp took one. */
  taken(chat: string): void;
  /** WhatsApp says that the account may begin no chats until then (ms); null: it may again. */
  restricted(until: number | null): void;
  /** For an operator; null where all is well. */
  reason(): string | null;
}

interface Parts {
  state: ChannelState;
  clock: Clock;
  log: Log;
  trouble: Trouble;
}

export function createHolds({ state, clock, log, trouble }: Parts): Holds {
  const held = new Map<string, { until: number; refusals: number }>();
  let restrictedUntil = 0;
  let writing = Promise.resolve();

  function save(): void {
    const remembered = [...held].filter(([, { until }]) => until + FORGOTTEN_AFTER_MS > clock.now());
    const kept: z.output<typeof keptSchema> = { restrictedUntil, held: remembered };
    const isEmpty = remembered.length === 0 && restrictedUntil <= clock.now();
    writing = writing
      .then(() => state.set(new Map([[NAME, isEmpty ? null : JSON.stringify(kept)]])))
      .catch((error) =>
        log.warn(
          { channel: 'whatsapp', reason: describe(error) },
          'which chats have to rest (463) could not be stored: a restart would forget it',
        ),
      );
  }

  function reason(): string | null {
    const isRestricted = restrictedUntil > clock.now();
    const waiting = [...held.values()].filter(({ until }) => until + TRIED_WITHIN_MS > clock.now()).length;
    if (waiting === 0 && !isRestricted) return null;
    const chats = waiting === 1 ? 'one chat' : `${waiting} chats`;
    const until = isRestricted ? ` until ${new Date(restrictedUntil).toISOString()}` : '';
    return `WhatsApp does not let this account write to some people (463)${until}; what is for them waits (${chats}). Others are answered as before. Have these people write first, and write to no strangers meanwhile: that makes it last longer, and may end in a ban`;
  }

  function note(): void {
    const now = reason();
    if (now === null) trouble.over();
    else trouble.met(now);
  }

  function changed(): void {
    save();
    note();
  }

  return {
    async load() {
      const written = (await state.get([NAME])).get(NAME);
      const read = keptSchema.safeParse(written === undefined ? null : JSON.parse(written));
      if (!read.success) return;
      restrictedUntil = read.data.restrictedUntil;
      for (const [chat, hold] of read.data.held) held.set(chat, hold);
      note();
    },

    settled: () => writing,

    leftFor: (chat) => Math.max(0, (held.get(chat)?.until ?? 0) - clock.now()),

    refused(chat) {
      const refusals = (held.get(chat)?.refusals ?? 0) + 1;
      const pause = PAUSES[Math.min(refusals, PAUSES.length) - 1] ?? 0;
      const until = Math.max(clock.now() + pause, restrictedUntil);
      held.set(chat, { until, refusals });
      changed();
      const fields = { channel: 'whatsapp', chat, refusals, until: new Date(until).toISOString() };
      log.warn(fields, 'WhatsApp does not let this account write into this chat (463): what is for it waits');
      return until - clock.now();
    },

    opened(chat) {
      const hold = held.get(chat);
      if (hold === undefined) return;
      hold.until = clock.now();
      save();
    },

    taken(chat) {
      if (held.delete(chat)) changed();
      else note();
    },

    restricted(until) {
      restrictedUntil = until ?? 0;
      if (until === null) for (const hold of held.values()) hold.until = Math.min(hold.until, clock.now());
      changed();
      if (until === null) {
        log.info({ channel: 'whatsapp' }, 'WhatsApp lets this account begin chats again');
      } else {
        const fields = { channel: 'whatsapp', until: new Date(until).toISOString() };
        log.warn(fields, 'WhatsApp lets this account begin no chats for now; those that exist go on');
      }
    },

    reason,
  };
}
