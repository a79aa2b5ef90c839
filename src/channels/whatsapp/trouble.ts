/**
 * What keeps the gateway from WhatsApp, or part of it, in words for an operator. Kept in the channel's state until it
 * is over, for `doctor`, which runs in a process of its own.
 */
import type { ChannelState } from '../../core/channel-host.js';
import { describe } from '../../core/errors.js';
import type { Log } from '../../core/log.js';

const TROUBLE = 'trouble';

export interface Trouble {
  met(reason: string): void;
  over(): void;
  /** Resolves when it is on the disk. */
  settled(): Promise<void>;
}

export function createTrouble(state: ChannelState, log: Log): Trouble {
  let told: string | null | undefined;
  let writing = Promise.resolve();

  function tell(reason: string | null): void {
    if (told === reason) return;
    told = reason;
    writing = writing
      .then(() => state.set(new Map([[TROUBLE, reason]])))
      // The log has it as well.
      .catch((error) =>
        log.debug({ channel: 'whatsapp', reason: describe(error) }, 'doctor will not know of it'),
      );
  }

  return { met: tell, over: () => tell(null), settled: () => writing };
}

/** null where there is none. */
export async function troubleIn(state: ChannelState): Promise<string | null> {
  return (await state.get([TROUBLE])).get(TROUBLE) ?? null;
}
