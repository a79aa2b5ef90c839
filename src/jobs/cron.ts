/**
 * Cron lines: when they are due, in a zone. A time of day that daylight saving skips is due when the clocks go forward; one
 * that it doubles is due the first time only. What repeats (every 30 minutes) goes on repeating. Pure.
 */
import { Cron } from 'croner';

const LONGEST_LINE = 200;

/** Why the line is none that can be kept: a sentence; null if it can. */
export function cronFault(line: string, zone: string, now: number): string | null {
  if (line.length > LONGEST_LINE) return `A cron line has at most ${LONGEST_LINE} characters.`;
  const fields = line.trim().split(/\s+/).length;
  if (fields !== 5 && fields !== 6) {
    return (
      `A cron line has 5 fields (minute, hour, day of month, month, day of week), or 6 with seconds before them; ` +
      `${JSON.stringify(line)} has ${fields}.`
    );
  }
  try {
    if (nextSlot(line, zone, now) !== null) return null;
    return `${JSON.stringify(line)} never comes: there is no such date.`;
  } catch (error) {
    return `${JSON.stringify(line)} is no cron line: ${reasonOf(error)}.`;
  }
}

/** The first slot after a time; null if there is none any more. */
export function nextSlot(line: string, zone: string, after: number): number | null {
  return compiled(line, zone).nextRun(new Date(after))?.getTime() ?? null;
}

/** The last slot up to a time, but none before `from`, which is one. */
export function lastSlot(line: string, zone: string, { from, now }: { from: number; now: number }): number {
  // The library looks before a time, to the second.
  const [last] = compiled(line, zone).previousRuns(1, new Date(Math.floor(now / 1000) * 1000 + 1000));
  const at = last?.getTime() ?? from;
  return at > from && at <= now ? at : from;
}

/** How long there is at least between two slots, as far as the next ones show. */
export function shortestGap(line: string, zone: string, now: number): number {
  const cron = compiled(line, zone);
  const slots = cron.nextRuns(8, new Date(now)).map((at) => at.getTime());
  return Math.min(...slots.slice(1).map((at, n) => at - (slots[n] ?? 0)), Number.POSITIVE_INFINITY);
}

function compiled(line: string, zone: string): Cron {
  return new Cron(line.trim(), {
    timezone: zone,
    mode: '5-or-6-parts',
    fixedTimeRule: 'no-wildcard',
    paused: true,
  });
}

function reasonOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error))
    .replace(/^CronPattern: /, '')
    .replace(/\.$/, '');
}
