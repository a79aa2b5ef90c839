/**
 * `describe` for what needs bubblewrap. Where it is not installed these tests are skipped, and say so; with
 * COTERIE_REQUIRE_SERVERS=1 they fail instead. Where the system lets nobody make namespaces, they are skipped in any case.
 */
import { describe } from 'vitest';
import { bubblewrapFault, findBubblewrap } from '../../src/tools/shell/bubblewrap.js';

const isMissing = findBubblewrap() === null;
/** As a command of a persona's would find it. */
const fault = await bubblewrapFault();

export const describeWithBubblewrap = fault === null ? describe : skipped();

function skipped(): typeof describe.skip {
  if (isMissing && process.env.COTERIE_REQUIRE_SERVERS === '1') {
    throw new Error('bwrap is not installed, and COTERIE_REQUIRE_SERVERS=1 demands these tests');
  }
  process.stderr.write(`bubblewrap does not work here (${fault}): the tests that need it are SKIPPED\n`);
  return describe.skip;
}
