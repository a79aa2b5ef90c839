/** `/reset`: forgets the conversation with the active persona in this room, for good. Memory stays. */
import { type Command, changesAlways } from './command.js';

export const reset: Command = {
  name: 'reset',
  aliases: ['new'],
  description: 'Forget this conversation; memory stays',
  changes: changesAlways,
  async run({ command }) {
    return {
      text: 'Conversation cleared. Principles and per-persona memory are unchanged.',
      effects: [
        {
          kind: 'reset',
          room: command.room,
          personaId: command.chat.activePersona,
          upTo: command.afterMessage,
        },
      ],
    };
  },
};
