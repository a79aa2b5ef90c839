/**
 * `describe` for what needs bubblewrap. Where it is not installed these tests are skipped, and say so; with
 * COTERIE_REQUIRE_SERVERS=1 they fail instead. Where the system lets nobody make namespaces, they are skipped in any case.
 */
import { spawnSync } from 'node:child_process';
import { describe } from 'vitest';

const probe = spawnSync('bwrap', ['--ro-bind', '/', '/', '--unshare-all', 'true'], { encoding: 'utf8' });

export const describeWithBubblewrap = probe.status === 0 ? describe : skipped();

function skipped(): typeof describe.skip {
  const isMissing = probe.error !== undefined;
  if (isMissing && process.env.COTERIE_REQUIRE_SERVERS === '1') {
    throw new Error('bwrap is not installed, and COTERIE_REQUIRE_SERVERS=1 demands these tests');
  }
  const why = isMissing ? 'is not installed' : `cannot make a sandbox here (${probe.stderr.trim()})`;
  process.stderr.write(`bwrap ${why}: the tests that need it are SKIPPED\n`);
  return describe.skip;
}
