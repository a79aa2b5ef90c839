/** Our bots: the main one, and one for every persona that has a token. Together they are one account. */
import type { Clock } from '../../core/clock.js';
import type { PersonaId } from '../../core/ids.js';
import type { Log } from '../../core/log.js';
import { onAbort } from '../kit/abort.js';
import { type BotApi, createBotApi } from './api.js';
import type { OurBot } from './mentions.js';
import type { TelegramOptions } from './options.js';

export interface Bot {
  /** Whose it is; null for the main bot. */
  readonly personaId: PersonaId | null;
  readonly api: BotApi;
  /** As messages name it; null for a main bot that never logged in. */
  our(): OurBot | null;
  /** Logs in, once; rejects when it cannot. */
  identity(signal: AbortSignal): Promise<OurBot>;
}

export interface Bots {
  main: Bot;
  /** In the order of the configuration. */
  personas: readonly Bot[];
  /** The main one first. */
  all: readonly Bot[];
  ofPersona(id: PersonaId | undefined): Bot | undefined;
  /** A persona's bot by its id. */
  withId(id: number): Bot | undefined;
  /** As far as they are known. */
  ours(): OurBot[];
  /**
   * Resolves when every persona's bot has tried to log in, or after a few seconds: until then it is not noticed when
   * a message names one.
   */
  loggedIn(signal: AbortSignal): Promise<void>;
  close(): void;
}

/** A persona's bot that does not log in is not waited for any longer. */
const PATIENCE_MS = 3_000;

export function createBots(options: TelegramOptions, parts: { clock: Clock; log: Log }): Bots {
  const { token, apiRoot, mode, personaTokens } = options;
  const main = createBot({ token, apiRoot, mode, personaId: null }, parts);
  const personas = Object.entries(personaTokens).map(([personaId, token]) =>
    createBot({ token, apiRoot, mode: 'polling', personaId }, parts),
  );
  const all = [main, ...personas];
  let loggedIn: Promise<void> | null = null;

  async function logInAll(signal: AbortSignal): Promise<void> {
    if (personas.length === 0) return;
    const over = new AbortController();
    const end = () => over.abort();
    const unlisten = onAbort(signal, end);
    const tried = Promise.allSettled(personas.map((bot) => bot.identity(signal)));
    await Promise.race([tried, parts.clock.sleep(PATIENCE_MS, over.signal)]);
    unlisten();
    end();
  }

  return {
    main,
    personas,
    all,
    ofPersona: (id) => personas.find((bot) => bot.personaId === id),
    withId: (id) => personas.find((bot) => bot.our()?.id === id),
    ours: () => all.map((bot) => bot.our()).filter((bot) => bot !== null),
    loggedIn: (signal) => {
      loggedIn ??= logInAll(signal);
      return loggedIn;
    },
    close() {
      for (const bot of all) bot.api.close();
    },
  };
}

function createBot(
  given: Pick<TelegramOptions, 'token' | 'apiRoot' | 'mode'> & { personaId: PersonaId | null },
  { clock, log }: { clock: Clock; log: Log },
): Bot {
  const { token, apiRoot, mode, personaId } = given;
  const setting = `channels.telegram.${personaId === null ? 'token' : `persona_tokens.${personaId}`}`;
  const api = createBotApi({ apiRoot, token, setting }, clock);
  // A bot's id stands in its token.
  let our: OurBot | null =
    personaId === null ? null : { id: Number(token.split(':', 1)[0]), username: '', personaId };
  let isLoggedIn = false;
  let loggingIn: Promise<OurBot> | null = null;

  async function logIn(signal: AbortSignal): Promise<OurBot> {
    const { id, username } = await api.call((raw, ended) => raw.getMe(ended), { signal });
    our = { id, username: username ?? '', ...(personaId === null ? {} : { personaId }) };
    isLoggedIn = true;
    log.info({ ...logFields(personaId), bot: `@${username}`, mode }, 'logged in');
    return our;
  }

  return {
    personaId,
    api,
    our: () => our,
    async identity(signal) {
      if (isLoggedIn && our !== null) return our;
      loggingIn ??= logIn(signal).finally(() => {
        loggingIn = null;
      });
      return loggingIn;
    },
  };
}

/** Which of several bots a line of the log is about. */
export function logFields(personaId: PersonaId | null): { channel: string; persona?: PersonaId } {
  return personaId === null ? { channel: 'telegram' } : { channel: 'telegram', persona: personaId };
}
