/** Dates and times in one zone. Made once, because formatters are costly to make. */
export interface Zone {
  /** IANA name. */
  readonly name: string;
  /** `YYYY-MM-DD` */
  date(at: number): string;
  /** `YYYY-MM-DD HH:MM` */
  time(at: number): string;
}

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
  const time = (at: number) => format.format(at);
  return { name, time, date: (at) => time(at).slice(0, 10) };
}
