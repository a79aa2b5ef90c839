/** Embedders for the recall benches: a real server and two artificial ones. */

import { systemClock } from '../src/core/clock.js';
import type { Embedder } from '../src/core/recall.js';
import { createHttpEmbedder } from '../src/embedding/server.js';
import { straight } from '../test/harness/straight.js';

const WIDTH = 256;

/** The gateway's own client, with the prefixes that the model needs. */
export function realEmbedder(baseUrl: string, model: string, apiKey: string | null = null): Embedder {
  const log = { debug() {}, info() {}, warn: console.error, error: console.error };
  return createHttpEmbedder({
    baseUrl,
    apiKey,
    model,
    timeoutSeconds: 60,
    outward: straight,
    clock: systemClock,
    log,
  });
}

/** Similarity by shared trigrams: a weak model in any language. */
export function spellingEmbedder(): Embedder {
  return {
    ...port('spelling', () => WIDTH),
    embed: async (texts) =>
      texts.map((text) => {
        const values = new Array<number>(WIDTH).fill(0.01);
        const letters = ` ${text.toLowerCase().replaceAll(/[^\p{L}\p{N}]+/gu, ' ')} `;
        for (let n = 0; n + 3 <= letters.length; n++) {
          const hash = hashOf(letters.slice(n, n + 3));
          values[hash % WIDTH] = (values[hash % WIDTH] ?? 0) + (hash & 1024 ? 1 : -1);
        }
        return unit(values);
      }),
  };
}

/** A useless model: random vectors for all texts. */
export function noiseEmbedder(): Embedder {
  return {
    ...port('noise', () => WIDTH),
    embed: async (texts) =>
      texts.map((text) => {
        let state = hashOf(text);
        return unit(
          Array.from({ length: WIDTH }, () => {
            state = Math.imul(state ^ (state >>> 15), 2246822507) + 0x9e3779b9;
            return (state >>> 0) / 2 ** 31 - 1;
          }),
        );
      }),
  };
}

function port(model: string, dimensions: () => number | null) {
  return { model, dimensions, state: () => ({ kind: 'ok' as const }), close: async () => {} };
}

function hashOf(text: string): number {
  let hash = 2166136261;
  for (let n = 0; n < text.length; n++) hash = Math.imul(hash ^ text.charCodeAt(n), 16777619) >>> 0;
  return hash;
}

function unit(values: number[]): Float32Array {
  const length = Math.hypot(...values) || 1;
  return Float32Array.from(values, (value) => value / length);
}
