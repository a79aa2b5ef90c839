/** What `coterie audit` is asked for: its options, checked, and how an entry is shown on one line. Pure. */
import { AUDIT_KINDS } from '../core/audit.js';
import { localMidnight, type Zone } from '../core/dates.js';
import { Fault } from '../core/errors.js';
import { type AuditLine, plain } from './audit-line.js';

export interface AuditWishes {
  kind?: string;
  who?: string;
  chat?: string;
  since?: string;
  until?: string;
  limit?: string;
}

const MOST = 10_000;
const USUALLY = 50;
const WIDEST_KIND = Math.max(...AUDIT_KINDS.map((kind) => kind.length));
const UNITS = { d: 86_400_000, h: 3_600_000, m: 60_000 };

export function askedFor(
  { kind, who, chat, since, until, limit }: AuditWishes,
  zone: Zone,
  now: number,
): { matches(line: AuditLine): boolean; most: number } {
  if (kind !== undefined && !(AUDIT_KINDS as readonly string[]).includes(kind)) {
    throw refusal('kind', kind, `one of ${AUDIT_KINDS.join(', ')}`);
  }
  const from = since === undefined ? null : timeIn('since', since, zone, now).from;
  const to = until === undefined ? null : timeIn('until', until, zone, now).to;
  const most = limit === undefined ? USUALLY : /^\d{1,9}$/.test(limit) ? Number(limit) : 0;
  if (most < 1 || most > MOST) throw refusal('limit', limit ?? '', `a whole number from 1 to ${MOST}`);
  return {
    most,
    matches(line) {
      const at = Date.parse(line.at);
      return (
        (kind === undefined || line.kind === kind) &&
        (who === undefined || line.who === who || line.word === who) &&
        (chat === undefined || line.where === chat || line.who.startsWith(`${chat}/`)) &&
        (from === null || at >= from) &&
        (to === null || at <= to)
      );
    },
  };
}

/** The first and the last moment that a word for a time means. */
function timeIn(option: string, given: string, zone: Zone, now: number): { from: number; to: number } {
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
  if (isDay) {
    const begins = (days: number) => localMidnight(Number(year), Number(month), Number(day) + days, zone);
    if (hour === undefined) return { from: begins(0), to: begins(1) - 1 };
    const local = Date.parse(`${date}T${hour}:${minute}${rest.replace(/(?:Z|[+-]\d\d:?\d\d)$/, '')}Z`);
    const at = /[Z+-]/.test(rest)
      ? Date.parse(`${date}T${hour}:${minute}${rest}`)
      : begins(0) + local - Date.parse(`${date}T00:00Z`);
    if (Number.isFinite(at) && Number.isFinite(local)) return { from: at, to: at };
  }
  throw refusal(
    option,
    given,
    'a date (2026-01-31), a time (2026-01-31T14:30), or how long ago (7d, 12h, 30m)',
  );
}

function refusal(option: string, given: string, expected: string): Fault {
  return new Fault('configuration', `--${option} ${plain(given, 60)}: expected ${expected}`);
}

/** Safe for a terminal, also where somebody else wrote into the file. */
export function shown({ n, at, kind, who, where, what, word, details = {} }: AuditLine, zone: Zone): string {
  const time = Number.isFinite(Date.parse(at)) ? zone.time(Date.parse(at)) : 'at no time';
  const place = where === null ? '' : ` in ${where}`;
  const asked = word === null || word === who ? '' : ` (on the word of ${word})`;
  const more = Object.entries(details).map(([name, value]) => `\n    ${plain(`${name}: ${value}`, 4_000)}`);
  const line = `${n}  ${time}  ${kind.padEnd(WIDEST_KIND)}  ${who}${place}: ${what}${asked}`;
  return [plain(line, 4_000), ...more].join('');
}
