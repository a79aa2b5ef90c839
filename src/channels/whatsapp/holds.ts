/**
 * Chats that WhatsApp does not let this account write into just now (463): the account may begin no chats for some time, or
 * the token is missing that the person's phone gives to whom they trust. Each further try counts against the account, so
 * such a chat rests, each time for longer; other chats go on. It is tried at once when what it lacked is there.
 */
import type { Clock } from '../../core/clock.js';
import type { Log } from '../../core/log.js';
import type { Trouble } from './trouble.js';

const MINUTE = 60_000;
const PAUSES = [10 * MINUTE, 60 * MINUTE, 4 * 60 * MINUTE, 12 * 60 * MINUTE];

export interface Holds {
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

export function createHolds({ clock, log, trouble }: { clock: Clock; log: Log; trouble: Trouble }): Holds {
  const held = new Map<string, { until: number; refusals: number }>();
  let restrictedUntil = 0;

  function reason(): string | null {
    const isRestricted = restrictedUntil > clock.now();
    if (held.size === 0 && !isRestricted) return null;
    const chats = held.size === 1 ? 'one chat' : `${held.size} chats`;
    const until = isRestricted ? ` until ${new Date(restrictedUntil).toISOString()}` : '';
    return `WhatsApp does not let this account write to some people (463)${until}; what is for them waits (${chats}). Others are answered as before. Have these people write first, and write to no strangers meanwhile: that makes it last longer, and may end in a ban`;
  }

  function note(): void {
    const now = reason();
    if (now === null) trouble.over();
    else trouble.met(now);
  }

  return {
    leftFor: (chat) => Math.max(0, (held.get(chat)?.until ?? 0) - clock.now()),

    refused(chat) {
      const refusals = (held.get(chat)?.refusals ?? 0) + 1;
      const pause = PAUSES[Math.min(refusals, PAUSES.length) - 1] ?? 0;
      const until = Math.max(clock.now() + pause, restrictedUntil);
      held.set(chat, { until, refusals });
      note();
      const fields = { channel: 'whatsapp', chat, refusals, until: new Date(until).toISOString() };
      log.warn(fields, 'WhatsApp does not let this account write into this chat (463): what is for it waits');
      return until - clock.now();
    },

    opened(chat) {
      const hold = held.get(chat);
      if (hold !== undefined) hold.until = 0;
    },

    taken(chat) {
      held.delete(chat);
      note();
    },

    restricted(until) {
      restrictedUntil = until ?? 0;
      note();
      if (until === null) {
        for (const hold of held.values()) hold.until = 0;
        log.info({ channel: 'whatsapp' }, 'WhatsApp lets this account begin chats again');
      } else {
        const fields = { channel: 'whatsapp', until: new Date(until).toISOString() };
        log.warn(fields, 'WhatsApp lets this account begin no chats for now; those that exist go on');
      }
    },

    reason,
  };
}
