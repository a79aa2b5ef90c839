/** `embeddings.backend: redis`: workers beside the GPU take the texts from a queue in Redis. */
import type { Embedder } from '../core/embedder.js';
import { Fault } from '../core/errors.js';
import { createEmbedder } from './embedder.js';
import type { Outcome, VectorSource } from './outcome.js';
import { createRequests, type RequestOptions } from './requests.js';
import { HARMLESS } from './texts.js';

export function createRedisEmbedder(
  options: Omit<RequestOptions, 'mostQueued' | 'replyTo'> & Partial<RequestOptions>,
): Embedder {
  const requests = createRequests({
    ...options,
    mostQueued: options.mostQueued ?? 2_000,
    replyTo: options.replyTo ?? `temp:req:${options.newId()}`,
  });

  /**
   * A worker does not say whether the text is at fault or its server. So those with an error are asked for once more
   * beside a harmless text: what fails again while that one is answered is at fault itself.
   */
  async function embed(texts: string[], ask: Parameters<VectorSource['embed']>[1]): Promise<Outcome[]> {
    const outcomes = await requests.ask(texts, ask);
    const refused = outcomes.flatMap((outcome, n) => ('refused' in outcome ? [n] : []));
    if (refused.length === 0) return outcomes;
    const again = await requests.ask([...refused.map((n) => texts[n] ?? ''), HARMLESS], ask);
    const harmless = again.at(-1);
    if (harmless === undefined || 'refused' in harmless) {
      throw new Fault(
        'embedding_unavailable',
        `The workers behind ${requests.place} answer with an error: ${harmless?.refused ?? 'nothing'}`,
      );
    }
    for (const [place, n] of refused.entries()) outcomes[n] = again[place] ?? harmless;
    return outcomes;
  }

  return createEmbedder({ place: requests.place, embed, close: requests.close }, options);
}
