/** `/persona`: list, switch, new, delete, model, show, invite, leave. The chat's record holds the present ones. */
import { importText } from '../../core/cards.js';
import type { ChatRecord } from '../../core/chat-record.js';
import { DEFAULT_PERSONA } from '../../core/ids.js';
import { expand } from '../../core/macros.js';
import { type Persona, personaName } from '../../core/persona.js';
import { type CommandEffect, putSetting } from '../../core/store.js';
import { greetingFor } from '../greeting.js';
import { passingMacros } from '../macros.js';
import { presentIn, userIn } from '../participants.js';
import { nameInWords } from '../quoting.js';
import { awaitedCardKey, sentCardIn } from '../sent-card.js';
import {
  type ChatCommand,
  type CommandAnswer,
  type CommandCall,
  changing,
  type RunnableVerb,
  reading,
  withVerbs,
} from './command.js';
import { words } from './parse.js';

/** More would hide the rest of the chat on a phone. */
const MOST_BUTTONS = 10;
const HOUR_MS = 3_600_000;
const AWAIT_CARD_MS = 10 * 60_000;

const NAME = {
  name: 'name',
  description: 'The persona’s name; put names with spaces in quotes',
  required: true,
  suggest: 'persona',
} as const;
const NEW_NAME = {
  name: 'name',
  description: 'A new name; `NAME from L` bases it on persona L of the library',
  required: true,
};
const NAME_AND_MODEL = { ...NAME, description: 'The persona and the model: NAME MODEL', required: false };

export const persona: ChatCommand = withVerbs(
  {
    name: 'persona',
    aliases: ['personas'],
    ofChat: true,
    description: 'List, switch, create, show or delete personas',
    // Only names of personas and models.
    audited: (argument) => argument,
  },
  [
    reading('list', 'List the personas of this chat', list),
    onPersona('switch', 'Talk with another persona', switchTo),
    changing(
      'new',
      'Create a persona and switch to it; `new NAME from L` bases it on persona L of the library',
      create,
      NEW_NAME,
    ),
    {
      ...changing(
        'import',
        'Make a persona of a character card: send the card as a file, with this as its caption, or within ten minutes',
        awaitCard,
        {
          name: 'name',
          description: 'Its name, if it should have another than the card gives',
          required: false,
        },
      ),
      file: 'The character card',
    },
    { ...changing('import-file', '', importSent), isHidden: true },
    onPersona('invite', 'Invite another persona; each answers when addressed by name', invite),
    onPersona('leave', 'Send a persona away', leave),
    reading('show', 'Show a persona', show, { ...NAME, required: false }),
    changing('model', 'Give a persona its own language model: NAME MODEL', setModel, NAME_AND_MODEL),
    changing('delete', 'Delete a persona; its memory file stays', remove, NAME),
  ],
);

function onPersona(
  verb: string,
  description: string,
  work: (call: CommandCall, found: Persona) => Promise<CommandAnswer>,
): RunnableVerb {
  const run: RunnableVerb['run'] = async (call, rest) => {
    const asked = nameIn(words(rest));
    const found = await call.personas.find(call.command.chat.id, asked);
    return found ? work(call, found) : notFound(asked);
  };
  return changing(verb, description, run, NAME);
}

/** People who may switch get a button for each inactive persona. */
async function list(call: CommandCall): Promise<CommandAnswer> {
  const { personas } = call;
  const { chat } = call.command;
  const all = await personas.list(chat.id);
  const present = presentIn(chat, all);
  const names = all.map(({ id, name }) => {
    if (id === chat.activePersona) return `${nameInWords(name)} (active)`;
    return present.includes(id) ? `${nameInWords(name)} (here)` : nameInWords(name);
  });
  const text = `Personas: ${names.join(', ')}. Use /persona switch NAME to switch.`;
  const others = all.filter(({ id }) => id !== chat.activePersona);
  const maySwitch = chat.kind === 'direct' || (await call.mayChange()) === 'yes';
  if (others.length === 0 || !maySwitch) return { text };
  const options = others.slice(0, MOST_BUTTONS).map(({ id, name }) => ({
    label: name,
    command: { name: 'persona', argument: `switch ${id}` },
  }));
  return { text, choices: { options, forMs: HOUR_MS } };
}

