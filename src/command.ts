/** Shared by the short-lived commands. */
import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import { type Config, type LoadedConfig, processConfig } from './config.js';
import { cutAt, printableJson, printableLine } from './core/cut.js';
import { A_TIME, momentsOf, type Zone } from './core/dates.js';
import { Fault } from './core/errors.js';
import { OPERATOR } from './core/journal.js';
import { createLog } from './operating/log.js';
import { databaseProblem } from './premises.js';
import { hiddenInLogs } from './secrets.js';

/** For entries of the audit log. */
export const BY_OPERATOR = { who: OPERATOR, where: null, word: null };

/** Without a log of their own, commands print the warnings to standard error. */
export async function commandConfig(argumentPath: string | undefined): Promise<LoadedConfig> {
  const loaded = await processConfig(argumentPath);
  const problem = databaseProblem();
  if (problem !== null) throw new Fault('configuration', problem);
  for (const warning of loaded.warnings) process.stderr.write(`coterie: ${printableLine(warning)}\n`);
  return loaded;
}

export function commandLog(config: Config, level: Config['log']['level'] = 'warn') {
  return createLog({ ...config.log, level, secrets: hiddenInLogs(config) });
}

/** Something given at the command line, as JSON, which is one line. */
export function quoted(text: string): string {
  return printableJson(cutAt(text, 200));
}

export function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** A line with words that others wrote. */
export function tell(line: string): void {
  say(printableLine(line));
}

/** A reader such as `head` may close the pipe early. */
export function endWithReader(): void {
  process.stdout.on('error', () => process.exit(0));
}

/** The first and last moment of an option like `--since`; null if it is not given. */
export function momentsGiven(option: string, given: string | undefined, zone: Zone, now: number) {
  if (given === undefined) return null;
  const found = momentsOf(given, zone, now);
  if (found === null) throw wrongOption(option, given, A_TIME);
  return found;
}

export function wrongOption(option: string, given: string, expected: string): Fault {
  return new Fault('configuration', `--${option} ${quoted(given)}: expected ${expected}`);
}

/** Ctrl-C and Ctrl-D throw Fault with `cancelled`. Hidden: typed text is not shown. */
export async function askAtTerminal(question: string, cancelled: string, isHidden = false): Promise<string> {
  const silent = new Writable({ write: (_piece, _encoding, done) => done() });
  const output = isHidden ? silent : process.stdout;
  const lines = createInterface({ input: process.stdin, output, terminal: true, historySize: 0 });
  const ending = new AbortController();
  lines.once('close', () => ending.abort());
  if (isHidden) process.stderr.write(question);
  try {
    return await lines.question(question, { signal: ending.signal });
  } catch {
    throw new Fault('configuration', cancelled);
  } finally {
    lines.close();
    if (isHidden) process.stderr.write('\n');
  }
}
