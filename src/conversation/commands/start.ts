/** `/start`: what Telegram sends when somebody opens a chat with a bot. */
import { DEFAULT_PERSONA } from '../../core/ids.js';
import { firstWords, greetingOf } from '../greeting.js';
import { nameInWords } from '../quoting.js';
import { type Command, changesNothing } from './command.js';

const HELP = '/help shows what else I can do.';

export const start: Command = {
  name: 'start',
  aliases: [],
  description: 'Say hello',
  changes: changesNothing,
  async run({ command: { chat, room } }, services) {
    const personas = await services.personas.list(chat.id);
    const persona =
      personas.find(({ id }) => id === chat.activePersona) ??
      personas.find(({ id }) => id === DEFAULT_PERSONA);
    if (!persona) return { text: `Hello. Just write to me; ${HELP}` };
    const words = greetingOf(chat, persona);
    if (words === '') return { text: `Hello, I am ${nameInWords(persona.name)}. Just write to me; ${HELP}` };
    const first = await firstWords(services, { chat, room, persona, personas });
    return { text: `${words}\n\n${HELP}`, effects: first ? [{ kind: 'greet', ...first }] : [] };
  },
};
