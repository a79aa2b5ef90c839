/** An embedding server that answers at once, in a process of its own. */
import { startFakeEmbeddings } from '../test/fakes/embeddings.js';

process.once('disconnect', () => process.exit());
const server = await startFakeEmbeddings({ length: 768, constant: true, keep: 1 });
process.send?.(server.url);
