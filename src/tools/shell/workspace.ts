/**
 * What programs that were written for OpenClaw look for in a workspace (`OPENCLAW_WORKSPACE`, `MEMORY_DIR`), so that they
 * find it there before the first command runs: files without a word in them rather than none. What stands there stays.
 */
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';

const FILES = ['MEMORY.md', 'USER.md'];

export async function fillWorkspace(folder: string, skillsFolder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  for (const each of [join(folder, 'memory'), skillsFolder]) await unlessThere(mkdir(each, { mode: 0o700 }));
  for (const file of FILES) await unlessThere(writeFile(join(folder, file), '', { flag: 'wx', mode: 0o600 }));
  // Relative, so that it holds when data_dir is moved.
  await unlessThere(symlink(relative(folder, skillsFolder), join(folder, 'skills')));
}

/** Anything of that name may be somebody's own, a link that leads nowhere, too. */
async function unlessThere(making: Promise<unknown>): Promise<void> {
  await making.catch((error: unknown) => {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
  });
}
