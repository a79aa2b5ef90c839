/** The Bot API as we call it: grammY's client over our transport, with a deadline and the caller's signal. */
import { setMaxListeners } from 'node:events';
import { Api } from 'grammy/web';
import { type Clock, OVER } from '../../core/clock.js';
import type { TelegramOptions } from './options.js';
import { createTransport } from './transport.js';

/** grammY's types name the signal of an older library; any standard one will do. */
type GrammySignal = NonNullable<Parameters<Api['raw']['getMe']>[0]>;

/** A call that is not answered by then is given up. */
const CALL_MS = 30_000;
/** The last resort under our own deadlines. */
const LIBRARY_TIMEOUT_SECONDS = 120;

export interface BotApi {
  /** Runs a call with a signal that aborts with the caller's, or after a time. */
  call<T>(run: (api: Api['raw'], ended: GrammySignal) => Promise<T>, limits?: CallLimits): Promise<T>;
  /** Breaks what is under way. */
  close(): void;
}

interface CallLimits {
  signal?: AbortSignal;
  ms?: number;
}

export function createBotApi({ token, apiRoot }: TelegramOptions, clock: Clock): BotApi {
  const transport = createTransport(apiRoot);
  const { raw } = new Api(token, {
    apiRoot,
    fetch: transport.fetch,
    timeoutSeconds: LIBRARY_TIMEOUT_SECONDS,
  });

  return {
    async call(run, { signal, ms = CALL_MS } = {}) {
      const over = new AbortController();
      const ended = new AbortController();
      const abort = () => over.abort();
      if (signal?.aborted) abort();
      if (signal !== undefined) {
        // As many calls as are under way listen to one signal of the caller; that is no leak to warn of.
        setMaxListeners(0, signal);
        signal.addEventListener('abort', abort, { once: true });
      }
      void clock.sleep(ms, ended.signal).then(() => {
        if (!ended.signal.aborted) abort();
      });
      try {
        return await run(raw, over.signal as unknown as GrammySignal);
      } finally {
        ended.abort(OVER);
        signal?.removeEventListener('abort', abort);
      }
    },
    close: () => transport.close(),
  };
}
