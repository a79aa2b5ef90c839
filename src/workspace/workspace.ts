/** The workspace on disk, `data/workspace`. Writes use memory's updater, so that no change is lost. */
import { createHash } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { sizeInWords } from '../core/cut.js';
import { daysOf } from '../core/daily-log.js';
import { describe, Fault } from '../core/errors.js';
import { originOf, workspacePath } from '../core/origin.js';
import {
  MOST_FILE_BYTES,
  type Workspace,
  type WorkspaceFile,
  type WorkspaceShown,
} from '../core/workspace.js';
import { fileUpdater } from '../core/write-whole.js';
import { documentAt, ownFolder, realPathIn } from './inside.js';
import { createShownFiles, type FolderOptions, type ShownFiles } from './shown.js';

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

export function createWorkspace({ folder, budgets, exclusive, origins, log }: FolderOptions): Workspace {
  const update = fileUpdater(exclusive);
  const filesIn = createShownFiles(budgets, log);

  async function made(): Promise<string> {
    const root = await ownFolder(folder);
    const days = join(root, DAYS);
    await mkdir(days, { recursive: true, mode: 0o700 }).catch((error: unknown) => {
      // Reading it reports the problem; the rest works without it.
      log.warn({ path: days, error: describe(error) }, 'the workspace has no folder for daily logs');
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
      if (bytes.length > MOST_FILE_BYTES) {
        const most = sizeInWords(MOST_FILE_BYTES);
        const message = `${FILES[file]} may not be larger than ${most}; it was not written`;
        throw new Fault('memory_unavailable', message);
      }
      let stale: string | null = null;
      await update(await realPathIn(await made(), FILES[file]), (current) => {
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
      const [bootstrap, memory, dailyLog, plan] = await Promise.all([
        bootstrapIn(files),
        files.text(FILES.memory, memoryChars, 'memory-max-chars', budgets.longTermMaxChars),
        files.days(DAYS, today, 'daily-per-day-max-chars', 'daily-max-chars'),
        files.text(FILES.plan, PLAN_CHARS, 'plan-max-chars', PLAN_CHARS),
      ]);
      const shown = [
        ...bootstrap,
        { file: FILES.memory, text: memory },
        { file: FILES.plan, text: plan },
        ...daysOf(dailyLog).map(({ date, text }) => ({ file: `${DAYS}/${date}.md`, text })),
      ].map(async ({ file, text }) => ({ origin: await origins.originIn(workspacePath(file), () => text) }));
      return { bootstrap, memory, dailyLog, plan, origin: originOf(await Promise.all(shown)) };
    },
  };
}

async function bootstrapIn(files: ShownFiles): Promise<WorkspaceShown['bootstrap']> {
  const shown: WorkspaceShown['bootstrap'] = [];
  let left = FILES_CHARS;
  for (const file of BOOTSTRAP) {
    const most = file === 'AGENTS.md' ? AGENTS_CHARS : FILE_CHARS;
    const text =
      left >= most
        ? await files.text(file, most, 'workspace-file-max-chars', most)
        : await files.text(file, left, 'workspace-files-max-chars', FILES_CHARS);
    left = Math.max(0, left - text.length);
    if (text !== '') shown.push({ file, text });
  }
  return shown;
}

function etagOf(bytes: Buffer | null): string {
  return bytes === null ? 'none' : createHash('sha256').update(bytes).digest('hex').slice(0, 32);
}
