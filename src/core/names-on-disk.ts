/**
 * File names in two Unicode forms. A Mac writes `é` as two characters (NFD), and an archive or a copy brings such names to
 * disks that take them for others than those in one (NFC), which people and models type. Here they are the same name.
 * Where a folder holds both, the very name that is asked for counts.
 */
import { existsSync, readdirSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';

export function composed(name: string): string {
  return isAscii(name) ? name : name.normalize('NFC');
}

/** Composed, each name once: of two that are the same it is the one that is looked up. */
export function composedNames(names: readonly string[]): string[] {
  return [...new Set(names.map(composed))];
}

/**
 * How a name is written in a folder; the name itself where there is none like it. Synchronous, because it is asked for
 * every message, and costs nothing for the names that most have.
 */
export function nameOnDisk(folder: string, name: string): string {
  if (isAscii(name) || existsSync(join(folder, name))) return name;
  try {
    return meant(name, readdirSync(folder)) ?? name;
  } catch {
    // Nothing is there, or not to be read: whatever is done with the name says so.
    return name;
  }
}

/** The same for all the names of a path below a folder. */
export async function pathOnDisk(folder: string, names: readonly string[]): Promise<string[]> {
  const written: string[] = [];
  for (const name of names) {
    const at = join(folder, ...written);
    const isAsWritten = isAscii(name) || existsSync(join(at, name));
    const there = isAsWritten ? [] : await readdir(at).catch(() => []);
    written.push(meant(name, there) ?? name);
  }
  return written;
}

function meant(name: string, there: readonly string[]): string | null {
  if (there.includes(name)) return name;
  const wanted = composed(name);
  return there.filter((each) => composed(each) === wanted).sort()[0] ?? null;
}

/** Names of a folder that are the same, in groups of two and more. */
export function sameNames(names: readonly string[]): string[][] {
  const groups = new Map<string, string[]>();
  for (const name of names) groups.set(composed(name), [...(groups.get(composed(name)) ?? []), name]);
  return [...groups.values()].filter(({ length }) => length > 1);
}

function isAscii(name: string): boolean {
  return /^[\x20-\x7e]*$/.test(name);
}
