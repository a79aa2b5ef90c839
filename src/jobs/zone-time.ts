/** Times of day in a zone, and the instants that they are. Pure. */

const DAY_MS = 86_400_000;

/** Whether it is the name of a zone; an offset is none. */
export function isZone(name: string): boolean {
  if (!/^[A-Za-z]/.test(name)) return false;
  try {
    new Intl.DateTimeFormat('en', { timeZone: name });
    return true;
  } catch {
    return false;
  }
}

/**
 * The instant at which clocks in a zone show this (`local`: as if it were UTC). What they show twice, when daylight saving
 * ends, is the first; what they skip, when it begins, is as much later as they skip: 02:30 becomes 03:30.
 */
export function instantOf(local: number, zone: string): number {
  const showing = clockOf(zone);
  const before = showing(local - DAY_MS) - (local - DAY_MS);
  const after = showing(local + DAY_MS) - (local + DAY_MS);
  const fitting = [local - before, local - after].filter((at) => showing(at) === local);
  return fitting.length > 0 ? Math.min(...fitting) : local - before;
}

/** What clocks in a zone show, as if it were UTC; to the second. */
export function clockOf(zone: string): (at: number) => number {
  const format = new Intl.DateTimeFormat('sv-SE', {
    timeZone: zone,
    ...{ year: 'numeric', month: '2-digit', day: '2-digit' },
    ...{ hour: '2-digit', minute: '2-digit', second: '2-digit' },
  });
  return (at) => Date.parse(`${format.format(at).replace(' ', 'T')}Z`);
}

const ISO =
  /^(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,]\d{1,9})?)?\s*(Z|[+-]\d\d(?::?\d\d)?)?$/i;

/** An ISO 8601 time, in the zone where it has no offset of its own; null if it is none. */
export function timeIn(text: string, zone: string): number | null {
  const parts = ISO.exec(text.trim());
  if (parts === null) return null;
  // A date that the calendar does not have would become another one.
  const written = `${parts[1]}-${parts[2]}-${parts[3]}T${parts[4]}:${parts[5]}:${parts[6] ?? '00'}.000Z`;
  const local = Date.parse(written);
  if (!Number.isFinite(local) || new Date(local).toISOString() !== written) return null;
  const offset = parts[7];
  if (offset === undefined) return instantOf(local, zone);
  const ms = offsetOf(offset);
  return ms === null ? null : local - ms;
}

/** null for what no zone of the world has. */
function offsetOf(text: string): number | null {
  if (/^z$/i.test(text)) return 0;
  const [, sign, hours, minutes] = /^([+-])(\d\d):?(\d\d)?$/.exec(text) ?? [];
  const total = Number(hours) * 60 + Number(minutes ?? 0);
  if (Number(minutes ?? 0) > 59 || total > 14 * 60) return null;
  return (sign === '-' ? -1 : 1) * total * 60_000;
}
