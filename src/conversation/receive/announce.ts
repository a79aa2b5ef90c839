/** Registers the chat commands in each platform's menu. */
import { createHash } from 'node:crypto';
import type { Channel } from '../../core/channel.js';
import { describe } from '../../core/errors.js';
import { backoff } from '../../core/retry.js';
import { COMMANDS } from '../commands/list.js';
import type { BaseServices } from '../services.js';

const FIRST_RETRY_MS = 5_000;
const LONGEST_RETRY_MS = 600_000;

/** Setting with the reason why a channel's command menu could not be set, for `doctor`; empty if it is set. */
export function refusalKey(channel: string): string {
  return `${channel}.commands.refused`;
}

/** Registers changed commands, with retries. Returns at once, with a function that stops it. */
export function announceCommands({ channels, store, clock, log }: BaseServices): () => Promise<void> {
  const over = new AbortController();
  const commands = COMMANDS.map(({ name, aliases, description, verbs }) => ({
    name,
    aliases,
    description,
    ...(verbs && { verbs }),
  }));
  const digest = createHash('sha256').update(JSON.stringify(commands)).digest('hex');

  async function announce(channel: Channel): Promise<void> {
    const key = `${channel.name}.commands`;
    if (!channel.announceCommands || (await store.setting(key)) === digest) return;
    await channel.announceCommands(commands);
    await store.setSetting(key, digest);
    await store.setSetting(refusalKey(channel.name), '');
  }

  async function insist(channel: Channel): Promise<void> {
    for (let tries = 1; !over.signal.aborted; tries++) {
      try {
        return await announce(channel);
      } catch (error) {
        const fields = { err: error, channel: channel.name };
        log[tries === 1 ? 'warn' : 'debug'](fields, 'the command menu could not be set; retrying');
        await store.setSetting(refusalKey(channel.name), describe(error)).catch(() => {
          log.debug({ channel: channel.name }, 'the reason could not be stored for doctor');
        });
        await clock.sleep(backoff(tries, FIRST_RETRY_MS, LONGEST_RETRY_MS), over.signal);
      }
    }
  }

  const announcing = [...channels.values()].map(insist);
  return async () => {
    over.abort();
    await Promise.all(announcing);
  };
}
