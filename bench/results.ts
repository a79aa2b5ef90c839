/**
 * Keeps the tables of a part of the bench in `bench/results/<part>.json`, with what they depend on: the machine, the
 * versions, the revision. A glance (`--quick`) and another checkout's gateway (`--dist`) are not kept.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { cpus, loadavg, platform, release, totalmem } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Row, table, verdicts } from './figures.js';
import { readOptions } from './options.js';

const FOLDER = fileURLToPath(new URL('../../bench/results', import.meta.url));

/** Of these figures: the load is that of the moment of the call. */
export function circumstances(part: string, node = process.execPath) {
  return {
    part,
    at: new Date().toISOString(),
    revision: revision(),
    machine: {
      processor: cpus()[0]?.model.trim() || 'unknown',
      cpus: cpus().length,
      memoryGb: Math.round(totalmem() / 2 ** 30),
      kernel: `${platform()} ${release()}`,
    },
    loadAtStart: Number(loadavg()[0]?.toFixed(1)),
    node: execFileSync(node, ['--version'], { encoding: 'utf8' }).trim(),
  };
}

/** Keeps a file of results. */
export function keep(part: string, results: object): void {
  mkdirSync(FOLDER, { recursive: true });
  writeFileSync(join(FOLDER, `${part}.json`), `${JSON.stringify(results, null, 2)}\n`);
}

export function resultsOf(part: string) {
  const { quick, own, node } = readOptions();
  const facts: Record<string, string> = {};
  const { loadAtStart } = circumstances(part, node);
  const about = () => ({ ...circumstances(part, node), loadAtStart, ...facts });
  const tables: { columns: string[]; rows: object[] }[] = [];

  return {
    /** More that the figures depend on, such as the version of a server. */
    note: (more: Record<string, string>) => void Object.assign(facts, more),
    /** As `table` of figures.ts. */
    table(columns: string[], rows: Row[], ratioAim?: number | null): string {
      const judged = verdicts(rows, ratioAim);
      tables.push({ columns, rows: rows.map(({ aim, ...row }, n) => ({ ...row, ...judged[n] })) });
      if (!quick && own) keep(part, { ...about(), tables });
      return table(columns, rows, ratioAim);
    },
  };
}

/** Of the checkout, with a `+` where it was changed; null outside a checkout. */
function revision(): string | null {
  const root = join(FOLDER, '..', '..');
  const git = (...args: string[]) =>
    execFileSync('git', args, {
      cwd: root,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
  try {
    const isChanged = git('status', '--porcelain', '--', 'src', 'bench/*.ts', 'migrations').trim() !== '';
    return `${git('rev-parse', '--short', 'HEAD').trim()}${isChanged ? '+' : ''}`;
  } catch {
    return null;
  }
}
