/**
 * What every store must do, told through its port alone: one suite, run by every implementation. `open` gives
 * an empty store; `another` is a second process's view of the same one.
 */
import { afterEach, beforeEach, describe } from 'vitest';
import type { Store } from '../../src/core/store.js';
import { accessContract } from './store/access.js';
import { anewContract } from './store/anew.js';
import { approvalContract } from './store/approvals.js';
import { boardContract } from './store/board.js';
import { boardListContract } from './store/board-lists.js';
import { commandContract } from './store/commands.js';
import { delegatedContract } from './store/delegated.js';
import { exportContract } from './store/exports.js';
import { factContract } from './store/facts.js';
import { feedContract } from './store/feed.js';
import { fileContract } from './store/files.js';
import { gatewayContract } from './store/gateways.js';
import { jobContract } from './store/jobs.js';
import { journalContract } from './store/journal.js';
import { keepingContract } from './store/keeping.js';
import { lawContract } from './store/laws.js';
import { moveContract } from './store/moves.js';
import { offerContract } from './store/offers.js';
import { operationsContract } from './store/operations.js';
import { outboxContract } from './store/outbox.js';
import { raceContract } from './store/races.js';
import { receiveContract } from './store/receive.js';
import { recoveryContract } from './store/recovery.js';
import { revisionContract } from './store/revisions.js';
import { roomContract } from './store/rooms.js';
import { shownContract } from './store/shown.js';
import { suspendedContract } from './store/suspended.js';
import { taskContract } from './store/tasks.js';
import { traceContract } from './store/traces.js';
import { transcriptContract } from './store/transcript.js';
import { turnContract } from './store/turns.js';
import { upkeepContract } from './store/upkeep.js';
import { viewContract } from './store/views.js';
import { whereaboutsLaw } from './store/whereabouts.js';

export interface OpenedStore {
  store: Store;
  another(): Promise<Store>;
  /** Closes every view and removes what was stored. */
  remove(): Promise<void>;
}

/** The store of the test that runs, and how to get at others. */
export interface StoreUnderTest {
  readonly store: Store;
  another(): Promise<Store>;
  /** With a further empty store, which is removed then. */
  withFresh(use: (fresh: Pick<OpenedStore, 'store' | 'another'>) => Promise<void>): Promise<void>;
}

export function storeContract(name: string, open: () => Promise<OpenedStore>): void {
  describe(`${name} keeps the store's contract`, () => {
    let current: OpenedStore;
    beforeEach(async () => {
      current = await open();
    });
    afterEach(() => current.remove());

    const under: StoreUnderTest = {
      get store() {
        return current.store;
      },
      another: () => current.another(),
      async withFresh(use) {
        const fresh = await open();
        await use(fresh).finally(fresh.remove);
      },
    };
    receiveContract(under);
    approvalContract(under);
    turnContract(under);
    transcriptContract(under);
    viewContract(under);
    moveContract(under);
    journalContract(under);
    keepingContract(under);
    fileContract(under);
    traceContract(under);
    commandContract(under);
    anewContract(under);
    offerContract(under);
    recoveryContract(under);
    roomContract(under);
    outboxContract(under);
    shownContract(under);
    suspendedContract(under);
    revisionContract(under);
    gatewayContract(under);
    raceContract(under);
    accessContract(under);
    factContract(under);
    feedContract(under);
    exportContract(under);
    boardContract(under);
    boardListContract(under);
    operationsContract(under);
    upkeepContract(under);
    jobContract(under);
    taskContract(under);
    delegatedContract(under);
    lawContract(under);
    whereaboutsLaw(under);
  });
}
