/**
 * Registers the commands in each platform's own command menu: only when the set has changed, and with retries until it
 * succeeds.
 */
import { createHash } from 'node:crypto';
import type { Channel } from '../core/channel.js';
import type { Clock } from '../core/clock.js';
import { describe } from '../core/errors.js';
import type { Log } from '../core/log.js';
import type { SettingStore } from '../core/store.js';
import { COMMANDS } from './commands/list.js';

const FIRST_RETRY_MS = 5_000;
const LONGEST_RETRY_MS = 600_000;

/** The setting in which `doctor` finds why a channel's command menu could not be set; empty when it is set. */
export function refusalKey(channel: string): string {
  return `${channel}.commands.refused`;
}

/** Returns at once. Call the function it returns to stop retrying. */
export function announceCommands(parts: {
  channels: ReadonlyMap<string, Channel>;
  store: SettingStore;
  clock: Clock;
  log: Log;
}): () => Promise<void> {
  const over = new AbortController();
  const commands = COMMANDS.map(({ name, aliases, description, verbs }) => ({
    name,
    aliases,
    description,
    ...(verbs === undefined ? {} : { verbs }),
  }));
  const digest = createHash('sha256').update(JSON.stringify(commands)).digest('hex');
  const announcing = [...parts.channels.values()].map(async (channel) => {
    if (!channel.announceCommands) return;
    const key = `${channel.name}.commands`;
    const refusal = refusalKey(channel.name);
    let isTold = false;
    for (let wait = FIRST_RETRY_MS; !over.signal.aborted; wait = Math.min(wait * 2, LONGEST_RETRY_MS)) {
      try {
        if ((await parts.store.setting(key)) === digest) return;
        await channel.announceCommands(commands);
        await parts.store.setSetting(key, digest);
        await parts.store.setSetting(refusal, '');
        return;
      } catch (error) {
        const fields = { err: error, channel: channel.name };
        parts.log[isTold ? 'debug' : 'warn'](fields, 'the command menu could not be set; it will be retried');
        isTold = true;
        await parts.store.setSetting(refusal, describe(error)).catch(() => {
          parts.log.debug({ channel: channel.name }, 'it was not stored for doctor, either');
        });
        await parts.clock.sleep(wait, over.signal);
      }
    }
  });
  return async () => {
    over.abort();
    await Promise.all(announcing);
  };
}
