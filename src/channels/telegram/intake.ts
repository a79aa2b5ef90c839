/** What one of our bots receives, handed in as received by the account that all our bots are together. */
import type { Address, InboundBatch, InboundEvent } from '../../core/message.js';
import type { HandIn } from '../kit/hand-in.js';
import type { Bot, Bots } from './bots.js';
import { numberCopies } from './copies.js';
import { inbound } from './inbound.js';
import type { OurBot } from './mentions.js';
import type { Presence } from './presence.js';

export interface Intake {
  bot: Bot;
  /** Resolves when it is known who receives, and which names a message may mention. */
  identity(signal: AbortSignal): Promise<OurBot>;
  /** Updates in our words; null before the identity is known. */
  read(updates: unknown[]): InboundEvent[] | null;
  /** Resolves when the batch is stored; rejects when it could not be. */
  accept(batch: Pick<InboundBatch, 'events' | 'cursor' | 'piledUp'>): Promise<void>;
}

export function createIntake(parts: { bot: Bot; bots: Bots; presence: Presence; handIn: HandIn }): Intake {
  const { bot, bots, presence } = parts;
  const numbered = numberCopies();
  let known: { receiver: OurBot; account: string } | null = null;

  return {
    bot,
    async identity(signal) {
      const [receiver, main] = await Promise.all([bot.identity(signal), bots.main.identity(signal)]);
      await bots.loggedIn(signal);
      known = { receiver, account: String(main.id) };
      return receiver;
    },

    read: (updates) => (known === null ? null : inbound(updates, known.receiver, bots.ours()).map(numbered)),

    async accept({ cursor, ...batch }) {
      if (known === null) throw new Error('it is not known yet which bot received it');
      const { receiver, account } = known;
      for (const chat of chatsOf(batch.events)) presence.heard(bot, chat);
      const cursorFor = receiver.personaId === undefined ? {} : { cursorFor: String(receiver.id) };
      await parts.handIn.store({
        account,
        ...batch,
        ...(cursor === undefined ? {} : { cursor, ...cursorFor }),
      });
    },
  };
}

function chatsOf(events: InboundEvent[]): Set<Address> {
  return new Set(events.flatMap((event) => (event.kind === 'message' ? [event.chat.address] : [])));
}