async function show(call: CommandCall, rest: string): Promise<CommandAnswer> {
  const { command, personas, facts } = call;
  const { chat } = command;
  const name = nameIn(words(rest)) || chat.activePersona;
  const found = await personas.find(chat.id, name);
  if (!found) return notFound(name);
  const { id, model, temperature, aliases, from } = found;
  const lines = [
    `**${nameInWords(found.name)}** (\`${id}\`)`,
    `Model: ${model ?? `${facts.model} (the gateway’s)`}`,
    temperature === null ? '' : `Temperature: ${temperature}`,
    aliases.length === 0 ? '' : `Also called: ${aliases.map(nameInWords).join(', ')}`,
    from === null ? '' : `Based on: ${from}`,
    `Files: \`groups/${chat.id}/${id}/\``,
  ].filter((line) => line !== '');
  const user = userIn(chat) ?? 'whoever it talks with';
  const values = passingMacros(call, { chat, persona: found }, user, null);
  const character =
    expand(found.character || found.parts.personality, { ...values, char: found.name }) ||
    'No character has been written yet.';
  return { text: [...lines, '', character].join('\n') };
}

async function switchTo(call: CommandCall, found: Persona): Promise<CommandAnswer> {
  await call.personas.ensure(call.command.chat.id, found.id);
  return nowActive(call, found, `Switched to ${nameInWords(found.name)}.`);
}

async function create(call: CommandCall, rest: string): Promise<CommandAnswer> {
  const { personas } = call;
  const { chat, tries } = call.command;
  const args = words(rest);
  const from = args.findLastIndex((word) => word.toLowerCase() === 'from');
  const isBased = from > 0 && from === args.length - 2;
  const name = nameIn(isBased ? args.slice(0, from) : args);
  if (!name || from === args.length - 1)
    return { text: 'Usage: /persona new NAME, or /persona new NAME from LIBRARY-PERSONA' };
  const made = await personas.create(chat.id, name, isBased ? (args.at(-1) ?? null) : null);
  // On a retry after a crash, the file may already exist.
  const existing = !made.ok && tries > 1 ? await personas.find(chat.id, name) : null;
  const created = made.ok ? made.persona : existing;
  if (!created) return { text: made.ok ? '' : made.reason };
  return nowActive(call, created, `Created persona ${nameInWords(created.name)} and switched to it.`);
}

async function remove(call: CommandCall, rest: string): Promise<CommandAnswer> {
  const { personas, windows, store } = call;
  const { chat, room, tries } = call.command;
  const name = nameIn(words(rest));
  const leaving = await personas.find(chat.id, name);
  // Its windows will not be used again, so their content is archived; if that fails, the persona stays.
  if (leaving && leaving.id !== DEFAULT_PERSONA) await windows.close(chat.id, leaving.id);
  const running = leaving && (await store.roomNow(room)).running;
  const gone = await personas.remove(chat.id, name);
  // On a retry after a crash, the file may already have been moved.
  if (!gone.ok && tries === 1) return { text: gone.reason };
  const text = `Deleted persona ${gone.ok ? gone.persona.name : name}. Its memory file is kept.`;
  const effects: CommandEffect[] = [];
  if (running && running.personaId === leaving?.id)
    effects.push({ kind: 'stop', room, turnId: running.turnId });
  if (await personas.get(chat.id, chat.activePersona)) return { text, effects };
  effects.push({ kind: 'activate', chatId: chat.id, personaId: DEFAULT_PERSONA });
  return { text: `${text} You are talking with the default persona again.`, effects };
}

async function invite(call: CommandCall, found: Persona): Promise<CommandAnswer> {
  const { chat } = call.command;
  await call.personas.ensure(chat.id, found.id);
  const invited = { ...chat, invited: [...(chat.invited ?? []), found.id] };
  const text = `${nameInWords(found.name)} is here now. Address it by name to talk with it.`;
  return withGreeting(call, found, invited, text, { kind: 'invite', chatId: chat.id, personaId: found.id });
}

async function leave({ command, personas }: CommandCall, found: Persona): Promise<CommandAnswer> {
  const { chat } = command;
  const all = await personas.list(chat.id);
  const present = presentIn(chat, all);
  const gone: CommandEffect = { kind: 'leave', chatId: chat.id, personaId: found.id };
  const text = `${nameInWords(found.name)} has left. Its memory is kept; /persona invite brings it back.`;
  if (found.id !== present[0]) return { text, effects: [gone] };
  // Another persona must become active: the next one present, or `default`.
  const next = present[1] ?? DEFAULT_PERSONA;
  if (next === found.id) return { text: `${nameInWords(found.name)} is the only persona here, so it stays.` };
  return {
    text: `${text} You are talking with ${nameInWords(personaName(all, next))} now.`,
    effects: [gone, { kind: 'activate', chatId: chat.id, personaId: next }],
  };
}

