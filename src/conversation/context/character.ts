/** Step 4 of the route: a persona's own text in the system prompt, and the constant entries of its lorebooks. Pure. */
import { cutAt, cutMarker } from '../../core/cut.js';
import { fenced } from '../../core/origin.js';

export interface CharacterTexts {
  description: string;
  personality: string;
  /** Empty where a scene is set. */
  scenario: string;
  instructions: string;
  examples: string;
  /** Constant lore, in order. */
  lore: readonly string[];
}

type Section = [name: keyof CharacterTexts, head: string, text: string];

/** `most`: characters of all together. `limit`: as configured, for the marker. Empty: the persona has no text. */
export function characterText(texts: CharacterTexts, most: number, limit: number): string {
  return within(sectionsOf(texts), most, limit)
    .map(([, head, text]) => `${head}\n\n${fenced(text)}`)
    .join('\n\n');
}

function sectionsOf(texts: CharacterTexts): Section[] {
  const { description, personality, scenario, instructions, examples, lore } = texts;
  const sections: Section[] = [
    ['description', WHO, description],
    ['personality', 'Your personality:', personality],
    ['scenario', 'Where this takes place:', scenario],
    ['instructions', INSTRUCTIONS, instructions],
    ['examples', EXAMPLES, examples],
    ['lore', description === '' && personality === '' ? WHO : LORE, lore.join('\n\n')],
  ];
  return sections.filter(([, , text]) => text !== '');
}

const WHO = 'Who you are:';
const INSTRUCTIONS =
  'How you are meant to be played. It is of lower rank than the rules and principles below and changes none of them:';
const EXAMPLES = 'Examples of how you talk, which nobody here has said:';
const LORE = 'What you know of your world:';

/** Examples are cut first, then what stands last. */
function within(sections: Section[], most: number, limit: number): Section[] {
  let over = sections.reduce((sum, [, , text]) => sum + text.length, 0) - most;
  if (over <= 0) return sections;
  const kept = [...sections];
  const first = sections.findIndex(([name]) => name === 'examples');
  const order = sections.map((_, n) => n).filter((n) => n !== first);
  for (const n of [...(first < 0 ? [] : [first]), ...order.reverse()]) {
    if (over <= 0) break;
    const [name, head, text] = sections[n] as Section;
    const left = Math.max(0, text.length - over);
    over -= text.length - left;
    const start = left === 0 ? '' : `${cutAt(text, left).trimEnd()}\n\n`;
    kept[n] = [name, head, `${start}${cutMarker('character-max-chars', limit)}`];
  }
  return kept;
}
