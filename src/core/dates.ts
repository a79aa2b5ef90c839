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
