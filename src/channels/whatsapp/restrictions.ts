/**
 * Chats that WhatsApp does not let this account write into just now (463): the account may begin no chats for some time, or
 * the token is missing that a person's phone gives to those it trusts. Each further try counts against the account, so such
 * a chat pauses, each time for longer, while other chats go on; it is tried at once when what was missing has come. The
 * pauses are kept in the channel's state, since a restart is no reason to try.
 */
import * as z from 'zod';
import type { ChannelState } from '../../core/channel.js';
import type { Clock } from '../../core/clock.js';
import { describe } from '../../core/errors.js';
import type { Log } from '../../core/log.js';

const ALERTS = ['trouble', 'restriction'] as const;

/** A problem in words for an operator, kept in the channel's state until it is over, for `doctor`: another process. */
export function createAlert(name: (typeof ALERTS)[number], state: ChannelState, log: Log) {
  let current: string | null | undefined;
  let writing = Promise.resolve();

  return {
    /** null: it is over. */
    set(reason: string | null): void {
      if (current === reason) return;
      current = reason;
      writing = writing
        .then(() => state.set(new Map([[name, reason]])))
        // The log has it as well.
        .catch((error) =>
          log.debug({ channel: 'whatsapp', reason: describe(error) }, 'storing an alert for doctor failed'),
        );
    },
    /** Resolves when it is on the disk. */
    settled: () => writing,
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
/** A waiting message is tried within this time after the pause; where none was tried, none waits. */
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
  let restrictedUntil = 0;
  let writing = Promise.resolve();

  function save(): void {
    const held = [...paused].filter(([, { until }]) => until + FORGOTTEN_AFTER_MS > clock.now());
    const isEmpty = held.length === 0 && restrictedUntil <= clock.now();
    const kept = isEmpty ? null : JSON.stringify({ restrictedUntil, held });
    const failed = (error: unknown) => {
      const fields = { channel: 'whatsapp', reason: describe(error) };
      log.warn(fields, 'storing the paused chats (463) failed; a restart would forget them');
    };
    writing = writing.then(() => state.set(new Map([[NAME, kept]]))).catch(failed);
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

    /** Resolves when everything is on the disk. */
    settled: () => writing,
    /** How long no message may go to this chat, ms; 0 if it may. */
    leftFor: (chat: string): number => Math.max(0, (paused.get(chat)?.until ?? 0) - clock.now()),

    /** WhatsApp refused a message to this chat. How long the chat pauses now, ms. */
    refused(chat: string): number {
      const refusals = (paused.get(chat)?.refusals ?? 0) + 1;
      const until = Math.max(clock.now() + (PAUSES[refusals - 1] ?? LONGEST_PAUSE), restrictedUntil);
      paused.set(chat, { until, refusals });
      changed();
      const fields = { channel: 'whatsapp', chat, refusals, until: new Date(until).toISOString() };
      log.warn(fields, 'WhatsApp refused a message to a chat (463); the chat pauses');
      return until - clock.now();
    },

    /** The missing token came: the chat may be tried again. */
    opened(chat: string): void {
      const pause = paused.get(chat);
      if (pause === undefined) return;
      pause.until = clock.now();
      save();
    },

    /** WhatsApp took a message. */
    taken(chat: string): void {
      if (paused.delete(chat)) changed();
      else alert.set(reason());
    },

    /** The account may begin no chats until then (ms); null: it may again. */
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

    /** For an operator; null where all is well. */
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
