/** What `coterie audit` is asked for: its options, checked, and how an entry is shown on one line. Pure. */

import { A_TIME, momentsOf, type Zone } from '../core/dates.js';
import { Fault } from '../core/errors.js';
import { AUDIT_KINDS } from '../core/journal.js';
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

function timeIn(option: string, given: string, zone: Zone, now: number): { from: number; to: number } {
  const moments = momentsOf(given, zone, now);
  if (moments === null) throw refusal(option, given, A_TIME);
  return moments;
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
