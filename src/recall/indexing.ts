/**
 * Keeps the index up to date with messages heard, memory files, and vectors. After a start, and if the index was lost, everything
 * is compared; later only rooms with new messages and changed files. The scope of a search goes first.
 */
import { setImmediate } from 'node:timers/promises';
import { type Clock, OVER } from '../core/clock.js';
import { describe } from '../core/errors.js';
import { type RoomId, roomParts } from '../core/ids.js';
import type { Log } from '../core/log.js';
import type { Embedder, HeardView, RecallFeed, RecallFile, RecallFiles, Scope } from '../core/recall.js';
import { backoff } from '../core/retry.js';
import { type HeardMessage, wordsBy } from '../core/transcript.js';
import type { IndexedView } from './chunks.js';
import type { RemoteIndex } from './index-thread.js';
import type { WaitingChunk } from './vectors.js';

/** Batch size for the store and the index, small enough to block neither thread. */
const PAGE = 200;
/** Page size for the views of a room, which usually has one. */
const FEW = 4;
const SMALL_BYTES = 256 * 1024;
/** Limits for files indexed before a search, even if each is small. */
const AT_ONCE_BYTES = 512 * 1024;
const AT_ONCE_FILES = 40;

export class Indexer {
  /** Pending work: everything, or these rooms, in which something was heard, and files. */
  private allWaits = true;
  readonly rooms = new Set<RoomId>();
  private readonly changed = new Map<string, { scope: Scope; file: RecallFile }>();
  private comparing = false;
  private busy = false;
  /** Refreshes in progress, which further searches join. */
  private readonly refreshing = new Map<string, Promise<boolean>>();

  constructor(
    private readonly feed: RecallFeed,
    private readonly files: RecallFiles,
    private readonly index: RemoteIndex,
  ) {}

  private async compareAll(signal: AbortSignal): Promise<void> {
    const views: HeardView[] = [];
    for (let page: HeardView[] = []; !signal.aborted; ) {
      page = await this.feed.heardViews(page.at(-1) ?? null, PAGE);
      if (page.length === 0) break;
      await this.indexViews(page, signal);
      views.push(...page);
      await setImmediate();
    }
    const scopes = await this.files.scopes();
    if (signal.aborted) return;
    const known = views.map((view) => ({ ...scopeOf(view), room: view.room }));
    await this.index.ask('keepOnly', known, scopes);
    for (const scope of scopes) {
      if (signal.aborted) return;
      for (const file of await this.changedFiles(scope))
        this.changed.set(keyOf(scope, file.file), { scope, file });
    }
  }

  /** Views in the store's order, while their rooms match. */
  private async viewsFrom(room: string, belongs: (room: RoomId) => boolean): Promise<HeardView[]> {
    const found: HeardView[] = [];
    for (;;) {
      const page = await this.feed.heardViews(found.at(-1) ?? { room, personaId: '' }, FEW);
      const views = page.filter((view) => belongs(view.room));
      found.push(...views);
      if (views.length < FEW) return found;
    }
  }

  private async indexRoom(room: RoomId, signal: AbortSignal): Promise<void> {
    await this.indexViews(await this.viewsFrom(room, (other) => other === room), signal);
  }

  private async indexViews(views: HeardView[], signal: AbortSignal, again = true): Promise<void> {
    const asked = views.map((view) => ({ ...view, scope: scopeOf(view) }));
    const known = await this.index.ask('views', asked);
    for (const [n, view] of views.entries()) {
      const position = known[n];
      if (position === undefined || signal.aborted) return;
      const lost = this.comparing && (await this.isLost(view, position));
      if (lost) await this.index.ask('dropView', scopeOf(view), view.room);
      else if (await this.indexView(view, position, signal)) continue;
      // The view was reset, or another process was faster. After a second failure, the next message triggers it again.
      if (again) await this.indexViews([view], signal, false);
    }
  }

  /** A new store restarts its message ids, which makes the indexed ones void. */
  private async isLost(view: HeardView, { newest }: IndexedView): Promise<boolean> {
    if (newest === null) return false;
    const [message] = await this.feed.visible(scopeOf(view), [newest.messageId]);
    return message?.room !== view.room || message.sentAt !== newest.at;
  }

