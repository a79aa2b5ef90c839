/**
 * Vectors for indexed chunks and for questions. Chunks get theirs in the background; failures are retried later. A
 * question waits a moment at most, and not at all while the embedder is failing.
 */
import { type Clock, OVER } from '../core/clock.js';
import { describe } from '../core/errors.js';
import type { Log } from '../core/log.js';
import type { Embedder, RecallFeed } from '../core/recall.js';
import { wordsBy } from '../core/transcript.js';
import type { WaitingChunk } from './index-port.js';
import type { RemoteIndex } from './index-thread.js';

const QUESTION_MS = 800;
const BATCH = 64;
/** More than models read; the beginning of a long text says what it is about. */
const LONGEST_TEXT = 2_000;

/** Those that there are in time: of the model, and of the former one as long as its vectors may answer. */
export async function questionVectors(
  embedder: Embedder,
  text: string,
  former: string | null,
  clock: Clock,
  log: Log,
  signal: AbortSignal,
): Promise<{ model: string; value: Float32Array }[]> {
  if (embedder.state().kind === 'failing' || text.trim() === '') return [];
  const over = new AbortController();
  const both = AbortSignal.any([signal, over.signal]);
  const made: { model: string; value: Float32Array }[] = [];
  const take = (model: string) => (value: Float32Array | null | undefined) => {
    if (value && isUsable(value)) made.push({ model, value });
  };
  const failed = (error: unknown) =>
    log.debug({ error: describe(error) }, 'a question got no vector; it is answered by keywords');
  const cut = text.slice(0, LONGEST_TEXT);
  const own = embedder
    .embed([cut], { purpose: 'query', signal: both })
    .then(([value]) => take(embedder.model)(value));
  const before = former === null ? null : embedder.embedAsBefore?.(former, cut, both).then(take(former));
  const all = Promise.all([own.catch(failed), before?.catch(failed)]);
  await Promise.race([all, clock.sleep(QUESTION_MS, both)]);
  over.abort(OVER);
  // The model's own goes first; of what comes later nobody hears.
  return [...made].sort((a, b) => Number(b.model === embedder.model) - Number(a.model === embedder.model));
}

/** Adds vectors until none is missing. Throws when the embedder fails. */
export async function addMissingVectors(
  embedder: Embedder,
  feed: RecallFeed,
  index: RemoteIndex,
  log: Log,
  signal: AbortSignal,
): Promise<void> {
  const { model } = embedder;
  while (!signal.aborted) {
    const chunks = await index.withoutVector(model, BATCH);
    if (chunks.length === 0) return;
    const texts = await textsOf(chunks, feed);
    const asked = texts.filter((text) => text !== null);
    const made = asked.length === 0 ? [] : await embedder.embed(asked, { purpose: 'document', signal });
    let next = 0;
    const vectors = chunks.map(({ chunk }, n) => {
      const value = texts[n] === null ? null : (made[next++] ?? null);
      return { chunk, value: value !== null && isUsable(value) ? value : null };
    });
    const without = vectors.filter(({ value }) => value === null).length - (chunks.length - asked.length);
    if (without > 0) {
      log.warn({ model, chunks: without }, 'the embedding server gave no usable vector for some texts');
    }
    await index.addVectors(model, vectors);
  }
}

/** The index holds no text of messages; it is read from the store. null: there is no text for a vector. */
async function textsOf(chunks: WaitingChunk[], feed: RecallFeed): Promise<(string | null)[]> {
  const keyOf = ({ scope }: WaitingChunk) => JSON.stringify([scope.chatId, scope.personaId]);
  const messageTexts = new Map<string, string>();
  for (const key of new Set(chunks.map(keyOf))) {
    const some = chunks.filter((chunk) => keyOf(chunk) === key);
    const ids = some.flatMap(({ messageId }) => messageId ?? []);
    const scope = some[0]?.scope;
    if (scope === undefined || ids.length === 0) continue;
    for (const message of await feed.visible(scope, ids)) {
      messageTexts.set(`${key}${message.id}`, `${wordsBy(message)}: ${message.text}`);
    }
  }
  return chunks.map((chunk) => {
    const { author, messageId } = chunk;
    const line = author === '' || chunk.text === null ? chunk.text : `${author}: ${chunk.text}`;
    const text = line ?? messageTexts.get(`${keyOf(chunk)}${messageId}`);
    return text === undefined || text.trim() === '' ? null : text.slice(0, LONGEST_TEXT);
  });
}

function isUsable(vector: Float32Array): boolean {
  return vector.length > 0 && vector.every(Number.isFinite);
}
