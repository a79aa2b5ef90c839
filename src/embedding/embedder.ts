/**
 * The embedder over whoever makes vectors: blank texts, vectors that can be compared, and a breaker. After failures
 * the breaker is open: callers hear so at once, and it tries by itself, in the background, whether it works again.
 */
import type { Clock } from '../core/clock.js';
import { describe, Fault } from '../core/errors.js';
import type { Log } from '../core/log.js';
import type { Embedder } from '../core/recall.js';
import {
  HARMLESS,
  nameOf,
  type Outcome,
  type Recipe,
  readName,
  toUnit,
  type VectorSource,
} from './vectors.js';

export function createEmbedder(
  source: VectorSource,
  { recipe, clock, log }: { recipe: Recipe; clock: Clock; log: Log },
): Embedder {
  const { model, dimensions } = recipe;
  /** Of the vectors. The first answer decides it; another length means another model. */
  let length: number | null = null;
  const breaker = createBreaker(source.place, tryHarmless, clock, log);

  async function tryHarmless(signal: AbortSignal): Promise<void> {
    const [vector] = unitVectors(await source.embed([HARMLESS], { purpose: 'query', signal }));
    if (!vector) throw new Fault('embedding_unavailable', `${source.place} refuses even a harmless text.`);
  }

  function unitVectors(outcomes: Outcome[]): (Float32Array | null)[] {
    const vectors = outcomes.map((outcome) => ('vector' in outcome ? outcome.vector : null));
    const lengths = vectors.flatMap((vector) => vector?.length ?? []);
    length ??= commonest(lengths);
    const short = dimensions !== null && lengths.find((each) => each < dimensions);
    if (short) {
      throw new Fault(
        'embedding_unavailable',
        `${source.place} gave vectors of ${short} numbers, and embeddings.dimensions asks for ${dimensions}: lower it.`,
      );
    }
    if (lengths.length > 0 && !lengths.some((each) => each === length)) {
      throw new Fault(
        'embedding_unavailable',
        `${source.place} gave vectors of ${lengths[0]} numbers, and of ${length} before: it runs another model now. ` +
          `Name it in embeddings.model and start again, or go back to "${model}".`,
      );
    }
    return vectors.map((vector) => (vector?.length === length ? toUnit(vector, dimensions) : null));
  }

  return {
    model: nameOf(recipe),
    dimensions: () => (length === null ? null : Math.min(length, dimensions ?? length)),
    state: breaker.state,

    async embed(texts, { purpose, signal }) {
      const asked = texts.filter((text) => !isBlank(text));
      if (asked.length === 0) return texts.map(() => null);
      const made = await breaker.pass(async () => {
        const prefix = purpose === 'query' ? recipe.queryPrefix : recipe.documentPrefix;
        const texts = prefix === '' ? asked : asked.map((text) => prefix + text);
        const outcomes = await source.embed(texts, { purpose, signal });
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

    async embedAsBefore(name, text, signal) {
      const before = readName(name);
      if (before === null || isBlank(text) || breaker.state().kind === 'failing') return null;
      try {
        // Not through the breaker: that an old model is gone is no failure of the server.
        const as = { model: before.model, dimensions: before.dimensions };
        const [outcome] = await source.embed([before.queryPrefix + text], { purpose: 'query', signal, as });
        return outcome !== undefined && 'vector' in outcome
          ? toUnit(outcome.vector, before.dimensions)
          : null;
      } catch (error) {
        log.debug({ place: source.place, error: describe(error) }, 'the former model no longer answers');
        return null;
      }
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

/** A text without anything in it gets no vector, and nobody is asked for one. */
function isBlank(text: string): boolean {
  return text.trim() === '';
}

/** In a row; a single one may be chance. */
const FAILURES = 2;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 15_000;
/** A caller that gives up after SLOW_MS counts as a failure when nobody got an answer for SILENT_MS. */
const SLOW_MS = 500;
const SILENT_MS = 10_000;

/** `trial` is one small request; it throws when it fails. */
export function createBreaker(
  place: string,
  trial: (signal: AbortSignal) => Promise<void>,
  clock: Clock,
  log: Log,
) {
  const closing = new AbortController();
  let failures: { count: number; since: number; reason: string } | null = null;
  let open = false;
  let lastAnswer = clock.now();

  function succeeded(): void {
    lastAnswer = clock.now();
    if (open) log.info({ place }, 'embeddings work again');
    open = false;
    failures = null;
  }

  function failed(error: unknown): void {
    failures = {
      count: (failures?.count ?? 0) + 1,
      since: failures?.since ?? clock.now(),
      reason: describe(error),
    };
    if (open || failures.count < FAILURES || closing.signal.aborted) return;
    open = true;
    log.warn(
      { place, reason: failures.reason },
      'embeddings fail: search goes on by keywords, and what has no vector yet waits',
    );
    void tryUntilItWorks();
  }

  /** A server that is only busy answers others in the meantime, and that is no failure. */
  function gaveUpInSilence(begun: number): boolean {
    const now = clock.now();
    return now - begun >= SLOW_MS && now - lastAnswer >= SILENT_MS;
  }

  async function tryUntilItWorks(): Promise<void> {
    for (let pause = FIRST_PAUSE_MS; open; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
      await clock.sleep(pause, closing.signal);
      if (closing.signal.aborted || !open) return;
      await trial(closing.signal).then(succeeded, failed);
    }
  }

  return {
    /** Throws at once while open. What `work` throws counts as a failure, unless the caller has given up. */
    async pass<Result>(work: () => Promise<Result>, signal: AbortSignal): Promise<Result> {
      if (closing.signal.aborted) throw new Fault('embedding_unavailable', `${place} is not asked any more.`);
      if (open) {
        throw new Fault(
          'embedding_unavailable',
          `Embeddings are not available just now: ${failures?.reason ?? 'they fail'}`,
        );
      }
      const begun = clock.now();
      try {
        const result = await work();
        succeeded();
        return result;
      } catch (error) {
        if (closing.signal.aborted) throw error;
        if (!signal.aborted) failed(error);
        else if (gaveUpInSilence(begun)) failed(new Error(`${place} does not answer in time`));
        throw error;
      }
    },

    state: (): ReturnType<Embedder['state']> =>
      open && failures !== null
        ? { kind: 'failing', since: failures.since, reason: failures.reason }
        : { kind: 'ok' },

    close: () => closing.abort(),
  };
}
