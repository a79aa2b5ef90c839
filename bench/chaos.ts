/**
 * `npm run chaos`: several gateways on one PostgreSQL while faults of a seed strike (test/harness/chaos). Prints the table of
 * the README and writes bench/results/chaos.json. Ends with 1 if anything is not accounted for. `--seed`, `--faults`,
 * `--messages`, `--gateways`, `--lease SECONDS`, `--kinds kill,clock`, `--minutes`
 * after which no further fault strikes, and `--logs FOLDER` for
 * the logs of all gateways.
 */
import { loadavg } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { chaosTable, runChaos } from '../test/harness/chaos/run.js';
import { circumstances, keep } from './results.js';

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    faults: { type: 'string', default: '200' },
    messages: { type: 'string', default: '10000' },
    gateways: { type: 'string', default: '3' },
    lease: { type: 'string', default: '3' },
    kinds: { type: 'string' },
    minutes: { type: 'string' },
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
console.log(`seed ${plan.seed}: ${plan.gateways} gateways, ${plan.faults} faults, ${plan.messages} messages`);
const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => stop.abort());
const about = circumstances('chaos');
const report = await runChaos({
  ...plan,
  ...(values.minutes && { minutes: Number(values.minutes) }),
  logs: values.logs,
  signal: stop.signal,
  say: (line) => console.log(line),
});
keep('chaos', { ...about, loadAtEnd: loadavg()[0], ...report });

console.log(`\n${chaosTable(report)}\n`);
const { problems, ...account } = report.account;
console.log(JSON.stringify(account));
console.log(`${report.seconds} s; gateways that ended by themselves: ${report.ends.length}`);
for (const { token, waitMs, faults } of report.slowest)
  console.log(`${token} waited ${waitMs} ms: ${faults.join(', ')}`);
for (const problem of problems) console.log(`PROBLEM: ${problem}`);
process.exitCode = problems.length > 0 ? 1 : 0;
