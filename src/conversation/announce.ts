/** Makes the commands known to each platform's own menu: only when the set changed, and until it has worked. */
import { createHash } from 'node:crypto';
import type { Channel } from '../core/channel.js';
import type { Clock } from '../core/clock.js';
import type { Log } from '../core/log.js';
import type { SettingStore } from '../core/store.js';
import { COMMANDS } from './commands/list.js';

const FIRST_RETRY_MS = 5_000;
const LONGEST_RETRY_MS = 600_000;

/** Returns at once; what it returns ends the trying. */
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
    for (let wait = FIRST_RETRY_MS; !over.signal.aborted; wait = Math.min(wait * 2, LONGEST_RETRY_MS)) {
      try {
        if ((await parts.store.setting(key)) === digest) return;
        await channel.announceCommands(commands);
        await parts.store.setSetting(key, digest);
        return;
      } catch (error) {
        parts.log.debug({ err: error, channel: channel.name }, 'the command menu could not be set yet');
        await parts.clock.sleep(wait, over.signal);
      }
    }
  });
  return async () => {
    over.abort();
    await Promise.all(announcing);
  };
}
