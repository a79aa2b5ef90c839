/** `/skills`: what personas can load instructions for; to owners also what was skipped, and why. */
import type { StoredCommand } from '../../core/receipt.js';
import type { SkillProblem } from '../../core/skills.js';
import { code, oneLine } from '../quoting.js';
import { type Command, type CommandServices, changesNothing } from './command.js';

const MOST_DESCRIPTION = 200;
/** More would be a message that nobody reads. */
const MOST_LINES = 50;

export const skills: Command = {
  name: 'skills',
  aliases: [],
  description: 'List the skills',
  changes: changesNothing,
  async run({ command, isOwner }, services) {
    const found = (await services.skills?.list()) ?? { skills: [], problems: [], remarks: [] };
    const lines = found.skills.map(
      ({ name, description }) => `- ${code(name)}: ${oneLine(description, MOST_DESCRIPTION)}`,
    );
    const there = lines.length === 0 ? 'There are no skills here.' : listed('Skills:', lines);
    if (!isOwner) return { text: there };
    const isIdle = lines.length > 0 && !(await areUsed(command, services));
    return {
      text: [
        there,
        ...(isIdle ? [NOT_USED] : []),
        ...told('Not offered:', found.problems),
        ...told('To know:', found.remarks),
      ].join('\n\n'),
    };
  },
};

const NOT_USED = 'The persona here has no use of them: `skills` is not among its tools (`tools.allow`).';

/** Whether whoever is active here could load one. */
async function areUsed({ chat, sender }: StoredCommand, { personas, toolsFor }: CommandServices) {
  const active = await personas.get(chat.id, chat.activePersona);
  const { tools } = toolsFor({
    ...{ kind: 'answer', chatId: chat.id, personaId: chat.activePersona, senderId: sender.id },
    ...{ allowed: active?.tools ?? null, channel: chat.channel, chatKind: chat.kind },
  });
  return tools.some(({ name }) => name === 'activate_skill');
}

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
