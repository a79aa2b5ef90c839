/**
 * The nightly upkeep: what is kept too long leaves the disk, and what `/reset` forgot with it. In steps of milliseconds
 * with pauses between them, so that nobody waits for it; a night that was missed is made up for after the start.
 */
import { type Clock, OVER } from '../core/clock.js';
import type { Zone } from '../core/dates.js';
import type { Log } from '../core/log.js';
import type { SettingStore, UpkeepStore } from '../core/store.js';

export interface UpkeepParts {
  store: UpkeepStore & SettingStore;
  /** How long delivered, finished and superseded things are kept, days. */
  days: number;
  /** Removes files that are beyond the limits. */
  trimMedia(): Promise<{ files: number; bytes: number }>;
  zone: Zone;
  clock: Clock;
  log: Log;
}

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
/** The hour of the night, in the configured zone. */
const HOUR = 4;
/** A start has other things to do. */
const FIRST_AFTER_MS = 10 * 60_000;
const ROWS_A_STEP = 200;
const PAGES_A_STEP = 100;
const PAUSE_MS = 50;
const LAST_KEY = 'upkeep.last';

/** Begins waiting for the night; returns how to end it. */
export function startUpkeep(parts: UpkeepParts): () => Promise<void> {
  const { store, clock, log } = parts;
  const over = new AbortController();

  async function everyNight(): Promise<void> {
    for (;;) {
      const last = Number((await store.setting(LAST_KEY)) ?? 0);
      await clock.sleep(untilNext(parts, last), over.signal);
      if (over.signal.aborted) return;
      await upkeep(parts, over.signal).catch((error) =>
        log.error({ err: error }, 'the nightly upkeep could not be finished; the next night goes on'),
      );
      if (over.signal.aborted) return;
      await store.setSetting(LAST_KEY, String(clock.now()));
    }
  }

  const running = everyNight().catch((error) =>
    log.error({ err: error }, 'the nightly upkeep has ended; it begins again with the next start'),
  );
  return async () => {
    over.abort(OVER);
    await running;
  };
}

/** One whole upkeep. Ends early when the signal aborts; what is left is the next one's. */
export async function upkeep(parts: UpkeepParts, signal: AbortSignal): Promise<void> {
  const { store, clock, log, days } = parts;
  const began = clock.now();
  const before = began - days * DAY_MS;
  let rows = 0;
  for (let more = true; more && !signal.aborted; ) {
    const gone = await store.prune({ before, most: ROWS_A_STEP });
    rows += gone;
    more = gone >= ROWS_A_STEP;
    await clock.sleep(PAUSE_MS, signal);
  }
  const media = signal.aborted ? { files: 0, bytes: 0 } : await parts.trimMedia();
  while (!signal.aborted && (await store.shrink(PAGES_A_STEP))) await clock.sleep(PAUSE_MS, signal);
  log.info({ rows, files: media.files, bytes: media.bytes }, 'the nightly upkeep is done');
}

/** How long until the next night, ms; soon, where more than a day has gone by without one. */
function untilNext({ zone, clock }: Pick<UpkeepParts, 'zone' | 'clock'>, last: number): number {
  const now = clock.now();
  if (now - last > DAY_MS + HOUR_MS) return FIRST_AFTER_MS;
  const [hour = 0, minute = 0] = zone.time(now).slice(11).split(':').map(Number);
  const minutes = (HOUR * 60 - hour * 60 - minute + 24 * 60) % (24 * 60);
  // At the very minute it has just been done.
  return (minutes === 0 ? 24 * 60 : minutes) * 60_000;
}
