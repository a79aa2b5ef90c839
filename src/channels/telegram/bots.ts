/** All our bots: the main one, and one for every persona that has a token. They are faces of one account. */
import type { Clock } from '../../core/clock.js';
import type { PersonaId } from '../../core/ids.js';
import type { Log } from '../../core/log.js';
import { type Bot, createBot } from './bot.js';
import type { TelegramOptions } from './options.js';
import type { OurBot } from './ours.js';

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
  /** Resolves when every bot has tried to log in, but soon: what names one that has not would not be noticed. */
  known(signal: AbortSignal): Promise<void>;
  close(): void;
}

/** Nobody waits longer for a persona's bot that does not come. */
const PATIENCE_MS = 3_000;

export function createBots(options: TelegramOptions, parts: { clock: Clock; log: Log }): Bots {
  const { apiRoot } = options;
  const main = createBot(options, null, parts);
  const personas = Object.entries(options.personaTokens).map(([personaId, token]) =>
    createBot({ token, apiRoot, mode: 'polling' }, personaId, parts),
  );
  const all = [main, ...personas];
  let known: Promise<void> | null = null;

  async function lookAround(signal: AbortSignal): Promise<void> {
    if (personas.length === 0) return;
    const over = new AbortController();
    const end = () => over.abort();
    signal.addEventListener('abort', end, { once: true });
    const tried = Promise.allSettled(personas.map((bot) => bot.identity(signal)));
    await Promise.race([tried, parts.clock.sleep(PATIENCE_MS, over.signal)]);
    signal.removeEventListener('abort', end);
    end();
  }

  return {
    main,
    personas,
    all,
    ofPersona: (id) => personas.find((bot) => bot.personaId === id),
    withId: (id) => personas.find((bot) => bot.our()?.id === id),
    ours: () => all.map((bot) => bot.our()).filter((bot) => bot !== null),
    known: (signal) => {
      known ??= lookAround(signal);
      return known;
    },
    close() {
      for (const bot of all) bot.api.close();
    },
  };
}
