/** A short run of `npm run chaos`: two gateways on one PostgreSQL, and some faults of each sort in an order of chance. */
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { chaosTable, runChaos } from '../harness/chaos/run.js';
import { describeWithPostgres } from '../harness/postgres.js';

const seed = Number(process.env.COTERIE_SEED ?? Date.now() % 1_000_000);
const root = fileURLToPath(new URL('../../', import.meta.url));
const KINDS = [
  ...['kill', 'restart', 'freeze 1.5', 'postgres immediate', 'postgres terminate', 'postgres read-only'],
  ...['postgres hold', 'postgres cut', 'telegram refuse', 'model cut', 'platform reset', 'clock'],
];

describeWithPostgres('chaos', () => {
  it(`closes its account after ${KINDS.length} faults (COTERIE_SEED=${seed})`, async () => {
    const lines: string[] = [];
    const plan = {
      root,
      seed,
      kinds: KINDS,
      faults: KINDS.length,
      messages: 500,
      gateways: 2,
      leaseMs: 3_000,
    };
    const report = await runChaos({ ...plan, say: (line) => void lines.push(line) });
    process.stdout.write(`\nseed ${seed}, ${report.seconds} s\n${chaosTable(report)}\n`);
    const { problems, lost, accepted } = report.account;
    expect(problems, lines.join('\n')).toEqual([]);
    expect({ lost, faults: report.faults }).toEqual({ lost: 0, faults: KINDS.length });
    expect(accepted).toBeGreaterThanOrEqual(500);
  }, 600_000);
});
