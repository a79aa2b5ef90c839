/** What becomes of one text, between whoever makes vectors and the embedder that hands them out. */

/** The vector as it was made, or why there is none: then it is the text's own fault, not the server's. */
export type Outcome = { vector: number[] } | { refused: string };

/** Makes vectors: an embedding server, or workers behind a queue. */
export interface VectorSource {
  /** Where it is, as an operator may be told. */
  readonly place: string;
  /** An outcome for each text, in order; none of them is blank. Throws Fault `embedding_unavailable`. */
  embed(texts: string[], ask: { purpose: 'query' | 'document'; signal: AbortSignal }): Promise<Outcome[]>;
  close(): Promise<void>;
}

/** A vector that something can be compared with: it has numbers, all finite, and not all zero. */
export function asVector(value: unknown): number[] | null {
  if (!Array.isArray(value) || value.length === 0) return null;
  let somewhere = false;
  for (const number of value) {
    if (typeof number !== 'number' || !Number.isFinite(number)) return null;
    if (number !== 0) somewhere = true;
  }
  return somewhere ? value : null;
}

/** Of length 1, so that the product of two says how alike they are. Scaled first: squares may overflow. */
export function toUnit(vector: number[]): Float32Array {
  let largest = 0;
  for (const number of vector) largest = Math.max(largest, Math.abs(number));
  let squares = 0;
  for (const number of vector) squares += (number / largest) ** 2;
  const scale = 1 / Math.sqrt(squares);
  const unit = new Float32Array(vector.length);
  for (let n = 0; n < vector.length; n++) unit[n] = ((vector[n] ?? 0) / largest) * scale;
  return unit;
}
