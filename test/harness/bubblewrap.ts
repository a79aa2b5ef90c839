/**
 * `describe` for tests that need bubblewrap. Without it they are skipped with a message, or fail with
 * COTERIE_REQUIRE_SERVERS=1. If the system allows no namespaces, they are always skipped.
 */
import { describe } from 'vitest';
import { bubblewrapFault, findBubblewrap } from '../../src/tools/shell/bubblewrap.js';

const isMissing = findBubblewrap() === null;
/** Found the same way as for a persona's command. */
const fault = await bubblewrapFault();

export const describeWithBubblewrap = fault === null ? describe : skipped();

function skipped(): typeof describe.skip {
  if (isMissing && process.env.COTERIE_REQUIRE_SERVERS === '1') {
    throw new Error('bwrap is not installed, and COTERIE_REQUIRE_SERVERS=1 demands these tests');
  }
  process.stderr.write(`bubblewrap does not work here (${fault}): the tests that need it are SKIPPED\n`);
  return describe.skip;
}
