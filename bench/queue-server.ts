/** An embedding server that answers immediately, in its own process. */
import { startFakeEmbeddings } from '../test/fakes/embeddings.js';

process.once('disconnect', () => process.exit());
const server = await startFakeEmbeddings({ length: 768, constant: true, keep: 1 });
process.send?.(server.url);