  /** False: the index has moved on meanwhile. */
  private async indexView(view: HeardView, position: IndexedView, signal: AbortSignal): Promise<boolean> {
    const { room, personaId, resetAt } = view;
    for (const kind of ['addressed', 'overheard'] as const) {
      const addressed = kind === 'addressed';
      let after = position[kind];
      while (!signal.aborted) {
        const heard = await this.feed.heardSince({ room, personaId, addressed, after, most: PAGE });
        const last = heard.at(-1);
        if (last === undefined) break;
        const page = { scope: scopeOf(view), room, resetAt, addressed, after, messages: heard.map(indexed) };
        if (!(await this.index.ask('addMessages', page))) return false;
        if (heard.length < PAGE) break;
        after = last.position;
      }
    }
    return true;
  }

  /** Also drops files that no longer exist. */
  private async changedFiles(scope: Scope): Promise<RecallFile[]> {
    const there = await this.files.list(scope);
    const known = new Map((await this.index.ask('files', scope)).map(({ file, stamp }) => [file, stamp]));
    const names = new Set(there.map(({ file }) => file));
    for (const file of known.keys()) if (!names.has(file)) await this.index.ask('dropFile', scope, file);
    return there.filter(({ file, stamp }) => known.get(file) !== stamp);
  }

  private async indexFile(scope: Scope, { file, stamp }: RecallFile): Promise<void> {
    this.changed.delete(keyOf(scope, file));
    const text = await this.files.read(scope, file);
    if (text !== null) await this.index.ask('addFile', scope, file, stamp, text);
  }

  again(): void {
    this.allWaits = true;
  }

  private joined(key: string, refresh: () => Promise<boolean>): Promise<boolean> {
    const running = this.refreshing.get(key) ?? refresh().finally(() => this.refreshing.delete(key));
    this.refreshing.set(key, running);
    return running;
  }

  /** Before a search: indexes pending messages of its chat. */
  async refreshMessages({ chatId }: Scope, signal: AbortSignal): Promise<void> {
    if (this.allWaits || this.comparing) {
      await this.joined(chatId, async () => {
        await this.indexRoom(chatId, signal);
        const threads = `${chatId}/`;
        await this.indexViews(await this.viewsFrom(threads, (room) => room.startsWith(threads)), signal);
        return true;
      });
      return;
    }
    for (const room of [...this.rooms].filter((each) => roomParts(each).chatId === chatId)) {
      this.rooms.delete(room);
      await this.indexRoom(room, signal).catch((error) => {
        this.rooms.add(room);
        throw error;
      });
    }
  }

  /** Before a search: indexes small changed files and queues the rest. True if anything had changed. */
  refreshFiles(scope: Scope): Promise<boolean> {
    return this.joined(keyOf(scope), async () => {
      // Files named by date: newest first.
      const found = (await this.changedFiles(scope)).sort(
        (a, b) => order(b) - order(a) || (a.file < b.file ? 1 : -1),
      );
      let bytes = 0;
      for (const [n, file] of found.entries()) {
        bytes += file.bytes;
        const isSmall = file.bytes <= SMALL_BYTES && bytes <= AT_ONCE_BYTES && n < AT_ONCE_FILES;
        if (isSmall) await this.indexFile(scope, file);
        else this.changed.set(keyOf(scope, file.file), { scope, file });
      }
      return found.length > 0;
    });
  }

  /** Size of the pending work, as far as known. */
  waiting() {
    return this.rooms.size + this.changed.size + (this.busy ? 1 : 0) + (this.allWaits ? 1 : 0);
  }

  /** Does all pending work. Rejects with errors of the store and the index. */
  async catchUp(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && this.waiting() > 0) {
      const all = this.allWaits;
      const [room] = this.rooms;
      this.busy = true;
      try {
        if (all) {
          this.comparing = true;
          this.allWaits = false;
          await this.compareAll(signal);
        } else if (room !== undefined) {
          this.rooms.delete(room);
          await this.indexRoom(room, signal);
        } else {
          for (const { scope, file } of [...this.changed.values()]) {
            if (!signal.aborted) await this.indexFile(scope, file);
          }
        }
      } catch (error) {
        this.allWaits ||= all;
        if (!all && room !== undefined) this.rooms.add(room);
        throw error;
      } finally {
        this.comparing = false;
        this.busy = false;
      }
    }
  }
}

