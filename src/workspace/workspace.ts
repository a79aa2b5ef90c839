/** The workspace on disk, `data/workspace`. Writes use memory's updater, so that no change is lost. */
import { createHash } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Exclusive } from '../core/concurrency.js';
import { sizeInWords } from '../core/cut.js';
import { daysOf } from '../core/daily-log.js';
import { describe, Fault } from '../core/errors.js';
import type { Log } from '../core/log.js';
import type { MemoryBudgets } from '../core/memory.js';
import { type Origins, originOf, workspacePath } from '../core/origin.js';
import {
  MOST_DOCUMENT_BYTES,
  type Workspace,
  type WorkspaceFile,
  type WorkspaceShown,
} from '../core/workspace.js';
import { fileUpdater } from '../core/write-whole.js';
import { documentAt, ownFolder, realPathIn } from './inside.js';
import { createShownFiles, type ShownFiles } from './shown.js';

export interface WorkspaceOptions {
  /** `data/workspace` */
  folder: string;
  budgets: MemoryBudgets;
  exclusive: Exclusive;
  origins: Origins;
  log: Log;
}

const FILES: Record<WorkspaceFile, string> = { plan: 'task.md', memory: 'MEMORY.md' };
const DAYS = 'memory';

/** Seed 003's files, in the order of the prompt. */
const BOOTSTRAP = ['AGENTS.md', 'SOUL.md', 'IDENTITY.md', 'USER.md', 'TOOLS.md'];
/** Characters in a prompt: of each file, of all together, and of the plan. */
const FILE_CHARS = 6_000;
/** AGENTS.md is usually the longest file, and governs the workspace. */
const AGENTS_CHARS = 12_000;
const FILES_CHARS = 22_000;
const PLAN_CHARS = 8_000;

const NO_FILE = 'none';

export function createWorkspace({ folder, budgets, exclusive, origins, log }: WorkspaceOptions): Workspace {
  const update = fileUpdater(exclusive);
  const filesIn = createShownFiles(budgets, log);

  async function made(): Promise<string> {
    const root = await ownFolder(folder);
    await mkdir(join(root, DAYS), { recursive: true, mode: 0o700 }).catch((error: unknown) => {
      // Reading it reports the problem; the rest works without it.
      log.warn(
        { path: join(root, DAYS), error: describe(error) },
        'the workspace has no folder for daily logs',
      );
    });
    return root;
  }

  return {
    folder: made,

    async read(file) {
      const bytes = await documentAt(await made(), FILES[file]);
      return { content: bytes?.toString('utf8') ?? '', etag: etagOf(bytes) };
    },

    async write(file, content, ifMatch) {
      const bytes = Buffer.from(content, 'utf8');
      if (bytes.length > MOST_DOCUMENT_BYTES) {
        const most = sizeInWords(MOST_DOCUMENT_BYTES);
        throw new Fault(
          'memory_unavailable',
          `${FILES[file]} may not be larger than ${most}; it was not written`,
        );
      }
      const path = await realPathIn(await made(), FILES[file]);
      let stale: string | null = null;
      await update(path, (current) => {
        const etag = etagOf(current);
        stale = ifMatch !== null && ifMatch !== etag ? etag : null;
        return stale === null ? bytes : null;
      });
      return stale === null ? { kind: 'written', etag: etagOf(bytes) } : { kind: 'stale', etag: stale };
    },

    async shownFiles() {
      const files = await (await filesIn(folder)).all([...BOOTSTRAP, FILES.memory, FILES.plan], DAYS);
      return new Map([...files].map(([file, text]) => [workspacePath(file), text]));
    },

    async shown({ today, memoryChars }) {
      const files = await filesIn(folder);
      const { longTermMaxChars } = budgets;
      const [bootstrap, memory, dailyLog, plan] = await Promise.all([
        bootstrapIn(files),
        files.text(FILES.memory, memoryChars, ['memory-max-chars', longTermMaxChars]),
        files.days(DAYS, today, { perDay: 'daily-per-day-max-chars', all: 'daily-max-chars' }),
        files.text(FILES.plan, PLAN_CHARS, ['plan-max-chars', PLAN_CHARS]),
      ]);
      const shown = [
        ...bootstrap,
        { file: FILES.memory, text: memory },
        { file: FILES.plan, text: plan },
        ...daysOf(dailyLog).map(({ date, text }) => ({ file: `${DAYS}/${date}.md`, text })),
      ];
      const found = shown.map(({ file, text }) => origins.originIn(workspacePath(file), () => text));
      const origin = originOf((await Promise.all(found)).map((each) => ({ origin: each })));
      return { bootstrap, memory, dailyLog, plan, origin };
    },
  };
}

async function bootstrapIn(files: ShownFiles): Promise<WorkspaceShown['bootstrap']> {
  const shown: WorkspaceShown['bootstrap'] = [];
  let left = FILES_CHARS;
  for (const file of BOOTSTRAP) {
    const most = file === 'AGENTS.md' ? AGENTS_CHARS : FILE_CHARS;
    const own = left >= most;
    const text = own
      ? await files.text(file, most, ['workspace-file-max-chars', most])
      : await files.text(file, left, ['workspace-files-max-chars', FILES_CHARS]);
    left = Math.max(0, left - text.length);
    if (text !== '') shown.push({ file, text });
  }
  return shown;
}

function etagOf(bytes: Buffer | null): string {
  return bytes === null ? NO_FILE : createHash('sha256').update(bytes).digest('hex').slice(0, 32);
}
