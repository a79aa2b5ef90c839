/** Files and folders that are two by their bytes and one by their letters: only one of them is found by its name. */
import { dirname } from 'node:path';
import { entriesBelow, sameNames, within } from './core/beneath.js';

const MOST_ENTRIES = 50_000;
const MOST_TOLD = 20;

/** A sentence for each such pair below the folders. */
export async function nameFindings(folders: readonly string[]): Promise<string[]> {
  const findings: string[] = [];
  for (const folder of folders) {
    // A folder that is not there, or cannot be read, is told of by others.
    for (const [one = '', ...others] of await pairsBelow(folder).catch(() => [])) {
      findings.push(
        `${folder}: ${one} stands there ${others.length + 1} times, in letters that look the same (composed and ` +
          'decomposed Unicode); under its usual name, the composed one, only one of them is found; rename the other',
      );
    }
  }
  return findings.slice(0, MOST_TOLD);
}

async function pairsBelow(root: string): Promise<string[][]> {
  const names = new Map<string, string[]>();
  await within(root, [], async (folder) => {
    let looked = 0;
    for await (const { path } of entriesBelow(folder)) {
      if (++looked > MOST_ENTRIES) break;
      const at = dirname(path);
      const there = names.get(at);
      if (there === undefined) names.set(at, [path]);
      else there.push(path);
    }
  });
  return [...names.values()].flatMap(sameNames);
}
