/**
 * The nightly upkeep: removes expired data and what `/reset` forgot, in steps of milliseconds with pauses, so that it
 * delays nobody. A missed night is made up for after the next start.
 */
import { type Clock, OVER } from '../core/clock.js';
import type { Zone } from '../core/dates.js';
import type { Log } from '../core/log.js';
import { FORGOTTEN_FILES, putSetting, settingOf, type UpkeepStore, type ValueStore } from '../core/store.js';

export interface UpkeepParts {
  store: UpkeepStore & ValueStore;
  /** Retention of delivered, finished and superseded rows, in days. */
  days: number | 'never';
  /** Removes these files; a missing one is not an error. */
  removeFiles(files: string[]): Promise<void>;
  /** Removes files beyond the size limits. */
  trimMedia(signal: AbortSignal): Promise<{ files: number; bytes: number }>;
  /** Removes expired files beside the store: recorded turns, exported chats. */
  trimCopies(signal: AbortSignal): Promise<void>;
  /** Consolidates memory, if that is configured. */
  consolidate(signal: AbortSignal): Promise<void>;
  zone: Zone;
  clock: Clock;
  log: Log;
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Hour of the day, in the configured time zone. */
const HOUR = 4;
/** Delay after a start, which has more urgent work. */
const FIRST_AFTER_MS = 10 * 60_000;
/** If the store cannot be read. */
const RETRY_MS = HOUR_MS;
const ROWS_A_STEP = 200;
const PAUSE_MS = 50;
const LAST_KEY = 'upkeep.last';

/** Schedules the upkeep; returns the function that stops it. */
export function startUpkeep(parts: UpkeepParts): () => Promise<void> {
  const over = new AbortController();
  const running = everyNight(parts, over.signal);
  return async () => {
    over.abort(OVER);
    await running;
  };
}

async function everyNight(parts: UpkeepParts, signal: AbortSignal): Promise<void> {
  const { store, clock, log } = parts;
  while (!signal.aborted) {
    try {
      const last = Number((await settingOf(store, LAST_KEY)) ?? 0);
      await clock.sleep(untilNext(parts, last), signal);
      if (signal.aborted) return;
      await upkeep(parts, signal);
      if (signal.aborted) return;
      await putSetting(store, LAST_KEY, String(clock.now()));
    } catch (error) {
      log.error({ err: error }, 'nightly upkeep failed; retrying in an hour');
      await clock.sleep(RETRY_MS, signal);
    }
  }
}

/** One whole upkeep. Ends early when the signal aborts; the next one continues. */
async function upkeep(parts: UpkeepParts, signal: AbortSignal): Promise<void> {
  const { store, clock, log, days, removeFiles } = parts;
  const now = clock.now();
  const before = days === 'never' ? 0 : now - days * DAY_MS;
  let rows = 0;
  for (let more = true; more && !signal.aborted; ) {
    const removed = await store.prune({ before, now, most: ROWS_A_STEP });
    rows += removed.rows;
    more = removed.more;
    // Includes files that an earlier upkeep did not get to.
    const files: string[] = JSON.parse((await settingOf(store, FORGOTTEN_FILES)) ?? '[]');
    if (files.length > 0) {
      await removeFiles(files);
      await putSetting(store, FORGOTTEN_FILES, '[]');
    }
    await clock.sleep(PAUSE_MS, signal);
  }
  const media = await parts.trimMedia(signal);
  await parts.trimCopies(signal);
  await parts.consolidate(signal);
  if (signal.aborted) return;
  log.info({ rows, files: media.files, bytes: media.bytes }, 'nightly upkeep finished');
}

/** Milliseconds until the next night; shorter if the last upkeep is more than a day ago. */
function untilNext({ zone, clock }: UpkeepParts, last: number): number {
  const now = clock.now();
  if (now - last > DAY_MS + HOUR_MS) return FIRST_AFTER_MS;
  const [hour = 0, minute = 0] = zone.time(now).slice(11).split(':').map(Number);
  const minutes = (HOUR * 60 - hour * 60 - minute + 24 * 60) % (24 * 60);
  // Within this very minute the upkeep has just been done.
  return (minutes === 0 ? 24 * 60 : minutes) * 60_000;
}
