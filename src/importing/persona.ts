/** A workspace's SOUL.md and IDENTITY.md as a persona of the library, and MicroClaw's folder of souls. */
import type { Names, Plan, Step } from './plan.js';
import { contentOf, filesBelow, isThere, type Source } from './source.js';

/** Where IDENTITY.md gives no name. */
const NAMELESS = 'imported';
const MOST_NAME = 60;

export async function planOfPersona(source: Source, base: readonly string[], names: Names): Promise<Step[]> {
  const soul = [...base, 'SOUL.md'];
  const identity = [...base, 'IDENTITY.md'];
  const hasIdentity = await isThere(source, identity);
  const from = (await isThere(source, soul)) ? soul : hasIdentity ? identity : null;
  if (from === null) return [];
  // A look at it: what keeps it from being read is told when it is taken.
  const look: Source = { root: source.root, passedOver: [] };
  const content = hasIdentity ? await contentOf(look, identity) : null;
  const name = content === null ? null : nameIn(content.bytes.toString('utf8'));
  const id = name === null ? '' : names.idOf(name);
  const isNamed = name !== null && names.isPersonaId(id);
  const more = from === soul && hasIdentity ? [{ from: identity, heading: 'Identity' }] : [];
  return [step(from, isNamed ? id : NAMELESS, isNamed ? name : null, more)];
}

/** `souls/<name>.md` of MicroClaw. */
export async function planOfSouls(source: Source, names: Names): Promise<Plan> {
  const plan: Plan = { steps: [], found: [] };
  for (const from of await filesBelow(source, ['souls'])) {
    const [, file = '', ...deeper] = from;
    const name = file.replace(/\.md$/, '');
    const id = names.idOf(name);
    if (deeper.length > 0 || name === file || !names.isPersonaId(id)) {
      source.passedOver.push({ path: from.join('/'), why: 'it is no file with the text of a persona' });
    } else plan.steps.push(step(from, id, name, []));
  }
  if (plan.steps.length > 0) plan.found.push('souls of MicroClaw (souls/)');
  return plan;
}

function step(
  from: readonly string[],
  id: string,
  name: string | null,
  more: NonNullable<Step['more']>,
): Step {
  // A command could not say one with quotes in it.
  const called = name === null || /["“”„]/.test(name) ? 'NAME' : name;
  const spoken = /\s/.test(called) ? `"${called}"` : called;
  return {
    ...{ from, place: 'groups', to: ['personas', `${id}.md`], isBodyAlone: true, more },
    text: name === null ? '' : `---\nname: ${JSON.stringify(name)}\n---\n\n`,
    hint: `It is a persona of the library now: /persona new ${spoken} from ${id} in a chat.`,
  };
}

/** `- **Name:** Verso`, also with the name on the next line; null where none was filled in. */
function nameIn(identity: string): string | null {
  const lines = identity.slice(0, 20_000).split('\n');
  const at = lines.findIndex((line) => /^name ?:/i.test(plain(line)));
  if (at < 0) return null;
  const here = plain(lines[at] ?? '')
    .replace(/^name ?:/i, '')
    .trim();
  const next = lines[at + 1] ?? '';
  const name = here !== '' ? here : /^\s+\S/.test(next) ? next.trim() : '';
  // What the template asks for stands in brackets, or in italics.
  if (name === '' || /^[_*(<[]/.test(name) || name.length > MOST_NAME) return null;
  return name;
}

function plain(line: string): string {
  return line.replace(/[*_`]/g, '').replace(/^[\s-]+/, '');
}
