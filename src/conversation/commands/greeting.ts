/** `/greeting`: the greetings of the active persona; `/greeting N` says that one, in place of the shown one if nobody has spoken since. */
import type { NewestAnswer } from '../../core/anew.js';
import { greetingsOf, saidBy } from '../greeting.js';
import { presentIn } from '../participants.js';
import { nameInWords, oneLine } from '../quoting.js';
import { begin } from './anew.js';
import { type CommandAnswer, type CommandCall, commandOf } from './command.js';

const FIRST_WORDS = 80;
/** More would hide the rest of the chat on a phone. */
const MOST_BUTTONS = 10;
const HOUR_MS = 3_600_000;

export const greeting = commandOf(
  'greeting',
  'List the greetings of a persona, or say another: NUMBER',
  run,
  {
    changes: (argument) => argument.trim() !== '',
  },
);

async function run(call: CommandCall): Promise<CommandAnswer> {
  const { command, personas, store } = call;
  const { chat, room } = command;
  const persona = await personas.get(chat.id, chat.activePersona);
  const all = persona === null ? [] : greetingsOf(persona);
  if (persona === null || all.length === 0) {
    return { text: `${nameInWords(persona?.name ?? chat.activePersona)} has no greeting.` };
  }
  const argument = command.argument.trim();
  if (argument === '') return list(await Promise.all(all.map((each) => saidBy(call, chat, persona, each))));
  const chosen = /^\d{1,3}$/.test(argument) ? all[Number(argument) - 1] : undefined;
  if (chosen === undefined)
    return { text: `There are greetings from 1 to ${all.length}; /greeting lists them.` };
  const text = await saidBy(call, chat, persona, chosen);
  const newest = await store.newestAnswer(room);
  const isGreeting = newest !== null && newest.batch.length === 0 && newest.personaId === persona.id;
  if (isGreeting && newest.busy === null && !(await isAnyoneHeard(call, newest))) {
    return begin(call, newest, { how: 'edit', version: null, text, memory: newest.shown.memory }, []);
  }
  const hearers = presentIn(chat, await personas.list(chat.id));
  const said = { room, personaId: persona.id, text, hearers };
  return { text: '', effects: [{ kind: 'greet', ...said }], appears: { chat, persona, greeting: said } };
}

/** Whether somebody has said something since, though it was not for the persona. */
async function isAnyoneHeard(
  { store, command: { room } }: CommandCall,
  { personaId, messageId }: NewestAnswer,
): Promise<boolean> {
  const { messages } = await store.window({ room, personaId, except: [], limit: 2, overheard: 1 });
  return messages.some(({ id, author }) => author.kind === 'person' && id > messageId);
}

function list(all: string[]): CommandAnswer {
  const lines = all.map((text, n) => `${n + 1}. ${oneLine(text, FIRST_WORDS)}`);
  const options = all.slice(0, MOST_BUTTONS).map((_, n) => ({
    label: `${n + 1}`,
    command: { name: 'greeting', argument: `${n + 1}` },
  }));
  return { text: lines.join('\n'), ...(all.length > 1 && { choices: { options, forMs: HOUR_MS } }) };
}
