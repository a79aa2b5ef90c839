/** `/start`: what Telegram sends when somebody opens a chat with a bot. */
import { type Command, changesNothing } from './command.js';

export const start: Command = {
  name: 'start',
  aliases: [],
  description: 'Say hello',
  changes: changesNothing,
  async run({ command }, { personas }) {
    const { id, activePersona } = command.chat;
    const persona = await personas.get(id, activePersona);
    return {
      text: `Hello, I am ${persona?.name ?? activePersona}. Just write to me; /help shows what else I can do.`,
    };
  },
};
