/**
 * Who may read what lies in the data folder: its owner alone, also where a folder was made by hand with more. Only
 * names of our own are changed: a data folder may be one that holds other things, too.
 */
import { lchownSync, statSync } from 'node:fs';
import { chmod, readdir, stat } from 'node:fs/promises';
import { dirname, join, relative, resolve } from 'node:path';
import { describe } from '../core/errors.js';

/** Files and folders below data_dir that are ours. What is in the folders is behind them. */
const OURS =
  /^(coterie\.db|recall\.db|restore\.json|terminal-history|.*\.lock$|media$|speech$|work$|clipboard$|workspace$|agents$|artifacts$|skills$|replay$|exports$|audit)/;

/** Whoever is not the owner. */
const OTHERS = 0o077;

/** Returns, one line each, what could not be closed: it belongs to somebody else, or its disk knows no modes. */
export async function closeToOthers(dataDir: string, groupsDir: string, change = chmod): Promise<string[]> {
  const names = (await readdir(dataDir)).filter((name) => OURS.test(name));
  // Whoever edits groups, which may be several, must get through.
  const groupsWithin = !relative(resolve(dataDir), resolve(groupsDir)).startsWith('..');
  const paths = [...(groupsWithin ? [] : [dataDir]), ...names.map((name) => join(dataDir, name))];
  const faults: string[] = [];
  for (const path of paths) {
    const fault = await close(path, change);
    if (fault !== null) faults.push(fault);
  }
  return faults;
}

/** What root made in somebody's folder is theirs: the gateway, which runs as them, could not open it. */
export function giveToOwner(path: string): void {
  if (process.getuid?.() !== 0) return;
  const { uid, gid } = statSync(dirname(path));
  // Never what a link of theirs leads to.
  if (uid !== 0) lchownSync(path, uid, gid);
}

async function close(path: string, change: typeof chmod): Promise<string | null> {
  try {
    const { mode } = await stat(path);
    if ((mode & OTHERS) === 0) return null;
    await change(path, mode & ~OTHERS & 0o7777);
    if (((await stat(path)).mode & OTHERS) === 0) return null;
    return `others may read ${path}, and its disk does not let that be changed`;
  } catch (error) {
    // What SQLite keeps beside a database comes and goes.
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    return `it could not be made sure that nobody else reads ${path}: ${describe(error)}`;
  }
}
