/**
 * What keeps the gateway from WhatsApp, or part of it, in words for an operator. Kept in the channel's state until it
 * is over, for `doctor`, which runs in a process of its own.
 */
import type { ChannelState } from '../../core/channel-host.js';
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
