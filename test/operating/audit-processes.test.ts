/** The audit log between real processes: several that write, one that is killed, one that may write no further. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execPath } from 'node:process';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { verifyAudit } from '../../src/operating/audit-read.js';
import { auditIn, enter, entriesIn, saidIn } from './audit-support.js';

let folder: string;
const children: ChildProcess[] = [];
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'coterie-audit-'));
});
afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  await rm(folder, { recursive: true });
});

/** Another process with an audit log on the folder; `work` uses `record(what)`. */
function process(work: string, before = ''): ChildProcess {
  const module = (name: string) =>
    JSON.stringify(new URL(`../../dist/modules/${name}`, import.meta.url).href);
  const script = `
    const { createAudit } = await import(${module('operating/audit.js')});
    const { systemClock: clock } = await import(${module('core/clock.js')});
    const log = { error() {}, warn() {}, info() {}, debug() {} };
    const folder = ${JSON.stringify(folder)};
    const audit = createAudit({ folder, fileBytes: 20_000, keepBytes: 1e9, redact: (text) => text, clock, log });
    const record = (what) => audit.record({ kind: 'command', who: 'x_1', where: null, what, word: null });
    ${work}`;
  const child = spawn('bash', ['-c', `${before} exec "$0" --input-type=module -e "$1"`, execPath, script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(child);
  return child;
}

const each = (name: string) => `
  await Promise.all([0, 1, 2, 3, 4].map(async (line) => {
    for (let i = 0; i < 100; i++) await record('${name} ' + line + ' ' + i);
  }));`;

it('two processes that enter 500 each lose nothing, mix nothing up, and keep their order', async () => {
  const exits = [process(each('a')), process(each('b'))].map((child) => once(child, 'exit'));
  for (const exit of exits) expect((await exit)[0]).toBe(0);
  const said = await saidIn(folder);
  expect(said).toHaveLength(1_000);
  expect(new Set(said).size).toBe(1_000);
  for (const line of ['a 0', 'b 4']) {
    const own = said.filter((what) => what.startsWith(`${line} `));
    expect(own).toEqual(Array.from({ length: 100 }, (_, i) => `${line} ${i}`));
  }
  expect(await verifyAudit(folder)).toMatchObject({ entries: 1_000, broken: null });
});

it('kill -9 while it writes loses nothing that was acknowledged, and the chain goes on', async () => {
  const acknowledged = new Set<string>();
  for (let round = 0; round < 8; round++) {
    const child = process(`
      for (let i = 0; ; i++) {
        await Promise.all([0, 1, 2].map((n) => record('${round} ' + i + ' ' + n)));
        console.log([0, 1, 2].map((n) => '${round} ' + i + ' ' + n).join('\\n'));
      }`);
    let left = 10 + round * 5;
    let said = '';
    await new Promise<void>((resolve) => {
      child.stdout?.setEncoding('utf8').on('data', (text: string) => {
        said += text;
        if (--left === 0) {
          child.kill('SIGKILL');
          resolve();
        }
      });
    });
    await once(child, 'close');
    for (const line of said.split('\n').slice(0, -1)) acknowledged.add(line);
    await enter(auditIn(folder, { fileBytes: 20_000 }), `after ${round}`);
    const written = new Set(await saidIn(folder));
    expect([...acknowledged].filter((what) => !written.has(what))).toEqual([]);
    expect((await verifyAudit(folder)).broken).toBeNull();
  }
});

it('a disk that takes no more refuses what is entered, and nothing of it stays', async () => {
  // A file may grow to 4 kB: the write that would go beyond ends in the middle.
  const child = process(
    `let done = 0;
     try { for (;; done++) await record('entry ' + done); } catch (error) { console.log(done, error.code); }`,
    "trap '' XFSZ; ulimit -f 4;",
  );
  const [said] = await once(child.stdout as NonNullable<ChildProcess['stdout']>, 'data');
  const [done, code] = String(said).trim().split(' ');
  expect(code).toBe('audit_unavailable');
  expect(Number(done)).toBeGreaterThan(3);
  expect(await entriesIn(folder)).toHaveLength(Number(done));
  expect((await verifyAudit(folder)).broken).toBeNull();
  await enter(auditIn(folder), 'room again');
  expect(await verifyAudit(folder)).toMatchObject({ entries: Number(done) + 1, broken: null });
});
