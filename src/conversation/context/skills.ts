/** Step 4 of the route: the skills that people have loaded with `/skill`, for the turn that answers them. */
import { cutWithMarker } from '../../core/cut.js';
import { fenced } from '../../core/origin.js';
import type { ToolSet } from '../../core/tool.js';
import type { StoredMessage } from '../../core/transcript.js';
import type { Services } from '../services.js';
import { skillsAsked } from '../skill-asked.js';
import { charsWithin } from './size.js';

/** How much of what is left beside the prompt all of them may take. */
const SHARE = 0.5;

/** Their instructions, which are the operator's words, as far as they fit into `budget` tokens; empty: none. */
export async function skillsLoaded(
  { skills }: Pick<Services, 'skills'>,
  { batch, tools }: { batch: readonly StoredMessage[]; tools: Pick<ToolSet, 'tools'> },
  budget: number,
): Promise<string> {
  if (skills === undefined || !batch.some(({ text }) => /skill/i.test(text))) return '';
  if (!tools.tools.some(({ name }) => name === 'activate_skill')) return '';
  const asked = skillsAsked(batch, (await skills.list()).skills);
  const share = Math.floor((budget * SHARE) / Math.max(1, asked.length));
  const loaded: string[] = [];
  for (const { name } of asked) {
    const found = await skills.load(name, { by: 'people', paths: 'placed' });
    // It may have gone since it was listed.
    if (!found.ok) continue;
    const { text } = found;
    const shown = cutWithMarker(text, charsWithin(text, share), 'skill-max-chars');
    loaded.push(`${NOTE}\n${fenced(shown)}\n`);
  }
  return loaded.join('');
}

const NOTE =
  '(Instructions of a skill, which a person has asked for with /skill: follow them for what is said there.)';
