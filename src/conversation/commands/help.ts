/** `/help`: every command with one line. */
import { type Command, changesNothing } from './command.js';

export const help: Command = {
  name: 'help',
  aliases: [],
  description: 'Show the commands',
  changes: changesNothing,
  async run(_call, { commands }) {
    const lines = commands.map(({ name, aliases, description }) => {
      const names = [name, ...aliases].map((each) => `/${each}`).join(', ');
      return `${names}: ${description}`;
    });
    return {
      text: `${lines.join('\n')}\n\nTo speak to another persona for one message, begin with its name: \`luna: good morning\`.`,
    };
  },
};
