/** The Bot API as we call it: grammY's client over our transport, with a deadline and the caller's signal. */
import { Api } from 'grammy/web';
import type { Clock } from '../../core/clock.js';
import { withDeadline } from '../kit/abort.js';
import { type Download, download } from '../kit/download.js';
import { type Credentials, type Failure, failureOf } from './failure.js';
import { createTransport } from './transport.js';

/** grammY's types want the signal of an older library; any standard one works. */
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
  /** Downloads the file at a path that `getFile` gave. Never rejects. */
  download(path: string, limits: { maxBytes: number; signal: AbortSignal }): Promise<Download>;
  /** What went wrong with one of its calls. */
  failure(error: unknown): Failure;
  /** Cuts off calls that are under way. */
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

  return {
    call: (run, { signal, ms = CALL_MS, bytes = 0 } = {}) =>
      withDeadline(clock, ms + bytes / SLOWEST_BYTES_PER_MS, [signal], (ended) =>
        run(raw, ended as unknown as GrammySignal),
      ),
    download(path, { maxBytes, signal }) {
      const place = path.split('/').map(encodeURIComponent).join('/');
      return withDeadline(clock, CALL_MS + maxBytes / SLOWEST_BYTES_PER_MS, [signal], (ended) =>
        download(`${apiRoot}/file/bot${token}/${place}`, {
          server: "Telegram's file server",
          maxBytes,
          signal: ended,
        }),
      );
    },
    failure: (error) => failureOf(error, credentials),
    close: () => transport.close(),
  };
}
