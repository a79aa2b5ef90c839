/**
 * The thread that looks through files for `glob` and `grep`: patterns come from models, and one of them may be made to
 * keep a search busy for ever. `search-thread.ts` starts it for one search, and ends it when it takes too long.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { type SearchOrder, searchIn } from './search.js';

void searchIn(workerData as SearchOrder).then((found) => parentPort?.postMessage(found));
