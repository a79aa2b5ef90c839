/** `coterie audit`: filters, shows and verifies the audit log. */
import { commandConfig, endWithReader, momentsGiven, say, wrongOption } from './command.js';
import { createZone, type Zone } from './core/dates.js';
import { Fault } from './core/errors.js';
import { AUDIT_KINDS } from './core/journal.js';
import { type AuditLine, plain } from './operating/audit-files.js';
import { newestEntries, verifyAudit } from './operating/audit-read.js';

export interface AuditFilter {
  kind?: string;
  who?: string;
  chat?: string;
  since?: string;
  until?: string;
  limit?: string;
}

export interface AuditOptions extends AuditFilter {
  json?: boolean;
  verify?: boolean;
}

const MOST = 10_000;
const WIDEST_KIND = Math.max(...AUDIT_KINDS.map((kind) => kind.length));

export async function audit(
  configFile: string | undefined,
  { json = false, verify = false, ...wishes }: AuditOptions,
): Promise<void> {
  const { config } = await commandConfig(configFile);
  endWithReader();
  const zone = createZone(config.timezone);
  const { matches, most } = parseFilter(wishes, zone, Date.now());
  if (verify) return sayVerdict(config.dataDir);
  const { lines, strange } = await newestEntries(config.dataDir, matches, most);
  for (const line of lines) say(json ? JSON.stringify(line) : shownLine(line, zone));
  if (lines.length === 0 && !json) say('No entries.');
  if (strange > 0) {
    const those = strange === 1 ? '1 line is' : `${strange} lines are`;
    process.stderr.write(`${those} not as it was written; coterie audit --verify says where.\n`);
  }
}

async function sayVerdict(folder: string): Promise<void> {
  const { entries, first, last, broken } = await verifyAudit(folder);
  if (broken !== null) {
    const place = broken.line === 0 ? broken.file : `${broken.file}, line ${broken.line}`;
    throw new Fault(
      'internal',
      `The audit log is broken: ${place}: ${broken.what} (${entries} entries before it hold).`,
    );
  }
  const since =
    first === null || first === 1
      ? ''
      : ` from entry ${first} on (older files went by retention.audit_bytes)`;
  say(`${entries} ${entries === 1 ? 'entry' : 'entries'}, unbroken${since}.`);
  if (last !== null) say(`The last is ${last.n}, ${last.hash}.`);
}

export function parseFilter(
  { kind, who, chat, since, until, limit = '50' }: AuditFilter,
  zone: Zone,
  now: number,
): { matches(line: AuditLine): boolean; most: number } {
  if (kind !== undefined && !(AUDIT_KINDS as readonly string[]).includes(kind)) {
    throw wrongOption('kind', kind, `one of ${AUDIT_KINDS.join(', ')}`);
  }
  const from = momentsGiven('since', since, zone, now)?.from ?? Number.NEGATIVE_INFINITY;
  const to = momentsGiven('until', until, zone, now)?.to ?? Number.POSITIVE_INFINITY;
  const most = /^\d{1,9}$/.test(limit) ? Number(limit) : 0;
  if (most < 1 || most > MOST) throw wrongOption('limit', limit, `a whole number from 1 to ${MOST}`);
  return {
    most,
    matches(line) {
      const at = Date.parse(line.at);
      return (
        (kind === undefined || line.kind === kind) &&
        (who === undefined || line.who === who || line.word === who) &&
        (chat === undefined || line.where === chat || line.who.startsWith(`${chat}/`)) &&
        (since === undefined || at >= from) &&
        (until === undefined || at <= to)
      );
    },
  };
}

/** Safe for a terminal, even if the file was manipulated. */
export function shownLine(
  { n, at, kind, who, where, what, word, details = {} }: AuditLine,
  zone: Zone,
): string {
  const time = Number.isFinite(Date.parse(at)) ? zone.time(Date.parse(at)) : 'at no time';
  const place = where === null ? '' : ` in ${where}`;
  const asked = word === null || word === who ? '' : ` (on the word of ${word})`;
  const more = Object.entries(details).map(([name, value]) => `\n    ${plain(`${name}: ${value}`, 4_000)}`);
  const line = `${n}  ${time}  ${kind.padEnd(WIDEST_KIND)}  ${who}${place}: ${what}${asked}`;
  return [plain(line, 4_000), ...more].join('');
}
