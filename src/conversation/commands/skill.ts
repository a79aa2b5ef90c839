/**
 * `/skill NAME …`: a person has a skill loaded. Where that can be, it is a message of theirs to the persona (step 1 of the
 * route); here is what they are told where it cannot.
 */
import { SKILL, skillFor } from '../skill-asked.js';
import { type Command, changesNothing } from './command.js';

export const skill: Command = {
  name: SKILL,
  aliases: [],
  description: 'Use a skill: its name, then what it is to do',
  changes: changesNothing,
  async run({ command: { chat, sender, argument } }, services) {
    const ask = { chat, personaId: chat.activePersona, senderId: sender.id };
    const found = await skillFor(services, ask, argument);
    return { text: found.ok ? 'This could not be used just now. Please send it again.' : found.reason };
  },
};
