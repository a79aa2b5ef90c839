/**
 * File names in two Unicode forms: macOS writes `é` decomposed (NFD), people type it composed (NFC). Both are the same
 * name; if a folder has both, the exact one wins.
 */
import { existsSync, readdirSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';

export function composed(name: string): string {
  return isAscii(name) ? name : name.normalize('NFC');
}

export function composedNames(names: readonly string[]): string[] {
  return [...new Set(names.map(composed))];
}

/** As the folder spells it; unchanged if there is no match. Synchronous, as every message needs it. */
export function nameOnDisk(folder: string, name: string): string {
  if (isAscii(name) || existsSync(join(folder, name))) return name;
  try {
    return meant(name, readdirSync(folder)) ?? name;
  } catch {
    // Missing or unreadable: using the name reports the error.
    return name;
  }
}

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

function isAscii(name: string): boolean {
  return /^[\x20-\x7e]*$/.test(name);
}
