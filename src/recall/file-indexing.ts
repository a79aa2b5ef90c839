/**
 * Keeps the index up to date with the memory files. Changed files of the asker's scope are indexed before a search if
 * they are small; the rest is indexed in the background, and until then the old text is found.
 */
import type { RecallFile, RecallFiles, Scope } from '../core/recall.js';
import type { RemoteIndex } from './index-thread.js';

const SMALL_BYTES = 256 * 1024;
/** The most that is indexed before a search, even if each file is small. */
const AT_ONCE_BYTES = 512 * 1024;
const AT_ONCE_FILES = 40;
const MOST_KNOWN_SCOPES = 2_000;

export function createFileIndexing(files: RecallFiles, index: RemoteIndex) {
  /** By scope: the indexed files and their stamps. */
  const known = new Map<string, Map<string, string>>();
  const refreshing = new Map<string, Promise<boolean>>();
  const waiting = new Map<string, { scope: Scope; file: RecallFile }>();
  let allWaits = true;
  let busy = false;

  async function indexedFiles(scope: Scope): Promise<Map<string, string>> {
    const key = keyOf(scope);
    const before = known.get(key);
    if (before !== undefined) return before;
    const read = new Map((await index.files(scope)).map(({ file, stamp }) => [file, stamp]));
    for (const oldest of known.keys()) {
      if (known.size < MOST_KNOWN_SCOPES) break;
      known.delete(oldest);
    }
    known.set(key, read);
    return read;
  }

  /** Returns the files that have changed, and drops those that no longer exist. */
  async function changedFiles(scope: Scope): Promise<RecallFile[]> {
    const [there, indexed] = [await files.list(scope), await indexedFiles(scope)];
    const names = new Set(there.map(({ file }) => file));
    for (const file of [...indexed.keys()]) {
      if (names.has(file)) continue;
      await index.dropFile(scope, file);
      indexed.delete(file);
    }
    return there.filter(({ file, stamp }) => indexed.get(file) !== stamp);
  }

  async function indexFile(scope: Scope, { file, stamp }: RecallFile): Promise<void> {
    waiting.delete(keyOf(scope, file));
    const text = await files.read(scope, file);
    if (text === null) return;
    // `known` may be cleared meanwhile; then the file will be compared again and must not be recorded here.
    const here = known.get(keyOf(scope));
    if (await index.addFile({ scope, file, stamp, text })) here?.set(file, stamp);
  }

  async function refreshNow(scope: Scope): Promise<boolean> {
    // For files named by date: newest first.
    const changed = (await changedFiles(scope)).sort(
      (a, b) => order(b) - order(a) || (a.file < b.file ? 1 : -1),
    );
    let bytes = 0;
    for (const [n, file] of changed.entries()) {
      bytes += file.bytes;
      if (file.bytes <= SMALL_BYTES && bytes <= AT_ONCE_BYTES && n < AT_ONCE_FILES)
        await indexFile(scope, file);
      else waiting.set(keyOf(scope, file.file), { scope, file });
    }
    return changed.length > 0;
  }

  return {
    /** Before a search: indexes small changed files and queues the rest. True if anything had changed. */
    refresh(scope: Scope): Promise<boolean> {
      const key = keyOf(scope);
      const running = refreshing.get(key) ?? refreshNow(scope).finally(() => refreshing.delete(key));
      refreshing.set(key, running);
      return running;
    },

    /** All files of all scopes have to be compared again. */
    again(): void {
      known.clear();
      allWaits = true;
    },

    /** Nothing has changed since it was indexed. */
    nothingMissing(): void {
      allWaits = false;
    },

    forget(chatId: string): void {
      for (const key of known.keys()) if (JSON.parse(key)[0] === chatId) known.delete(key);
    },

    waiting: () => waiting.size + (busy ? 1 : 0) + (allWaits ? 1 : 0),

    async catchUp(signal: AbortSignal): Promise<void> {
      while (!signal.aborted && (allWaits || waiting.size > 0)) {
        const all = allWaits;
        allWaits = false;
        busy = true;
        try {
          for (const scope of all ? await files.scopes() : []) {
            if (signal.aborted) return;
            for (const file of await changedFiles(scope)) {
              waiting.set(keyOf(scope, file.file), { scope, file });
            }
          }
          for (const { scope, file } of [...waiting.values()]) {
            if (!signal.aborted) await indexFile(scope, file);
          }
        } catch (error) {
          allWaits ||= all;
          throw error;
        } finally {
          busy = false;
        }
      }
    },
  };
}

/** MEMORY.md before daily logs before archives. */
function order({ file }: RecallFile): number {
  return file.endsWith('MEMORY.md') ? 2 : file.startsWith('memory/') ? 1 : 0;
}

function keyOf({ chatId, personaId }: Scope, file = ''): string {
  return JSON.stringify([chatId, personaId, file]);
}
