/** One of our bots: its calls, and who it is. */
import type { Clock } from '../../core/clock.js';
import type { PersonaId } from '../../core/ids.js';
import type { Log } from '../../core/log.js';
import { type BotApi, createBotApi } from './api.js';
import type { TelegramOptions } from './options.js';
import type { OurBot } from './ours.js';
import { whose } from './supervise.js';

export interface Bot {
  /** Whose it is; null for the main bot. */
  readonly personaId: PersonaId | null;
  readonly api: BotApi;
  /** As what comes in and goes out names it; null for a main bot that never logged in. */
  our(): OurBot | null;
  /** Logs in, once; rejects when it cannot. */
  identity(signal: AbortSignal): Promise<OurBot>;
}

export function createBot(
  { token, apiRoot, mode }: Pick<TelegramOptions, 'token' | 'apiRoot' | 'mode'>,
  personaId: PersonaId | null,
  { clock, log }: { clock: Clock; log: Log },
): Bot {
  const setting = `channels.telegram.${personaId === null ? 'token' : `persona_tokens.${personaId}`}`;
  const api = createBotApi({ apiRoot, token, setting }, clock);
  let our: OurBot | null =
    personaId === null ? null : { id: Number(token.split(':', 1)[0]), username: '', personaId };
  let loggedIn = false;
  let asking: Promise<OurBot> | null = null;

  async function logIn(signal: AbortSignal): Promise<OurBot> {
    const { id, username } = await api.call((raw, ended) => raw.getMe(ended), { signal });
    our = { id, username: username ?? '', ...(personaId === null ? {} : { personaId }) };
    loggedIn = true;
    const how = { bot: `@${username}`, mode, ...whose(personaId) };
    log.info({ channel: 'telegram', ...how }, 'logged in');
    return our;
  }

  return {
    personaId,
    api,
    our: () => our,
    async identity(signal) {
      if (loggedIn && our !== null) return our;
      asking ??= logIn(signal).finally(() => {
        asking = null;
      });
      return asking;
    },
  };
}
