/** The audit log of a configuration, and `coterie audit`, which shows it, filtered, and verifies it. */
import { type Config, commandConfig, hiddenInLogs } from './config.js';
import { systemClock } from './core/clock.js';
import { createZone } from './core/dates.js';
import { Fault } from './core/errors.js';
import type { Audit } from './core/journal.js';
import type { Log } from './core/log.js';
import { createAudit } from './operating/audit.js';
import {
  type AuditFilter,
  newestEntries,
  parseFilter,
  shownLine,
  verifyAudit,
} from './operating/audit-read.js';
import { createRedactor } from './operating/redact.js';

export interface ShowWishes extends AuditFilter {
  json?: boolean;
  verify?: boolean;
}

export function openAudit(config: Config, log: Log): Audit {
  return createAudit({
    folder: config.dataDir,
    keepBytes: config.retention.auditBytes,
    redact: createRedactor(hiddenInLogs(config)),
    clock: systemClock,
    log,
  });
}

export async function audit(
  configFile: string | undefined,
  { json = false, verify = false, ...wishes }: ShowWishes,
): Promise<void> {
  const { config } = await commandConfig(configFile);
  // Whoever reads only the beginning (`head`) has read enough.
  process.stdout.on('error', () => process.exit(0));
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

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
