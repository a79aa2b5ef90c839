/** The indexing thread: serves requests in order and cleans up in between. Started by `index-thread.ts`; built as a separate file. */
import { setImmediate as giveWay } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import type { IndexAnswer, IndexCall, WorkerSettings } from './index-thread.js';
import { SearchIndex } from './search-index.js';

const port = parentPort;
if (port === null) throw new Error('this is no program: the gateway starts it as a thread');
const { file, zone } = workerData as WorkerSettings;
const say = (answer: IndexAnswer) => port.postMessage(answer);
const index = new SearchIndex(
  file,
  zone,
  (reason) => say({ kind: 'anew', reason }),
  () => giveWay(),
);

let tidying: Promise<void> | null = null;
function tidy(): Promise<void> {
  tidying ??= clearAway().finally(() => {
    tidying = null;
  });
  return tidying;
}

async function clearAway(): Promise<void> {
  try {
    while (index.tidy()) await giveWay();
  } catch {
    // Retried after the next request.
  }
}

port.on('message', async ({ id, name, values }: IndexCall) => {
  try {
    const value = await (index[name] as (...values: unknown[]) => unknown)(...values);
    if (name === 'forget') {
      // The caller may inspect the file as soon as the promise resolves.
      await tidy();
      index.scrub();
    }
    say({ kind: 'done', id, value });
  } catch (error) {
    say({ kind: 'failed', id, reason: error instanceof Error ? error.message : String(error) });
  }
  if (name === 'close') port.close();
  else if (['views', 'dropView', 'keepOnly', 'dropFile', 'addFile', 'forget', 'addVectors'].includes(name))
    void tidy();
});