/** The sender's next file is the card (rooms/cards.ts). */
async function awaitCard({ command, store, clock }: CommandCall, rest: string): Promise<CommandAnswer> {
  const { room, sender } = command;
  const until = clock.now() + AWAIT_CARD_MS;
  await putSetting(
    store,
    awaitedCardKey(room, sender.id),
    JSON.stringify({ name: nameIn(words(rest)), until }),
  );
  return {
    text: 'Please send me the card as a file, not as a photo; I wait for it for ten minutes.',
  };
}

/** A card that somebody sent. `rest`: a `SentCard`, as JSON. */
async function importSent(call: CommandCall, rest: string): Promise<CommandAnswer> {
  const { chat, tries } = call.command;
  const sent = sentCardIn(rest);
  // Anybody can type this: a file of another chat is none.
  if (sent === null || !sent.file.startsWith(`${chat.id}/`)) return { text: 'Usage: /persona import [NAME]' };
  const answer = await call.cards.import({ ...sent, chatId: chat.id });
  const replyTo = sent.messageId;
  if (answer.kind !== 'imported' && answer.kind !== 'there') return { text: importText(answer), replyTo };
  const found = await call.personas.get(chat.id, answer.personaId);
  // After a crash, it was this one that made it.
  const isMade = answer.kind === 'imported' || tries > 1;
  const text = answer.kind === 'there' && isMade ? `Imported ${answer.name}.` : importText(answer);
  if (found === null || !isMade) return { text, replyTo };
  return { ...(await nowActive(call, found, text)), replyTo };
}

function nowActive(call: CommandCall, found: Persona, text: string): Promise<CommandAnswer> {
  const { chat } = call.command;
  const active = { ...chat, activePersona: found.id };
  return withGreeting(call, found, active, text, { kind: 'activate', chatId: chat.id, personaId: found.id });
}

/** The answer, with the persona's greeting if it is new in this room. `chat`: with the persona in it. */
async function withGreeting(
  call: CommandCall,
  persona: Persona,
  chat: ChatRecord,
  text: string,
  effect: CommandEffect,
): Promise<CommandAnswer> {
  const personas = await call.personas.list(chat.id);
  const greeting = await greetingFor(call, chat, call.command.room, persona, personas);
  if (greeting === null) return { text, effects: [effect] };
  return { text, effects: [effect, { kind: 'greet', ...greeting }], appears: { chat, persona, greeting } };
}

async function setModel(call: CommandCall, rest: string): Promise<CommandAnswer> {
  const { command, isOwner, personas, facts, settings } = call;
  const args = words(rest);
  const model = args.at(-1);
  const name = nameIn(args.slice(0, -1));
  const choices = settings.choices.filter((choice) => choice.name !== facts.model);
  const lines = choices.map(({ name: choice, contextTokens, inputPrice, outputPrice }) => {
    const known: string[] = [];
    if (contextTokens !== undefined) known.push(`holds ${contextTokens} tokens`);
    if (inputPrice !== undefined) known.push(`${inputPrice} for a million input tokens`);
    if (outputPrice !== undefined) known.push(`${outputPrice} for a million output tokens`);
    return known.length === 0 ? `- ${choice}` : `- ${choice} (${known.join(', ')})`;
  });
  const listed = ['There are:', `- ${facts.model} (the gateway’s)`, ...lines].join('\n');
  if (!model || !name) return { text: `Usage: /persona model NAME MODEL\n\n${listed}` };
  const isListed = model === facts.model || choices.some((choice) => choice.name === model);
  if (!isOwner && !isListed)
    return { text: `${model} is not one of the models you can choose here.\n\n${listed}` };
  const set = await personas.setModel(command.chat.id, name, model);
  return { text: set.ok ? `${nameInWords(set.persona.name)} now uses the model ${model}.` : set.reason };
}

/** A name may consist of several words. */
function nameIn(args: string[]): string {
  return args.join(' ').trim();
}

function notFound(name: string): CommandAnswer {
  const shown = nameInWords(name);
  return {
    text: `There is no persona named ${shown} here. /persona lists them; /persona new ${shown} creates one.`,
  };
}
