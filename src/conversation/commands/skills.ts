/** `/skills`: lists the skills, for owners also the skipped ones; `/skill`: uses one. */
import type { SkillProblem } from '../../core/skills.js';
import { code, oneLine } from '../quoting.js';
import { canLoad, SKILL, skillFor } from '../skill-asked.js';
import { type ChatCommand, changesNothing } from './command.js';

const MOST_DESCRIPTION = 200;
/** People would not read a longer list. */
const MOST_LINES = 50;

export const skills: ChatCommand = {
  name: 'skills',
  aliases: [],
  description: 'List the skills',
  changes: changesNothing,
  async run({ command, isOwner }, services) {
    const found = (await services.skills?.list()) ?? { skills: [], problems: [], remarks: [] };
    const lines = found.skills.map(
      ({ name, description }) => `- ${code(name)}: ${oneLine(description, MOST_DESCRIPTION)}`,
    );
    const there = lines.length === 0 ? 'No skills are installed.' : listed('Skills:', lines);
    if (!isOwner) return { text: there };
    const ask = { chat: command.chat, personaId: command.chat.activePersona, senderId: command.sender.id };
    const isIdle = lines.length > 0 && !(await canLoad(services, ask));
    return {
      text: [
        there,
        ...(isIdle ? [NOT_USED] : []),
        ...told('Not offered:', found.problems),
        ...told('Notes:', found.remarks),
      ].join('\n\n'),
    };
  },
};

const NOT_USED = 'The persona here can’t use them: `skills` is not among its tools (`tools.allow`).';

function told(head: string, problems: SkillProblem[]): string[] {
  if (problems.length === 0) return [];
  const lines = problems.map(
    ({ name, why }) => `- ${code(oneLine(name, 100))}: ${oneLine(why, MOST_DESCRIPTION)}`,
  );
  return [listed(head, lines)];
}

function listed(head: string, lines: string[]): string {
  const more = lines.length - MOST_LINES;
  const rest = more > 0 ? [`- … and ${more} more`] : [];
  return [head, ...lines.slice(0, MOST_LINES), ...rest].join('\n');
}

/** If a skill can be used, step 1 turns `/skill NAME …` into a message to the persona; this answers otherwise. */
export const skill: ChatCommand = {
  name: SKILL,
  aliases: [],
  description: 'Use a skill: its name, then what it is to do',
  changes: changesNothing,
  async run({ command: { chat, sender, argument } }, services) {
    const ask = { chat, personaId: chat.activePersona, senderId: sender.id };
    const found = await skillFor(services, ask, argument);
    return { text: found.ok ? 'I could not use this skill just now. Please send it again.' : found.reason };
  },
};
