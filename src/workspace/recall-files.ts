/** The workspace files that recall indexes: MEMORY.md and `memory/`. No link is followed. */
import { lstatSync } from 'node:fs';
import { realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { entriesBelow, within } from '../core/beneath.js';
import { describe } from '../core/errors.js';
import { isMissing, isWithin } from '../core/file-access.js';
import type { Log } from '../core/log.js';
import { isWorkspace, type RecallFile, type RecallFiles, stampOf, WORKSPACE } from '../core/recall.js';
import { documentAt } from './inside.js';

const MOST_FILES = 5_000;
const ROOT_FILES = /^MEMORY(?:\.imported(?:-\d{1,9})?)?\.md$/;
const NOTES = /^memory\/(?:[^/]+\/)*[^/.][^/]*\.md$/;

/** Adds the workspace's files to the personas', in a scope of their own. `folder`: `data/workspace`. */
export function withWorkspace(
  personas: RecallFiles,
  { folder, log }: { folder: string; log: Log },
): RecallFiles {
  /** The folder itself may be an operator's link. */
  const rootOf = () => realpath(folder);

  async function list(): Promise<RecallFile[]> {
    const files: RecallFile[] = [];
    const real = await rootOf();
    await within(real, [], async (root) => {
      for await (const { kind, path } of entriesBelow(root, ({ path }) => isWithin(path, 'memory'))) {
        if (kind !== 'file' || !isNote(path)) continue;
        if (files.length === MOST_FILES) break;
        const stamped = stampOf(lstatSync(join(real, path), { throwIfNoEntry: false }));
        if (stamped !== null) files.push({ file: path, ...stamped });
      }
    });
    return files.sort((one, other) => (one.file < other.file ? -1 : 1));
  }

  async function orNothing<Value>(what: Promise<Value>, otherwise: Value): Promise<Value> {
    return what.catch((error: unknown) => {
      if (!isMissing(error)) {
        log.warn({ folder, error: describe(error) }, 'workspace file cannot be read; recall skips it');
      }
      return otherwise;
    });
  }

  return {
    scopes: async () => [...(await personas.scopes()), WORKSPACE],
    list: (scope) => (isWorkspace(scope) ? orNothing(list(), []) : personas.list(scope)),
    async read(scope, file) {
      if (!isWorkspace(scope)) return personas.read(scope, file);
      if (!isNote(file)) return null;
      const read = rootOf().then((real) => documentAt(real, file));
      return (await orNothing(read, null))?.toString('utf8') ?? null;
    },
  };
}

function isNote(path: string): boolean {
  return ROOT_FILES.test(path) || NOTES.test(path);
}
