/**
 * The audit log: `audit.jsonl` in `data_dir`, which only grows, each line chained to the one before. Whatever process
 * writes takes its lock for as long as one write lasts; what comes meanwhile goes in the next one, in order. Nothing is
 * held open, so that every write finds the files as they are.
 */
import { join } from 'node:path';
import type { Clock } from '../core/clock.js';
import { describe, Fault } from '../core/errors.js';
import type { Audit, AuditEntry } from '../core/journal.js';
import type { Log } from '../core/log.js';
import { append, ofItself, type Place } from './audit-append.js';
import { CURRENT } from './audit-files.js';
import type { Draft } from './audit-line.js';
import { type DataLock, takeLock } from './lock.js';

export interface AuditParts extends Omit<Place, 'fileBytes'> {
  fileBytes?: number;
  /** Cuts out what may not be seen. */
  clean(text: string): string;
  clock: Clock;
  log: Log;
}

interface Waiting {
  draft: Draft;
  /** What was to be done is done, also where this cannot be entered. */
  goesOn: boolean;
  resolve(): void;
  reject(error: Fault): void;
}

const FILE_BYTES = 10_000_000;
/** In one write, so that a crash leaves little unfinished. */
const MOST_AT_ONCE = 200;
/** Other processes hold the lock for some milliseconds: together this is about ten seconds. */
const TRIES = 2_000;
const SAY_EVERY_MS = 60_000;

export function createAudit(parts: AuditParts): Audit {
  const { folder, clean, clock, log } = parts;
  const place: Place = { fileBytes: FILE_BYTES, ...parts };
  const waiting: Waiting[] = [];
  let isWriting = false;
  /** What could not be entered since the last write that could. */
  let missed: { count: number; since: string } | null = null;
  let saidAt: number | null = null;

  function enter(entry: AuditEntry, goesOn: boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      waiting.push({ draft: draftOf(entry), goesOn, resolve, reject });
      if (!isWriting) void write();
    });
  }

  function draftOf({ what, details, ...entry }: AuditEntry): Draft {
    return {
      ...entry,
      at: time(),
      what: clean(what),
      ...(details && {
        details: Object.fromEntries(Object.entries(details).map(([name, value]) => [name, clean(value)])),
      }),
    };
  }

  async function write(): Promise<void> {
    isWriting = true;
    while (waiting.length > 0) {
      // What is entered in the same moment goes in one write.
      await null;
      const batch = waiting.splice(0, MOST_AT_ONCE);
      const drafts = batch.map(({ draft }) => draft);
      if (missed !== null) drafts.unshift({ at: time(), ...ofItself('audit', gap(missed)) });
      try {
        const lock = await patientLock();
        try {
          await append(place, drafts, time());
        } finally {
          lock.release();
        }
        missed = null;
        for (const { resolve } of batch) resolve();
      } catch (error) {
        fail(batch, error);
      }
    }
    isWriting = false;
  }

  function fail(batch: Waiting[], error: unknown): void {
    const file = join(folder, CURRENT);
    const what = `The audit log ${file} cannot be written; make room, or let this user write there`;
    const fault = new Fault('audit_unavailable', what, error);
    for (const { draft, goesOn, resolve, reject } of batch) {
      if (!goesOn) {
        reject(fault);
        continue;
      }
      missed = { count: (missed?.count ?? 0) + 1, since: missed?.since ?? draft.at };
      resolve();
    }
    const now = clock.now();
    if (missed === null || (saidAt !== null && Math.abs(now - saidAt) < SAY_EVERY_MS)) return;
    saidAt = now;
    log.error(
      { why: describe(fault), missing: missed.count },
      'what is done is not entered in the audit log',
    );
  }

  /** Counted, not timed: a clock may jump. */
  async function patientLock(): Promise<DataLock> {
    for (let tries = 0; tries < TRIES; tries++) {
      const lock = await takeLock(join(folder, 'audit.lock'));
      if (lock) return lock;
      await clock.sleep(1 + (tries % 9));
    }
    throw new Error('another process holds it and does not let go');
  }

  function time(): string {
    return new Date(clock.now()).toISOString();
  }

  return { record: (entry) => enter(entry, false), note: (entry) => enter(entry, true) };
}

function gap({ count, since }: { count: number; since: string }): string {
  return `${count === 1 ? 'one thing was' : `${count} things were`} done since ${since} that could not be entered`;
}
