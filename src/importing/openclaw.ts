/** An OpenClaw workspace: memory, character, owner, skills and other files, in the folder itself or in `workspace/`. */
import {
  contentOf,
  filesBelow,
  type ImportNames,
  type ImportPlan,
  type ImportSource,
  type ImportStep,
  isThere,
  passOver,
} from './source.js';

/** The files that make up a prompt, by their usual names. */
const FILES = [
  ...['MEMORY.md', 'AGENTS.md', 'SOUL.md', 'USER.md', 'TOOLS.md', 'IDENTITY.md', 'HEARTBEAT.md'],
  ...['BOOTSTRAP.md', 'BOOT.md', 'WORKSPACE.md', 'task.md'],
];
/** Signs of a workspace; AGENTS.md alone occurs in many source code folders. */
const SIGNS = ['MEMORY.md', 'SOUL.md', 'USER.md', 'IDENTITY.md', 'memory'];
const APART = ['memory', 'skills', 'groups', 'runtime/groups', 'runtime/skills'];
/** The folder with OpenClaw's settings and keys is no workspace, even if it has a memory/. */
const SETTINGS = 'openclaw.json';

/** `isAlone`: nothing else in the folder can be imported, so weaker signs suffice. */
export async function planOfWorkspace(
  source: ImportSource,
  isAlone: boolean,
  names: ImportNames,
): Promise<ImportPlan> {
  const plan: ImportPlan = { steps: [], found: [] };
  for (const base of [[], ['workspace']]) {
    const signs = isAlone && base.length === 0 ? [...SIGNS, ...FILES] : SIGNS;
    if (!(await hasAny(source, base, signs))) continue;
    plan.found.push(base.length === 0 ? 'an OpenClaw workspace' : 'an OpenClaw workspace (workspace/)');
    for (const file of FILES) {
      if (!(await isThere(source, [...base, file]))) continue;
      plan.steps.push({ from: [...base, file], place: 'workspace', to: [file] });
    }
    plan.steps.push(...(await planOfPersona(source, base, names)));
    for (const from of await filesBelow(source, [...base, 'memory'])) {
      plan.steps.push({ from, place: 'workspace', to: from.slice(base.length) });
    }
    if (base.length > 0) plan.steps.push(...(await stepsOfSkills(source, [...base, 'skills'])));
    if (base.length > 0 || (isAlone && (await isWorkspaceAlone(source)))) {
      plan.steps.push(...(await stepsOfOthers(source, base)));
    }
  }
  return plan;
}

async function hasAny(source: ImportSource, base: readonly string[], names: string[]): Promise<boolean> {
  return (await Promise.all(names.map((name) => isThere(source, [...base, name])))).includes(true);
}

/** Whether the folder itself is a workspace, rather than OpenClaw's own folder or source code. */
async function isWorkspaceAlone(source: ImportSource): Promise<boolean> {
  if (await isThere(source, [SETTINGS])) return false;
  return (await hasAny(source, [], SIGNS)) && !(await hasAny(source, ['workspace'], SIGNS));
}

/** Further text files (notes, plans, scripts), under their own names. */
async function stepsOfOthers(source: ImportSource, base: readonly string[]): Promise<ImportStep[]> {
  const files = await filesBelow(source, base, false, (path) => [...FILES, ...APART].includes(path));
  return files.map((from) => ({ from, place: 'workspace', to: from.slice(base.length), isTextAlone: true }));
}

/** Bundles: one folder each, with a file that describes its purpose. */
export async function planOfSkills(source: ImportSource): Promise<ImportPlan> {
  const plan: ImportPlan = { steps: [], found: [] };
  for (const base of [['skills'], ['runtime', 'skills']]) {
    const steps = await stepsOfSkills(source, base);
    if (steps.length > 0) plan.found.push(`skills (${base.join('/')}/)`);
    plan.steps.push(...steps);
  }
  return plan;
}

async function stepsOfSkills(source: ImportSource, base: readonly string[]): Promise<ImportStep[]> {
  const steps: ImportStep[] = [];
  for (const from of await filesBelow(source, base)) {
    const to = from.slice(base.length);
    if (to.length > 1) steps.push({ from, place: 'skills', to });
    else passOver(source, from, 'it belongs to no skill: each has a folder');
  }
  return steps;
}

/** The name, if IDENTITY.md gives none. */
const NAMELESS = 'imported';
const MOST_NAME = 60;

async function planOfPersona(
  source: ImportSource,
  base: readonly string[],
  names: ImportNames,
): Promise<ImportStep[]> {
  const soul = [...base, 'SOUL.md'];
  const identity = [...base, 'IDENTITY.md'];
  const hasIdentity = await isThere(source, identity);
  const from = (await isThere(source, soul)) ? soul : hasIdentity ? identity : null;
  if (from === null) return [];
  // A preview: read errors are reported when the file is imported.
  const look: ImportSource = { root: source.root, passedOver: [] };
  const content = hasIdentity ? await contentOf(look, identity) : null;
  const name = content === null ? null : nameIn(content.bytes.toString('utf8'));
  const id = name === null ? '' : names.idOf(name);
  const isNamed = name !== null && names.isPersonaId(id);
  const more = from === soul && hasIdentity ? [{ from: identity, heading: 'Identity' }] : [];
  return [step(from, isNamed ? id : NAMELESS, isNamed ? name : null, more)];
}

/** `souls/<name>.md` of MicroClaw. */
export async function planOfSouls(source: ImportSource, names: ImportNames): Promise<ImportPlan> {
  const plan: ImportPlan = { steps: [], found: [] };
  for (const from of await filesBelow(source, ['souls'])) {
    const [, file = '', ...deeper] = from;
    const name = file.replace(/\.md$/, '');
    const id = names.idOf(name);
    if (deeper.length > 0 || name === file || !names.isPersonaId(id)) {
      passOver(source, from, 'it is no file with the text of a persona');
    } else plan.steps.push(step(from, id, name, []));
  }
  if (plan.steps.length > 0) plan.found.push('souls of MicroClaw (souls/)');
  return plan;
}

function step(
  from: readonly string[],
  id: string,
  name: string | null,
  more: NonNullable<ImportStep['more']>,
): ImportStep {
  // A command cannot contain a name with quotes.
  const called = name === null || /["“”„]/.test(name) ? 'NAME' : name;
  const spoken = /\s/.test(called) ? `"${called}"` : called;
  return {
    from,
    place: 'groups',
    to: ['personas', `${id}.md`],
    isBodyAlone: true,
    more,
    text: name === null ? '' : `---\nname: ${JSON.stringify(name)}\n---\n\n`,
    hint: `It is a persona of the library now: /persona new ${spoken} from ${id} in a chat.`,
  };
}

/** `- **Name:** Verso`, also with the name on the next line; null if not filled in. */
function nameIn(identity: string): string | null {
  const lines = identity.slice(0, 20_000).split('\n');
  const at = lines.findIndex((line) => /^name ?:/i.test(plain(line)));
  if (at < 0) return null;
  const here = plain(lines[at] ?? '')
    .replace(/^name ?:/i, '')
    .trim();
  const next = lines[at + 1] ?? '';
  const name = here !== '' ? here : /^\s+\S/.test(next) ? next.trim() : '';
  // The template's placeholder is in brackets or italics.
  if (name === '' || /^[_*(<[]/.test(name) || name.length > MOST_NAME) return null;
  return name;
}

function plain(line: string): string {
  return line.replace(/[*_`]/g, '').replace(/^[\s-]+/, '');
}
