/** Dates and times in one zone. Made once, because formatters are costly to make, and slow to use. */
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

/** `name` must be a zone that Intl knows; the configuration has checked that. */
export function createZone(name: string): Zone {
  // The Swedish form is the ISO one, in every version of ICU.
  const format = new Intl.DateTimeFormat('sv-SE', {
    timeZone: name,
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
  });
  /** By minute: a prompt shows the times of the same messages again and again. */
  const known = new Map<number, string>();
  const time = (at: number) => {
    const minute = Math.floor(at / MINUTE_MS);
    let text = known.get(minute);
    if (text === undefined) {
      text = format.format(at);
      if (known.size >= MOST_KNOWN) known.clear();
      known.set(minute, text);
    }
    return text;
  };
  return { name, time, date: (at) => time(at).slice(0, 10) };
}

/** When a day begins in a zone; within an hour where the clocks are put forward just then. NaN for no day at all. */
export function localMidnight(year: number, month: number, date: number, zone: Zone): number {
  const asUtc = Date.UTC(year, month - 1, date);
  if (!Number.isFinite(asUtc)) return Number.NaN;
  const local = Date.parse(`${zone.time(asUtc).replace(' ', 'T')}Z`);
  return asUtc - (local - asUtc);
}
