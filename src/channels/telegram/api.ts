/** The Bot API as we call it: grammY's client over our transport, with a deadline and the caller's signal. */
import { setMaxListeners } from 'node:events';
import { Api } from 'grammy/web';
import type { Clock } from '../../core/clock.js';
import { type Credentials, type Failure, failureOf } from './failure.js';
import { createTransport } from './transport.js';

/** grammY's types name the signal of an older library; any standard one will do. */
type GrammySignal = NonNullable<Parameters<Api['raw']['getMe']>[0]>;

/** A call that is not answered by then is given up. */
const CALL_MS = 30_000;
/** Files have more time: as much as it takes on a slow line (50 kB a second). */
const SLOWEST_BYTES_PER_MS = 50;
/** The last resort under our own deadlines: more than the largest file has. */
const LIBRARY_TIMEOUT_SECONDS = 1_200;

export interface BotApi {
  /** Runs a call with a signal that aborts with the caller's, or after a time. */
  call<T>(run: (api: Api['raw'], ended: GrammySignal) => Promise<T>, limits?: CallLimits): Promise<T>;
  /** What lies at a path that `getFile` told; null where it is larger than `maxBytes`. */
  download(path: string, limits: { maxBytes: number; signal: AbortSignal }): Promise<Buffer | null>;
  /** What went wrong with one of its calls. */
  failure(error: unknown): Failure;
  /** Breaks what is under way. */
  close(): void;
}

interface CallLimits {
  signal?: AbortSignal;
  ms?: number;
  /** How much it uploads, or downloads at most. */
  bytes?: number;
}

export function createBotApi(
  { apiRoot, ...credentials }: Credentials & { apiRoot: string },
  clock: Clock,
): BotApi {
  const { token } = credentials;
  const transport = createTransport(apiRoot);
  const { raw } = new Api(token, {
    apiRoot,
    fetch: transport.fetch,
    timeoutSeconds: LIBRARY_TIMEOUT_SECONDS,
  });

  /** Runs it with a signal that aborts with the caller's, or after a time. */
  async function within<T>(
    { signal, ms = CALL_MS, bytes = 0 }: CallLimits,
    run: (ended: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const over = new AbortController();
    const abort = () => over.abort();
    if (signal?.aborted) abort();
    if (signal !== undefined) {
      // As many calls as are under way listen to one signal of the caller; that is no leak to warn of.
      setMaxListeners(0, signal);
      signal.addEventListener('abort', abort, { once: true });
    }
    const cancelDeadline = clock.after(ms + bytes / SLOWEST_BYTES_PER_MS, abort);
    try {
      return await run(over.signal);
    } finally {
      cancelDeadline();
      signal?.removeEventListener('abort', abort);
    }
  }

  return {
    call: (run, limits = {}) => within(limits, (ended) => run(raw, ended as unknown as GrammySignal)),
    download: (path, { maxBytes, signal }) =>
      within({ signal, bytes: maxBytes }, (ended) => {
        const place = path.split('/').map(encodeURIComponent).join('/');
        return transport.download(`${apiRoot}/file/bot${token}/${place}`, { maxBytes, signal: ended });
      }),
    failure: (error) => failureOf(error, credentials),
    close: () => transport.close(),
  };
}
