/** The people behind a tool call, for tests that authorise it themselves. */
import type { Permission } from '../../src/core/access.js';
import type { Asker } from '../../src/core/authorisation.js';

export function askerWho(may: { own?: boolean; change?: Permission } = {}): Asker {
  const { own = false, change = own ? 'yes' : 'no' } = may;
  return { senders: async () => ['test_7'], isOwner: async () => own, mayChange: async () => change };
}
