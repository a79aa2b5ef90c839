/**
 * `npm run chaos`: several gateways on one PostgreSQL while faults of a seed strike (test/harness/chaos). Prints the table of
 * the README and writes bench/results/chaos.json. Ends with 1 if anything is not accounted for. `--seed`, `--faults`,
 * `--messages`, `--gateways`, `--lease SECONDS`, `--kinds kill,clock`, and `--logs FOLDER` for
 * the logs of all gateways.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { arch, cpus, loadavg, platform, release, totalmem } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { chaosTable, runChaos } from '../test/harness/chaos/run.js';

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    faults: { type: 'string', default: '200' },
    messages: { type: 'string', default: '10000' },
    gateways: { type: 'string', default: '3' },
    lease: { type: 'string', default: '3' },
    kinds: { type: 'string' },
    logs: { type: 'string' },
  },
});
const root = fileURLToPath(new URL('../../', import.meta.url));
const plan = {
  root,
  ...{ seed: Number(values.seed), faults: Number(values.faults), messages: Number(values.messages) },
  ...{
    gateways: Number(values.gateways),
    leaseMs: Number(values.lease) * 1_000,
    ...(values.kinds && { kinds: values.kinds.split(',') }),
  },
};
const git = (...args: string[]) => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim();

console.log(`seed ${plan.seed}: ${plan.gateways} gateways, ${plan.faults} faults, ${plan.messages} messages`);
const loadBefore = loadavg()[0];
const report = await runChaos({ ...plan, logs: values.logs, say: (line) => console.log(line) });
const machine = {
  ...{ cpus: cpus().length, model: cpus()[0]?.model.trim(), memoryGb: Math.round(totalmem() / 2 ** 30) },
  ...{ system: `${platform()} ${release()} ${arch()}`, node: process.version, postgres: report.postgres },
  ...{ revision: git('rev-parse', '--short', 'HEAD'), changed: git('status', '--porcelain', 'src') !== '' },
  load: [loadBefore, loadavg()[0]],
};
const folder = join(root, 'bench/results');
mkdirSync(folder, { recursive: true });
writeFileSync(
  join(folder, 'chaos.json'),
  `${JSON.stringify({ at: new Date().toISOString(), machine, ...report }, null, 2)}\n`,
);

console.log(`\n${chaosTable(report)}\n`);
const { problems, ...account } = report.account;
console.log(JSON.stringify(account));
console.log(`${report.seconds} s; gateways that ended by themselves: ${report.ends.length}`);
for (const { token, waitMs, faults } of report.slowest)
  console.log(`${token} waited ${waitMs} ms: ${faults.join(', ')}`);
for (const problem of problems) console.log(`PROBLEM: ${problem}`);
process.exitCode = problems.length > 0 ? 1 : 0;
