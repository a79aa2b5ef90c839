/**
 * Keeps connected: a connection that ends is followed by a new one, at once or after a pause, without an end. That
 * nobody has linked us yet, that the phone threw us out, and that WhatsApp is not there are states to come out of.
 */
import type { Clock } from '../../core/clock.js';
import { describe } from '../../core/errors.js';
import type { Log } from '../../core/log.js';
import type { State } from '../kit/state.js';
import { type Closing, closingOf, pauseAfter } from './closing.js';
import type { Connection } from './connection.js';
import { type Credentials, isLinked } from './credentials.js';

/** A connection that lasted so long was a good one. */
const GOOD_AFTER_MS = 60_000;
/** Another client that took the link away comes back as soon as we do. */
const UNDISPUTED_AFTER_MS = 600_000;
/** Credentials that cannot be saved are the only copy. */
const SAVE_AGAIN_MS = 5_000;

export interface Keeping {
  credentials(): Promise<Credentials>;
  /** Makes a connection. `opened` is to be called when it is logged in. */
  connect(credentials: Credentials, opened: () => void): Promise<Connection>;
  /** Forgets the credentials, which are worth nothing any more. */
  forget(): Promise<void>;
  state: State;
  clock: Clock;
  log: Log;
  signal: AbortSignal;
}

export interface Keeper {
  /** The connection that is logged in. */
  open(): Connection | null;
  /** Ends the connection that there is; a new one follows. */
  renew(reason: Error): void;
  /** Ends when the signal aborts and the last connection is over. Never rejects. */
  run(): Promise<void>;
}

export function createKeeper(parts: Keeping): Keeper {
  const { state, clock, log, signal } = parts;
  let current: Connection | null = null;
  let isOpen = false;

  async function run(): Promise<void> {
    let before = 0;
    let last: Closing['kind'] | null = null;
    while (!signal.aborted) {
      const beganAt = clock.now();
      const closing = await liveOnce();
      if (signal.aborted) break;
      const lasted = clock.now() - beganAt;
      const good = lasted >= (closing.kind === 'replaced' ? UNDISPUTED_AFTER_MS : GOOD_AFTER_MS);
      before = good || closing.kind !== last ? 0 : before + 1;
      last = closing.kind;
      const pauseMs = pauseAfter(closing, before);
      state.down(closing.words);
      tell(closing, pauseMs);
      await clock.sleep(pauseMs, signal);
    }
    state.down('the gateway stops');
  }

  /** One connection, from beginning to end. */
  async function liveOnce(): Promise<Closing> {
    try {
      const credentials = await parts.credentials();
      const connection = await parts.connect(credentials, () => {
        isOpen = true;
        state.up();
      });
      current = connection;
      const onAbort = () => connection.end(new Error('the gateway stops'));
      signal.addEventListener('abort', onAbort, { once: true });
      if (signal.aborted) onAbort();
      const reason = await connection.ended;
      isOpen = false;
      current = null;
      signal.removeEventListener('abort', onAbort);
      const closing = reasonOf(reason, credentials);
      if (closing.kind !== 'logged out') await saved(credentials);
      // What the library still does for this connection must not undo what the next one writes.
      credentials.retire();
      if (closing.kind === 'logged out') await parts.forget();
      return closing;
    } catch (error) {
      isOpen = false;
      current = null;
      return { kind: 'interrupted', words: describe(error) };
    }
  }

  async function saved(credentials: Credentials): Promise<void> {
    for (;;) {
      try {
        return await credentials.settled();
      } catch (error) {
        log.error(
          { channel: 'whatsapp', reason: describe(error) },
          'the credentials of WhatsApp could not be saved; trying again',
        );
        if (signal.aborted) return;
        await clock.sleep(SAVE_AGAIN_MS, signal);
        credentials.save();
      }
    }
  }

  function tell({ kind, words }: Closing, pauseMs: number): void {
    const fields = { channel: 'whatsapp', reason: words, pauseMs };
    if (kind === 'restart' || kind === 'unscanned') log.debug(fields, 'a new connection to WhatsApp is due');
    else if (kind === 'logged out') {
      log.error(
        fields,
        'WhatsApp: this gateway was removed from the linked devices; its credentials are forgotten. To link it again, scan the QR code that follows',
      );
    } else if (kind === 'interrupted') {
      log.warn(fields, 'the connection to WhatsApp is interrupted; trying again');
    } else log.error(fields, 'WhatsApp does not keep this connection; trying again later');
  }

  return {
    open: () => (isOpen ? current : null),
    renew: (reason) => current?.end(reason),
    run,
  };
}

/** Who was never let in cannot have been thrown out. */
function reasonOf(error: unknown, { auth }: Credentials): Closing {
  const closing = closingOf(error);
  if (closing.kind !== 'logged out' || isLinked(auth.creds)) return closing;
  return { kind: 'interrupted', words: 'WhatsApp refuses to link this gateway just now (401)' };
}
