/** `/skills`: lists the skills, for owners also the skipped ones; `/skill`: uses one. */
import type { SkillProblem } from '../../core/skills.js';
import { code, oneLine } from '../quoting.js';
import { canLoad, SKILL, skillFor } from '../skill-asked.js';
import { commandOf, firstOf } from './command.js';

const MOST_DESCRIPTION = 200;
/** People would not read a longer list. */
const MOST_LINES = 50;

export const skills = commandOf('skills', 'List the skills', async (call) => {
  const { command, isOwner } = call;
  const found = (await call.skills?.list()) ?? { skills: [], problems: [], remarks: [] };
  const lines = found.skills.map(
    ({ name, description }) => `- ${code(name)}: ${oneLine(description, MOST_DESCRIPTION)}`,
  );
  const blocks = [lines.length === 0 ? 'No skills are installed.' : listed('Skills:', lines)];
  if (!isOwner) return { text: blocks.join('\n\n') };
  const ask = { chat: command.chat, personaId: command.chat.activePersona, senderId: command.sender.id };
  if (lines.length > 0 && !(await canLoad(call, ask))) blocks.push(NOT_USED);
  if (found.problems.length > 0) blocks.push(listed('Not offered:', found.problems.map(lineOf)));
  if (found.remarks.length > 0) blocks.push(listed('Notes:', found.remarks.map(lineOf)));
  return { text: blocks.join('\n\n') };
});

const NOT_USED = 'The persona here can’t use them: `skills` is not among its tools (`tools.allow`).';

function lineOf({ name, why }: SkillProblem): string {
  return `- ${code(oneLine(name, 100))}: ${oneLine(why, MOST_DESCRIPTION)}`;
}

function listed(head: string, lines: string[]): string {
  return [head, ...firstOf(lines, MOST_LINES, (left) => `- … and ${left} more`)].join('\n');
}

/** If a skill can be used, step 1 turns `/skill NAME …` into a message to the persona; this answers otherwise. */
export const skill = commandOf(SKILL, 'Use a skill: its name, then the task', async (call) => {
  const { chat, sender, argument } = call.command;
  const ask = { chat, personaId: chat.activePersona, senderId: sender.id };
  const found = await skillFor(call, ask, argument);
  return { text: found.ok ? 'I could not use this skill just now. Please send it again.' : found.reason };
});
