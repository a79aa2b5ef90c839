/** Dates and times in one zone. Create it once: formatters are costly to create (at first use, so that a start need not wait). */
export interface Zone {
  /** IANA name. */
  readonly name: string;
  /** `YYYY-MM-DD` */
  date(at: number): string;
  /** `YYYY-MM-DD HH:MM` */
  time(at: number): string;
}

const MINUTE_MS = 60_000;
const MOST_KNOWN = 10_000;

/**
 * `given` must be a zone that Intl knows; the configuration checks that. null: the system's, which takes time to find out
 * and is not looked for before it is needed.
 */
export function createZone(given: string | null): Zone {
  let named = given;
  const name = () => (named ??= systemZone());
  let format: Intl.DateTimeFormat | null = null;
  /** Cached by minute, because formatting is slow and prompts show the same times again and again. */
  const known = new Map<number, string>();
  const time = (at: number) => {
    const minute = Math.floor(at / MINUTE_MS);
    let text = known.get(minute);
    if (text === undefined) {
      format ??= isoFormat(name());
      text = format.format(at);
      if (known.size >= MOST_KNOWN) known.clear();
      known.set(minute, text);
    }
    return text;
  };
  return {
    get name() {
      return name();
    },
    time,
    date: (at) => time(at).slice(0, 10),
  };
}

function systemZone(): string {
  const zone = new Intl.DateTimeFormat().resolvedOptions().timeZone;
  return zone && zone !== 'Etc/Unknown' ? zone : 'UTC';
}

/** The Swedish format is the ISO format, in every version of ICU. */
function isoFormat(timeZone: string): Intl.DateTimeFormat {
  return new Intl.DateTimeFormat('sv-SE', {
    timeZone,
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
  });
}

const WEEKDAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];

/** The English name of a day given as `YYYY-MM-DD`. */
export function weekday(date: string): string {
  return WEEKDAYS[new Date(`${date}T00:00:00Z`).getUTCDay()] ?? '';
}

/**
 * When a day begins in a zone; up to an hour off if the clocks change at that very time. NaN for a date that does not
 * exist.
 */
export function localMidnight(year: number, month: number, date: number, zone: Zone): number {
  const asUtc = Date.UTC(year, month - 1, date);
  if (!Number.isFinite(asUtc)) return Number.NaN;
  const local = Date.parse(`${zone.time(asUtc).replace(' ', 'T')}Z`);
  return asUtc - (local - asUtc);
}
