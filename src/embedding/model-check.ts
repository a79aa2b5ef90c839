/** Vectors of two models are never compared. The first reply says what the workers call theirs. */
import { Fault } from '../core/errors.js';
import type { Log } from '../core/log.js';

/** What is wrong with a vector of that model; null where nothing is, or where the worker does not say. */
export function createModelCheck(configured: string, log: Log): (model: string | null) => Fault | null {
  let first: string | null = null;
  return (model) => {
    if (model === null || model === first) return null;
    if (first !== null) {
      return new Fault(
        'embedding_unavailable',
        `A worker uses the model "${model}", and "${first}" answered before: let all workers use one, set ` +
          'embeddings.model to it, and start again.',
      );
    }
    first = model;
    if (model !== configured) {
      log.warn(
        { workers: model, configured },
        'the embedding workers call their model by another name than embeddings.model; if it is another model, ' +
          'set embeddings.model to it',
      );
    }
    return null;
  };
}
