/**
 * Vectors for what is indexed and for what is asked. Pieces get theirs in the background; what fails waits and is
 * made up for. A question waits a moment at most, and not at all while the embedder is failing.
 */
import type { Clock } from '../core/clock.js';
import { OVER } from '../core/clock.js';
import type { Embedder } from '../core/embedder.js';
import { describe } from '../core/errors.js';
import type { Log } from '../core/log.js';
import type { RecallFeed } from '../core/recall.js';
import { authorName } from './messages.js';
import type { Index } from './thread.js';
import type { WaitingPiece } from './verbs.js';

export interface Embedding {
  /** null when there is none in time. */
  question(text: string, signal: AbortSignal): Promise<{ model: string; value: Float32Array } | null>;
  /** Makes vectors until none is missing. Throws when the embedder fails. */
  catchUp(signal: AbortSignal): Promise<void>;
}

const QUESTION_MS = 800;
const BATCH = 64;
/** More than models read; the beginning of a long text says what it is about. */
const LONGEST_TEXT = 2_000;

export function createEmbedding({
  embedder,
  feed,
  index,
  clock,
  log,
}: {
  embedder: Embedder;
  feed: RecallFeed;
  index: Index;
  clock: Clock;
  log: Log;
}): Embedding {
  async function textsOf(pieces: WaitingPiece[]): Promise<(string | null)[]> {
    const messages = new Map<WaitingPiece, string>();
    const scopes = grouped(pieces);
    for (const some of scopes.values()) {
      const scope = some[0]?.scope;
      const ids = some.flatMap(({ messageId }) => (messageId === null ? [] : [messageId]));
      if (scope === undefined || ids.length === 0) continue;
      const seen = new Map((await feed.visible(scope, ids)).map((message) => [message.id, message]));
      for (const piece of some) {
        const message = piece.messageId === null ? undefined : seen.get(piece.messageId);
        if (message !== undefined) messages.set(piece, `${authorName(message)}: ${message.text}`);
      }
    }
    return pieces.map((piece) => {
      const text = piece.text === null ? messages.get(piece) : said(piece.author, piece.text);
      return text === undefined || text.trim() === '' ? null : text.slice(0, LONGEST_TEXT);
    });
  }

  return {
    async question(text, signal) {
      if (embedder.state().kind === 'failing' || text.trim() === '') return null;
      const over = new AbortController();
      const both = AbortSignal.any([signal, over.signal]);
      const late = clock.sleep(QUESTION_MS, both).then(() => null);
      const asked = embedder
        .embed([text.slice(0, LONGEST_TEXT)], { purpose: 'query', signal: both })
        .then(([value]) => (value && isUsable(value) ? { model: embedder.model, value } : null))
        .catch((error: unknown) => {
          log.debug({ error: describe(error) }, 'a question got no vector: keywords answer it');
          return null;
        });
      const answer = await Promise.race([asked, late]);
      over.abort(OVER);
      return answer;
    },

    async catchUp(signal) {
      const { model } = embedder;
      while (!signal.aborted) {
        const pieces = await index.withoutVector(model, BATCH);
        if (pieces.length === 0) return;
        const texts = await textsOf(pieces);
        const asked = texts.filter((text) => text !== null);
        const made = asked.length === 0 ? [] : await embedder.embed(asked, { purpose: 'document', signal });
        let next = 0;
        const vectors = pieces.map(({ piece }, n) => {
          const value = texts[n] === null ? null : (made[next++] ?? null);
          return { piece, value: value !== null && isUsable(value) ? value : null };
        });
        const without = vectors.filter(({ value }) => value === null).length - (pieces.length - asked.length);
        if (without > 0)
          log.warn({ model, pieces: without }, 'the embedding server gave no usable vector for some texts');
        await index.addVectors(model, vectors);
      }
    },
  };
}

function grouped(pieces: WaitingPiece[]): Map<string, WaitingPiece[]> {
  const groups = new Map<string, WaitingPiece[]>();
  for (const piece of pieces) {
    const key = JSON.stringify([piece.scope.chatId, piece.scope.personaId]);
    groups.set(key, [...(groups.get(key) ?? []), piece]);
  }
  return groups;
}

function said(author: string, text: string): string {
  return author === '' ? text : `${author}: ${text}`;
}

function isUsable(vector: Float32Array): boolean {
  return vector.length > 0 && vector.every(Number.isFinite);
}
