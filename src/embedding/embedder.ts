/** The embedder over whoever makes vectors: blank texts, the breaker, and vectors that can be compared. */
import type { Clock } from '../core/clock.js';
import type { Embedder } from '../core/embedder.js';
import { Fault } from '../core/errors.js';
import type { Log } from '../core/log.js';
import { createBreaker } from './breaker.js';
import { type Outcome, toUnit, type VectorSource } from './outcome.js';
import { HARMLESS, isBlank } from './texts.js';

export function createEmbedder(
  source: VectorSource,
  { model, clock, log }: { model: string; clock: Clock; log: Log },
): Embedder {
  /** Of the vectors. The first answer decides; another length is another model. */
  let length: number | null = null;
  const breaker = createBreaker({
    place: source.place,
    async trial(signal) {
      const outcomes = await source.embed([HARMLESS], { purpose: 'query', signal });
      const [vector] = unitVectors(outcomes);
      if (!vector) throw new Fault('embedding_unavailable', `${source.place} refuses even a harmless text.`);
    },
    clock,
    log,
  });

  function unitVectors(outcomes: Outcome[]): (Float32Array | null)[] {
    const vectors = outcomes.map((outcome) => ('vector' in outcome ? outcome.vector : null));
    const lengths = vectors.flatMap((vector) => vector?.length ?? []);
    length ??= commonest(lengths);
    if (lengths.length > 0 && !lengths.some((each) => each === length)) {
      throw new Fault(
        'embedding_unavailable',
        `${source.place} gave vectors of ${lengths[0]} numbers, and of ${length} before: it runs another model now. ` +
          `Name it in embeddings.model and start again, or go back to "${model}".`,
      );
    }
    return vectors.map((vector) => (vector?.length === length ? toUnit(vector) : null));
  }

  return {
    model,
    dimensions: () => length,
    state: breaker.state,

    async embed(texts, { purpose, signal }) {
      const asked = texts.filter((text) => !isBlank(text));
      if (asked.length === 0) return texts.map(() => null);
      const made = await breaker.pass(async () => {
        const outcomes = await source.embed(asked, { purpose, signal });
        return { outcomes, vectors: unitVectors(outcomes) };
      }, signal);
      const without = made.vectors.filter((vector) => vector === null).length;
      if (without > 0) {
        const reasons = made.outcomes.flatMap((outcome) => ('refused' in outcome ? [outcome.refused] : []));
        log.warn(
          { place: source.place, texts: without, reason: reasons[0] ?? 'a vector of another length' },
          'texts got no vector and are found by keywords only',
        );
      }
      let next = 0;
      return texts.map((text) => (isBlank(text) ? null : (made.vectors[next++] ?? null)));
    },

    async close() {
      breaker.close();
      await source.close();
    },
  };
}

function commonest(lengths: number[]): number | null {
  const counts = new Map<number, number>();
  for (const length of lengths) counts.set(length, (counts.get(length) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1])[0]?.[0] ?? null;
}
