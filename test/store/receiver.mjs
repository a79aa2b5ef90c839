/** The process that `killed.test.ts` kills: receives batch after batch and tells each that was acknowledged. */
import { systemClock } from '../../dist/modules/core/clock.js';
import { openSqliteStore } from '../../dist/modules/store/open.js';

const [file, migrationsFolder, first] = process.argv.slice(2);
const log = { debug() {}, info() {}, warn() {}, error() {} };
const store = await openSqliteStore({ file, migrationsFolder, clock: systemClock, log });

for (let n = Number(first); ; n++) {
  const receipts = [0, 1, 2, 3].map((part) => ({
    kind: 'message',
    chat: { id: 'test_1', address: '1', kind: 'direct', title: '' },
    threadId: null,
    platformMessageId: `${n}.${part}`,
    sender: { id: 'test_ann', name: 'Ann', administrator: false },
    text: `${n}.${part}`,
    sentAt: 0,
    mentionsBot: false,
    replyTo: null,
  }));
  await store.receive({ channel: 'test', account: 'bot', now: 0, cursor: `${n}`, receipts });
  process.stdout.write(`${n}\n`);
}