/** MEMORY.md before daily logs before archives. */
function order({ file }: RecallFile): number {
  return file.endsWith('MEMORY.md') ? 2 : file.startsWith('memory/') ? 1 : 0;
}

function keyOf({ chatId, personaId }: Scope, file = ''): string {
  return JSON.stringify([chatId, personaId, file]);
}

function scopeOf(view: HeardView): Scope {
  return { chatId: roomParts(view.room).chatId, personaId: view.personaId };
}

function indexed(message: HeardMessage) {
  const { id, sentAt: at, text, position } = message;
  return { id, at, text, heardAfter: position.heardAfter, author: wordsBy(message) };
}

const QUESTION_MS = 800;
const BATCH = 64;
/** In characters; more than models read, and the beginning tells the subject. */
const LONGEST_TEXT = 2_000;

/** The question's vectors that arrive in time: of the model, and of the former one while it is used. */
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
  // The model's own first. Copied, because later ones are ignored.
  return [...made].sort((a, b) => Number(b.model === embedder.model) - Number(a.model === embedder.model));
}

/** Adds vectors until none is missing. Throws if the embedder fails. */
export async function addMissingVectors(
  embedder: Embedder,
  feed: RecallFeed,
  index: RemoteIndex,
  log: Log,
  signal: AbortSignal,
): Promise<void> {
  const { model } = embedder;
  while (!signal.aborted) {
    const chunks = await index.ask('withoutVector', model, BATCH);
    if (chunks.length === 0) return;
    const texts = await textsOf(chunks, feed);
    const asked = chunks.filter((_, n) => texts[n] !== null);
    const vectors = await embedder.embed(
      texts.filter((text) => text !== null),
      { purpose: 'document', signal },
    );
    const usable = new Map(
      asked.flatMap(({ chunk }, n) => {
        const vector = vectors[n];
        return vector && isUsable(vector) ? [[chunk, vector] as const] : [];
      }),
    );
    if (usable.size < asked.length) {
      const fields = { model, chunks: asked.length - usable.size };
      log.warn(fields, 'the embedding server gave no usable vector for some texts');
    }
    const made = chunks.map(({ chunk }) => ({ chunk, value: usable.get(chunk) ?? null }));
    await index.ask('addVectors', model, made);
  }
}

/** Texts of messages come from the store, not the index. null: no text to embed. */
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

const RETRY_MS = 5_000;
const LONGEST_RETRY_MS = 30_000;

/** Runs `work` each time it is woken, and retries failures. `restMs`: the pause after a run, by its duration in ms. */
export function createBackground(
  what: string,
  clock: Clock,
  log: Log,
  restMs: (tookMs: number) => number,
  work: (signal: AbortSignal) => Promise<void>,
) {
  const stopped = new AbortController();
  let running: Promise<void> | null = null;
  let isWoken = false;
  let ring = () => {};

  async function run(): Promise<void> {
    let failures = 0;
    while (!stopped.signal.aborted) {
      try {
        if (!isWoken && failures === 0) await new Promise<void>((resolve) => (ring = resolve));
        if (stopped.signal.aborted) return;
        isWoken = false;
        const began = clock.now();
        await work(stopped.signal);
        failures = 0;
        // Collects a burst into one run.
        await clock.sleep(restMs(Math.max(0, clock.now() - began)), stopped.signal);
      } catch (error) {
        if (stopped.signal.aborted) return;
        if (failures++ === 0) log.warn({ error: describe(error) }, `${what} failed and will be retried`);
        await clock.sleep(backoff(failures, RETRY_MS, LONGEST_RETRY_MS), stopped.signal);
      }
    }
  }

  return {
    start(): void {
      running ??= run();
    },
    /** Requests a run; if one is in progress, another follows. */
    wake(): void {
      isWoken = true;
      ring();
    },
    async stop(): Promise<void> {
      stopped.abort(OVER);
      ring();
      await running;
    },
  };
}
