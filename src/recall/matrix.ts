/**
 * The vectors of one scope and model in memory, a byte for each number, and their comparison with a question's. A
 * vector keeps its direction only, so each is scaled to its own largest number.
 */

/** Compared between two looks at the clock. */
const BLOCK = 2_048;

export interface Matrix {
  /** The chunks' numbers in the scope, in no particular order. */
  chunks: Float64Array;
  codes: Int8Array;
  /** Of the codes of each. */
  norms: Float32Array;
  count: number;
  width: number;
  /** All vectors up to this chunk were read; Infinity: all there are. */
  readTo: number;
}

export function emptyMatrix(): Matrix {
  const nothing = new ArrayBuffer(0);
  return {
    ...{ chunks: new Float64Array(nothing), codes: new Int8Array(nothing), norms: new Float32Array(nothing) },
    ...{ count: 0, width: 0, readTo: -1 },
  };
}

/** One byte a number. */
export function quantised(vector: Float32Array): Int8Array {
  let largest = 0;
  for (const value of vector) largest = Math.max(largest, Math.abs(value));
  const scale = largest > 0 ? 127 / largest : 0;
  return Int8Array.from(vector, (value) => Math.round(value * scale));
}

/** A vector of another length than the others is passed over. */
export function append(matrix: Matrix, chunk: number, codes: Int8Array): void {
  if (matrix.width === 0) matrix.width = codes.length;
  if (codes.length !== matrix.width || codes.length === 0) return;
  if (matrix.count === matrix.chunks.length) grow(matrix, Math.max(64, matrix.count * 2));
  let squares = 0;
  for (const code of codes) squares += code * code;
  matrix.chunks[matrix.count] = chunk;
  matrix.norms[matrix.count] = Math.sqrt(squares) || 1;
  matrix.codes.set(codes, matrix.count * matrix.width);
  matrix.count++;
}

/** Room for so many, at once. */
export function grow(matrix: Matrix, capacity: number): void {
  const { chunks, codes, norms, width } = matrix;
  if (capacity <= chunks.length) return;
  matrix.chunks = new Float64Array(capacity);
  matrix.chunks.set(chunks);
  matrix.norms = new Float32Array(capacity);
  matrix.norms.set(norms);
  matrix.codes = new Int8Array(capacity * width);
  matrix.codes.set(codes);
}

/** Calls `visit` with each chunk's cosine similarity; false: it took too long. */
export function compare(
  { chunks, codes, norms, count, width }: Matrix,
  vector: Float32Array,
  isLate: () => boolean,
  visit: (chunk: number, similarity: number) => void,
): boolean {
  if (vector.length !== width) return true;
  // In whole numbers, which are quicker.
  const wanted = quantised(vector);
  let squares = 0;
  for (const code of wanted) squares += code * code;
  const norm = Math.sqrt(squares) || 1;
  for (let row = 0; row < count; row++) {
    if (row % BLOCK === 0 && isLate()) return false;
    const from = row * width;
    let sum = 0;
    for (let n = 0; n < width; n++) sum += (codes[from + n] as number) * (wanted[n] as number);
    visit(chunks[row] ?? -1, sum / (norm * (norms[row] ?? 1)));
  }
  return true;
}
