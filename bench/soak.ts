/**
 * `npm run soak`: the traffic of a day, a message every ten seconds, as fast as two gateways on one PostgreSQL take it. Ends
 * with 1 if memory, open files, files or rows grow between the middle and the end (bounds: test/harness/chaos/flat.ts).
 * Writes bench/results/soak.json. `--seed`, `--messages`, `--gateways`.
 */
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { whatGrows } from '../test/harness/chaos/flat.js';
import { runSoak } from '../test/harness/chaos/soak.js';
import { circumstances, keep } from './results.js';

const SAMPLES = 12;
const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    messages: { type: 'string', default: '8640' },
    gateways: { type: 'string', default: '2' },
  },
});
const root = fileURLToPath(new URL('../../', import.meta.url));
const plan = {
  seed: Number(values.seed),
  messages: Number(values.messages),
  gateways: Number(values.gateways),
};

console.log(`seed ${plan.seed}: ${plan.gateways} gateways, ${plan.messages} messages`);
const about = circumstances('soak');
const report = await runSoak({
  ...{ ...plan, root, samples: SAMPLES, leaseMs: 5_000 },
  say: (line) => console.log(line),
});
const grows = whatGrows(report.samples);
keep('soak', { ...about, ...plan, grows, ...report });
console.log(
  `${report.seconds} s; ${grows.length === 0 ? 'nothing grows that should not' : grows.join('\n')}`,
);
process.exitCode = grows.length > 0 ? 1 : 0;
