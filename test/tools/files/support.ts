/** Folders, a context and a caller for the tools that work in a persona's folder, and the compiled search thread. */
import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { onTestFinished } from 'vitest';
import { ZodType } from 'zod';
import type { Authorisation } from '../../../src/core/authorisation.js';
import type { Tool, ToolContext, ToolResult } from '../../../src/core/tool.js';
import type { ToolFolders } from '../../../src/tools/files/roots.js';
import { askerWho } from '../../harness/asker.js';
import { foldersIn } from '../../harness/folders.js';

export const HERE = 'telegram_1';
export const WORK = `data/work/${HERE}/luna`;
export const MEDIA = `data/media/${HERE}`;

export const CALLER: Authorisation = {
  ...{ chatId: HERE, personaId: 'luna', senderId: 'telegram_9', channel: 'telegram', controlChats: [] },
  asker: askerWho(),
};

export interface Home {
  home: string;
  folders: ToolFolders;
  /** What was logged, with its level. */
  logged: string[];
  put(file: string, content?: string | Uint8Array): Promise<string>;
  call<P>(tool: Tool<P>, parameters: object, changes?: Partial<ToolContext>): Promise<ToolResult>;
}

export async function makeHome(): Promise<Home> {
  const home = await realpath(await mkdtemp(join(tmpdir(), 'coterie-files-')));
  onTestFinished(() => rm(home, { recursive: true, force: true }));
  const logged: string[] = [];
  const say = (level: string) => (fields: object, message: string) => {
    logged.push(`${level} ${message} ${JSON.stringify(fields)}`);
  };
  const context: ToolContext = {
    authorisation: CALLER,
    room: HERE,
    turnId: 'turn-7',
    callId: 'call-1',
    signal: new AbortController().signal,
    now: 0,
    timezone: 'UTC',
    log: { debug: say('debug'), info: say('info'), warn: say('warn'), error: say('error') },
    cause: { kind: 'turn', personaId: 'luna', turnId: 'turn-7' },
    seen: new Map(),
  };
  return {
    home,
    folders: foldersIn(join(home, 'data'), {
      hidden: ['data', 'groups', 'config.yaml'].map((each) => join(home, each)),
    }),
    logged,
    async put(file, content = file) {
      const path = join(home, file);
      await mkdir(dirname(path), { recursive: true });
      await writeFile(path, content);
      return path;
    },
    async call(tool, parameters, changes = {}) {
      if (!(tool.parameters instanceof ZodType)) throw new Error('the tool has no zod schema');
      const given = tool.parameters.parse(parameters);
      const result = await tool.execute(given, { ...context, ...changes });
      if ('waitsFor' in result) throw new Error('the tool waits for something');
      return result;
    },
  };
}

/** For `beforeAll`: the thread of `glob` and `grep`. */
export async function compileSearch(): Promise<{ entry: URL; remove(): Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'search-worker-'));
  await build({
    entryPoints: [fileURLToPath(new URL('../../../src/tools/files/search-worker.ts', import.meta.url))],
    outdir: folder,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    banner: {
      js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);",
    },
  });
  await writeFile(join(folder, 'package.json'), '{"type":"module"}');
  return {
    entry: pathToFileURL(join(folder, 'search-worker.js')),
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}
