import { readlinkSync } from 'node:fs';

const MINUTE_MS = 60_000;
const MOST_KNOWN = 10_000;

export type Zone = ReturnType<typeof createZone>;

/** Dates and times in one zone; null: the system's. Create it once: its formatter is costly. */
export function createZone(given: string | null) {
  let named = given;
  const format = given === null ? localTime : formatIn(given);
  /** Cached by minute: formatting is slow, and prompts repeat the same times. */
  const known = new Map<number, string>();
  /** `YYYY-MM-DD HH:MM` */
  const time = (at: number) => {
    const minute = Math.floor(at / MINUTE_MS);
    const text = known.get(minute) ?? format(at);
    if (known.size >= MOST_KNOWN) known.clear();
    known.set(minute, text);
    return text;
  };
  return {
    /** IANA name. */
    get name() {
      named ??= systemZone();
      return named;
    },
    time,
    /** `YYYY-MM-DD` */
    date: (at: number) => time(at).slice(0, 10),
  };
}

/** Prefers the link of /etc/localtime: Intl's first formatter takes a twentieth of the start-up time. */
function systemZone(): string {
  const linked = process.env.TZ === undefined ? linkedZone() : null;
  if (linked !== null && /^(Etc\/)?UTC$/.test(linked)) return 'UTC';
  if (linked !== null && Intl.supportedValuesOf('timeZone').includes(linked)) return linked;
  const zone = new Intl.DateTimeFormat().resolvedOptions().timeZone;
  return zone && zone !== 'Etc/Unknown' ? zone : 'UTC';
}

/** As in `localtime(5)`, and on macOS; null: a regular file, or Windows. */
function linkedZone(): string | null {
  try {
    return /\/zoneinfo\/(.+)$/.exec(readlinkSync('/etc/localtime'))?.[1] ?? null;
  } catch {
    return null;
  }
}

function localTime(at: number): string {
  const date = new Date(at);
  const two = (value: number) => String(value).padStart(2, '0');
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}`;
}

/** Swedish uses the ISO format in every version of ICU. */
function formatIn(timeZone: string): (at: number) => string {
  let format: Intl.DateTimeFormat | null = null;
  return (at) => {
    format ??= new Intl.DateTimeFormat('sv-SE', {
      timeZone,
      year: 'numeric',
      month: '2-digit',
      day: '2-digit',
      hour: '2-digit',
      minute: '2-digit',
    });
    return format.format(at);
  };
}

const WEEKDAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];

export function weekday(date: string): string {
  return WEEKDAYS[new Date(`${date}T00:00:00Z`).getUTCDay()] ?? '';
}

/** Whether it is a zone's name; offsets are not. */
export function isZone(name: string): boolean {
  if (!/^[A-Za-z]/.test(name)) return false;
  try {
    new Intl.DateTimeFormat('en', { timeZone: name });
    return true;
  } catch {
    return false;
  }
}

/** `2026-01-31 08:00 (Europe/Berlin)` */
export function timeWithZone(at: number, timezone: string): string {
  return `${createZone(timezone).time(at)} (${timezone})`;
}

export const A_TIME = 'a date (2026-01-31), a time (2026-01-31T14:30), or how long ago (7d, 12h, 30m)';

const UNITS = { d: 86_400_000, h: 3_600_000, m: 60_000 };

/** First and last moment, ms; null if it is invalid. */
export function momentsOf(given: string, zone: Zone, now: number): { from: number; to: number } | null {
  const [, count, unit] = /^(\d{1,6})([dhm])$/.exec(given) ?? [];
  if (unit !== undefined) {
    const at = now - Number(count) * UNITS[unit as keyof typeof UNITS];
    return { from: at, to: at };
  }
  const [, year, month, day, hour, minute, rest = ''] =
    /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)((?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?))?$/.exec(
      given,
    ) ?? [];
  const date = `${year}-${month}-${day}`;
  const isDay = year !== undefined && new Date(`${date}T00:00Z`).toJSON()?.slice(0, 10) === date;
  if (!isDay) return null;
  const begins = (days: number) => localMidnight(Number(year), Number(month), Number(day) + days, zone);
  if (hour === undefined) return { from: begins(0), to: begins(1) - 1 };
  const local = Date.parse(`${date}T${hour}:${minute}${rest.replace(/(?:Z|[+-]\d\d:?\d\d)$/, '')}Z`);
  const at = /[Z+-]/.test(rest)
    ? Date.parse(`${date}T${hour}:${minute}${rest}`)
    : begins(0) + local - Date.parse(`${date}T00:00Z`);
  return Number.isFinite(at) && Number.isFinite(local) ? { from: at, to: at } : null;
}

/** ms; up to an hour off if the clocks change then. NaN for an invalid date. */
export function localMidnight(year: number, month: number, date: number, zone: Zone): number {
  const asUtc = Date.UTC(year, month - 1, date);
  if (!Number.isFinite(asUtc)) return Number.NaN;
  const local = Date.parse(`${zone.time(asUtc).replace(' ', 'T')}Z`);
  return asUtc - (local - asUtc);
}
