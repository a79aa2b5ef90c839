/** `embeddings.backend: http`: the gateway calls the embedding server itself. */
import type { Embedder } from '../core/embedder.js';
import type { Log } from '../core/log.js';
import { createEmbedder } from './embedder.js';
import { createEmbeddingServer, type EmbeddingServerOptions } from './server.js';

export function createHttpEmbedder(options: EmbeddingServerOptions & { log: Log }): Embedder {
  return createEmbedder(createEmbeddingServer(options), options);
}
