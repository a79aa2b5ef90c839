/**
 * Opens the audit log, and records each start in it: version, configuration (differences from the defaults and from the
 * last start, and all of `access`) and the credentials in use. Secrets appear as fingerprints, to show changes.
 */
import type { Config, LoadedConfig } from './config.js';
import { ACCESS, configKeys } from './config-keys.js';
import { systemClock } from './core/clock.js';
import { type Audit, type AuditEntry, GATEWAY } from './core/journal.js';
import { ONCE } from './core/known-keys.js';
import type { Log } from './core/log.js';
import { createAudit } from './operating/audit.js';
import { hashOf, plain } from './operating/audit-files.js';
import { newestEntries } from './operating/audit-read.js';
import { createRedactor } from './operating/redact.js';
import { hiddenInLogs, isSecretOption } from './secrets.js';

export function openAudit(config: Config, log: Log, redact = createRedactor(hiddenInLogs(config))): Audit {
  return createAudit({
    folder: config.dataDir,
    keepBytes: config.retention.auditBytes,
    redact,
    clock: systemClock,
    log,
  });
}

/** Bytes of the log that are searched for the previous start, so that starting stays fast. */
const MOST_BYTES = 20_000_000;
const MOST_CHARS = 10_000;
/** In an address; the redactor leaves very short ones. */
const PASSWORD = /(:\/\/[^\s/:@"]*:)[^\s/@"]+@/g;

interface Setting {
  shown: string;
  isSecret: boolean;
}

export async function appendStart(
  audit: Audit,
  { config, keys, file }: LoadedConfig,
  version: string,
  began: string,
): Promise<void> {
  const whole = { ...keys, access: { ...ACCESS, ...keys.access } };
  const variableKeys = config.variables.map(({ path }) => path.join('.'));
  const settings = settingsOf(whole, createRedactor(hiddenInLogs(config)), variableKeys);
  const details = noteworthy(settings);
  // A read error shows up when the log is written to.
  const isConfiguration = ({ kind, details }: AuditEntry) =>
    kind === 'configuration' && details !== undefined;
  const known = await newestEntries(config.dataDir, isConfiguration, 1, MOST_BYTES).catch(() => null);
  const before = known?.lines[0]?.details;
  const credentials = Object.entries(details).filter(([name]) => settings.get(name)?.isSecret);
  const address = details['model.base_url'];
  const used = [...(address === undefined ? [] : [['model.base_url', address]]), ...credentials];
  const hash = hashOf(JSON.stringify([...settings].map(([name, { shown }]) => [name, shown])));
  const since = before === undefined ? 'no earlier one is known' : changesSince(before, details);
  const note = (kind: AuditEntry['kind'], what: string, more: Record<string, string> | undefined) =>
    audit.note({ kind, who: GATEWAY, where: null, what, word: null, details: more });
  await Promise.all([
    note('start', `${began}: coterie ${version}, Node ${process.version}`, undefined),
    note('configuration', `${file ?? 'the defaults'} (sha256 ${hash}); ${since}`, details),
    note('credentials', used.length === 0 ? 'none' : 'used from now on', Object.fromEntries(used)),
  ]);
}

/**
 * Flattens config.yaml to dotted keys. `clean` redacts secrets inside other values. A value taken from the environment
 * is treated as a secret.
 */
function settingsOf(
  keys: object,
  clean = (text: string) => text,
  variableKeys: readonly string[] = [],
): Map<string, Setting> {
  const found = new Map<string, Setting>();
  collect(keys, [], false);
  return found;

  function collect(value: unknown, path: string[], isSecret: boolean): void {
    const holdsMore =
      typeof value === 'object' && value !== null && !(Array.isArray(value) && value.every(isPlain));
    if (!holdsMore) {
      const shown = JSON.stringify(value) ?? 'null';
      const name = path.join('.');
      const isVariable = variableKeys.some((key) => key === name || key.startsWith(`${name}.`));
      const hides = (isSecret || isVariable) && value !== null;
      const safe = hides ? '' : plain(clean(shown.replace(PASSWORD, '$1[redacted]@')), MOST_CHARS);
      const fingerprint = safe === shown ? '' : `secret ${hashOf(shown).slice(0, 8)}`;
      found.set(name, { shown: `${safe} ${fingerprint}`.trim(), isSecret: isSecret && value !== null });
      return;
    }
    for (const [name, inner] of Object.entries(value)) {
      collect(inner, [...path, name], isSecret || isSecretOption(name, path));
    }
  }
}

function isPlain(value: unknown): boolean {
  return typeof value !== 'object' || value === null;
}

/** Settings that differ from the defaults, and all of `access`. */
function noteworthy(settings: Map<string, Setting>): Record<string, string> {
  const defaults = settingsOf(configKeys.parse({}, ONCE));
  const told = [...settings].filter(
    ([name, { shown }]) => defaults.get(name)?.shown !== shown || name.startsWith('access.'),
  );
  return Object.fromEntries(told.map(([name, { shown }]) => [name, shown]));
}

function changesSince(before: Record<string, string>, now: Record<string, string>): string {
  const names = [...new Set([...Object.keys(before), ...Object.keys(now)])].sort();
  const changed = names.filter((name) => before[name] !== now[name]);
  return changed.length === 0
    ? 'nothing changed since the last start'
    : `changed since the last start: ${changed.join(', ')}`;
}
