/** What is told of a skill that was loaded: where it lies, its files, and its instructions. */
import { entriesBelow, within } from '../core/beneath.js';
import type { Skill } from '../core/skills.js';

const MOST_FILES = 100;

/** `at`: what its folder is called for whoever reads it. */
export async function instructionsOf(skill: Skill, body: string, at: string): Promise<string> {
  const files = (await filesOf(skill)).map((file) => `${at}/${file}`);
  const more = files.length > MOST_FILES ? ['…and more'] : [];
  const list = [...files.slice(0, MOST_FILES), ...more].join('\n');
  const lists = list === '' ? '' : `\n\nIts files (read_file reads them):\n${list}`;
  return `# Skill: ${skill.name}\n\nIt lies in ${at}.${lists}\n\n${body.replaceAll('{baseDir}', at)}`;
}

/** Relative to its folder, without links and what is hidden, sorted; one more than is told. */
async function filesOf({ folder }: Skill): Promise<string[]> {
  const names: string[] = [];
  await within(folder, [], async (root) => {
    const isHidden = (name: string) => name.startsWith('.') || name === 'node_modules';
    for await (const { kind, name, path } of entriesBelow(root, (entry) => !isHidden(entry.name))) {
      if (kind !== 'file' || isHidden(name) || path === 'SKILL.md') continue;
      names.push(path);
      if (names.length > MOST_FILES) break;
    }
  });
  return names.sort();
}
