/** What one of our bots hears, handed in as what the account heard: all our bots are faces of one. */
import type { Address, InboundBatch, InboundEvent } from '../../core/message.js';
import type { Bot } from './bot.js';
import type { Bots } from './bots.js';
import { inbound } from './inbound.js';
import type { OurBot } from './ours.js';
import type { Presence } from './presence.js';
import { createOrdinals } from './twin.js';

export interface Ear {
  /** Resolves when it is known who hears, and who may be named. */
  identity(signal: AbortSignal): Promise<OurBot>;
  /** null before that. */
  read(updates: unknown[]): InboundEvent[] | null;
  /** Resolves when it is stored. */
  accept(batch: Pick<InboundBatch, 'events' | 'cursor' | 'piledUp'>): Promise<void>;
}

export function createEar(parts: {
  bot: Bot;
  bots: Bots;
  presence: Presence;
  store(batch: Omit<InboundBatch, 'channel'>): Promise<void>;
}): Ear {
  const { bot, bots, presence } = parts;
  const numbered = createOrdinals();
  let known: { by: OurBot; account: string } | null = null;

  return {
    async identity(signal) {
      const [by, main] = await Promise.all([bot.identity(signal), bots.main.identity(signal)]);
      await bots.known(signal);
      known = { by, account: String(main.id) };
      return by;
    },

    read: (updates) => (known === null ? null : inbound(updates, known.by, bots.ours()).map(numbered)),

    async accept({ cursor, ...batch }) {
      if (known === null) throw new Error('it is not known yet who heard it');
      const { by, account } = known;
      for (const chat of spokenIn(batch.events)) presence.heard(bot, chat);
      const own = by.personaId === undefined ? {} : { cursorFor: String(by.id) };
      await parts.store({ account, ...batch, ...(cursor === undefined ? {} : { cursor, ...own }) });
    },
  };
}

function spokenIn(events: InboundEvent[]): Set<Address> {
  return new Set(events.flatMap((event) => (event.kind === 'message' ? [event.chat.address] : [])));
}
