/**
 * `/persona`: list, switch, new, delete, model, show, invite, leave. A persona is a file; which one is active and which
 * are invited is stored with the chat.
 */
import type { ChatRecord } from '../../core/chat-record.js';
import { DEFAULT_PERSONA } from '../../core/ids.js';
import type { ModelChoice } from '../../core/model.js';
import { filledIn, type Persona, personaName } from '../../core/persona.js';
import type { CommandEffect } from '../../core/route-store.js';
import { greetingFor, presentIn, userIn } from '../participants.js';
import { nameInWords } from '../quoting.js';
import type { Command, CommandAnswer, CommandCall, CommandServices } from './command.js';
import { words } from './parse.js';

const USAGE = [
  'Usage:',
  '/persona — list the personas of this chat',
  '/persona switch NAME — talk with another one',
  '/persona new NAME — make one and switch to it (`new NAME from L` takes after the persona L of the library)',
  '/persona invite NAME — have another one here, too; each answers whoever calls it by name',
  '/persona leave NAME — send one away; nobody can address it any more',
  '/persona show NAME — show what is known of one',
  '/persona model NAME MODEL — give one a language model of its own',
  '/persona delete NAME — remove one; its memory file stays',
  'Names with spaces stand in quotes.',
].join('\n');

/** More would hide the rest of the chat on a phone. */
const MOST_BUTTONS = 10;
const HOUR_MS = 3_600_000;

type Verb = (call: CommandCall, services: CommandServices, args: string[]) => Promise<CommandAnswer>;

const VERBS: Record<string, { run: Verb; changes: boolean }> = {
  list: { run: list, changes: false },
  show: { run: show, changes: false },
  switch: { run: switchTo, changes: true },
  new: { run: create, changes: true },
  delete: { run: remove, changes: true },
  model: { run: setModel, changes: true },
  invite: { run: invite, changes: true },
  leave: { run: leave, changes: true },
};

const NAME = { name: 'name', description: 'Whose', required: true, suggest: 'persona' } as const;

export const persona: Command = {
  name: 'persona',
  aliases: ['personas'],
  ofChat: true,
  description: 'List, switch, make, show or delete personas',
  verbs: [
    { name: 'list', description: 'List the personas of this chat' },
    { name: 'switch', description: 'Talk with another one', rest: NAME },
    {
      name: 'new',
      description: 'Make one and switch to it',
      rest: {
        name: 'name',
        description: 'A new name; `NAME from L` takes after the persona L of the library',
        required: true,
      },
    },
    { name: 'show', description: 'Show what is known of one', rest: { ...NAME, required: false } },
    {
      name: 'model',
      description: 'Give one a language model of its own',
      rest: { ...NAME, description: 'Its name, and behind it the model: NAME MODEL' },
    },
    { name: 'delete', description: 'Remove one; its memory file stays', rest: NAME },
    { name: 'invite', description: 'Have another one here, too', rest: NAME },
    { name: 'leave', description: 'Send one away', rest: NAME },
  ],
  changes: (argument) => VERBS[verbOf(argument)]?.changes ?? false,
  // Names alone, of personas and models.
  audited: (argument) => argument,
  async run(call, services) {
    const verb = VERBS[verbOf(call.command.argument)];
    if (!verb) return { text: USAGE };
    return verb.run(call, services, words(call.command.argument).slice(1));
  },
};

function verbOf(argument: string): string {
  const verb = words(argument)[0]?.toLowerCase() ?? 'list';
  return Object.hasOwn(VERBS, verb) ? verb : '';
}

/** Who may switch gets a button for each that is not active. */
async function list(call: CommandCall, { personas }: CommandServices): Promise<CommandAnswer> {
  const { command } = call;
  const all = await personas.list(command.chat.id);
  const present = presentIn(command.chat, all);
  const names = all.map(({ id, name }) => {
    if (id === command.chat.activePersona) return `${nameInWords(name)} (active)`;
    return present.includes(id) ? `${nameInWords(name)} (here)` : nameInWords(name);
  });
  const text = `Personas: ${names.join(', ')}. Use /persona switch NAME to switch.`;
  const others = all.filter(({ id }) => id !== command.chat.activePersona);
  const maySwitch = command.chat.kind === 'direct' || (await call.mayChange()) === 'yes';
  if (others.length === 0 || !maySwitch) return { text };
  const options = others.slice(0, MOST_BUTTONS).map(({ id, name }) => ({
    label: name,
    command: { name: persona.name, argument: `switch ${id}` },
  }));
  return { text, choices: { options, forMs: HOUR_MS } };
}

async function show(
  { command }: CommandCall,
  { personas, facts }: CommandServices,
  args: string[],
): Promise<CommandAnswer> {
  const name = nameIn(args) || command.chat.activePersona;
  const found = await personas.find(command.chat.id, name);
  if (!found) return notFound(name);
  const lines = [
    `**${nameInWords(found.name)}** (\`${found.id}\`)`,
    `Model: ${found.model ?? `${facts.model} (the gateway’s)`}`,
    found.temperature === null ? '' : `Temperature: ${found.temperature}`,
    found.aliases.length === 0 ? '' : `Also called: ${found.aliases.map(nameInWords).join(', ')}`,
    found.from === null ? '' : `Takes after: ${found.from}`,
    `Files: \`groups/${command.chat.id}/${found.id}/\``,
    '',
    filledIn(found.character, { char: found.name, user: userIn(command.chat) ?? 'whoever it talks with' }) ||
      'No character is written down yet.',
  ];
  return { text: lines.filter((line, n) => line !== '' || n === lines.length - 2).join('\n') };
}

async function switchTo(
  call: CommandCall,
  services: CommandServices,
  args: string[],
): Promise<CommandAnswer> {
  const { command } = call;
  const { personas } = services;
  const name = nameIn(args);
  if (!name) return { text: 'Usage: /persona switch NAME' };
  const found = await personas.find(command.chat.id, name);
  if (!found) return notFound(name);
  await personas.ensure(command.chat.id, found.id);
  return nowActive(call, services, found, `Switched to ${nameInWords(found.name)}.`);
}

async function create(call: CommandCall, services: CommandServices, args: string[]): Promise<CommandAnswer> {
  const { command } = call;
  const { personas } = services;
  const from = args.findLastIndex((word) => word.toLowerCase() === 'from');
  const takesAfter = from > 0 && from === args.length - 2;
  const name = nameIn(takesAfter ? args.slice(0, from) : args);
  if (!name || from === args.length - 1)
    return { text: 'Usage: /persona new NAME, or /persona new NAME from LIBRARY-PERSONA' };
  const made = await personas.create(command.chat.id, name, takesAfter ? (args.at(-1) ?? null) : null);
  const there = made.ok
    ? made.persona
    : // A retry after a crash: the file was already created, but the answer was not stored.
      command.tries > 1
      ? await personas.find(command.chat.id, name)
      : null;
  if (!there) return { text: made.ok ? '' : made.reason };
  return nowActive(call, services, there, `Created persona ${nameInWords(there.name)} and switched to it.`);
}

async function remove(
  { command }: CommandCall,
  { personas, windows, store }: CommandServices,
  args: string[],
): Promise<CommandAnswer> {
  const name = nameIn(args);
  if (!name) return { text: 'Usage: /persona delete NAME' };
  const leaving = await personas.find(command.chat.id, name);
  // Nothing will use its windows any more, so their content is archived; if that fails, the persona stays.
  if (leaving && leaving.id !== DEFAULT_PERSONA) await windows.close(command.chat.id, leaving.id);
  const running = leaving && (await store.running(command.room));
  const gone = await personas.remove(command.chat.id, name);
  // A retry after a crash: the file was already moved aside, but the answer was not stored.
  if (!gone.ok && command.tries === 1) return { text: gone.reason };
  const text = `Deleted persona ${gone.ok ? gone.persona.name : name}. Its memory file is kept.`;
  const { id, activePersona } = command.chat;
  // Its running turn is aborted.
  const effects: CommandEffect[] =
    running && running.personaId === leaving?.id
      ? [{ kind: 'stop', room: command.room, turnId: running.turnId }]
      : [];
  if (await personas.get(id, activePersona)) return { text, effects };
  return {
    text: `${text} You are talking with the default persona again.`,
    effects: [...effects, { kind: 'activate', chatId: id, personaId: DEFAULT_PERSONA }],
  };
}

async function invite(call: CommandCall, services: CommandServices, args: string[]): Promise<CommandAnswer> {
  const { chat } = call.command;
  const { personas } = services;
  const name = nameIn(args);
  if (!name) return { text: 'Usage: /persona invite NAME' };
  const found = await personas.find(chat.id, name);
  if (!found) return notFound(name);
  await personas.ensure(chat.id, found.id);
  const invited = { ...chat, invited: [...(chat.invited ?? []), found.id] };
  return appearing(call, services, found, invited, {
    text: `${nameInWords(found.name)} is here now. Call it by its name to talk with it.`,
    effects: [{ kind: 'invite', chatId: chat.id, personaId: found.id }],
  });
}

async function leave(
  { command }: CommandCall,
  { personas }: CommandServices,
  args: string[],
): Promise<CommandAnswer> {
  const { chat } = command;
  const name = nameIn(args);
  if (!name) return { text: 'Usage: /persona leave NAME' };
  const all = await personas.list(chat.id);
  const found = await personas.find(chat.id, name);
  if (!found) return notFound(name);
  const gone = { kind: 'leave' as const, chatId: chat.id, personaId: found.id };
  const text = `${nameInWords(found.name)} has left. Its memory is kept; /persona invite brings it back.`;
  const others = presentIn(chat, all).filter((id) => id !== found.id);
  if (found.id !== presentIn(chat, all)[0]) return { text, effects: [gone] };
  // Another persona must be active: the next one present, or `default`.
  const next = others[0] ?? DEFAULT_PERSONA;
  if (next === found.id) return { text: `${nameInWords(found.name)} is the only one here, so it stays.` };
  return {
    text: `${text} You are talking with ${nameInWords(personaName(all, next))} now.`,
    effects: [gone, { kind: 'activate', chatId: chat.id, personaId: next }],
  };
}

function nowActive(
  call: CommandCall,
  services: CommandServices,
  persona: Persona,
  text: string,
): Promise<CommandAnswer> {
  const { chat } = call.command;
  const effect = { kind: 'activate' as const, chatId: chat.id, personaId: persona.id };
  const active = { ...chat, activePersona: persona.id };
  return appearing(call, services, persona, active, { text, effects: [effect] });
}

/** The answer, with the persona's greeting where it has not been in this room before. */
async function appearing(
  { command: { room } }: CommandCall,
  services: CommandServices,
  persona: Persona,
  chat: ChatRecord,
  answer: CommandAnswer & { effects: CommandEffect[] },
): Promise<CommandAnswer> {
  const personas = await services.personas.list(chat.id);
  const greeting = await greetingFor(services, chat, room, persona, personas);
  if (greeting === null) return answer;
  return {
    ...answer,
    effects: [...answer.effects, { kind: 'greet', ...greeting }],
    appears: { chat, persona, greeting },
  };
}

function notFound(name: string): CommandAnswer {
  return {
    text: `There is no persona named ${nameInWords(name)} here. /persona lists them; /persona new ${nameInWords(name)} makes one.`,
  };
}

// `/persona model NAME MODEL`: gives a persona a language model of its own.

async function setModel(
  { command, isOwner }: CommandCall,
  services: CommandServices,
  args: string[],
): Promise<CommandAnswer> {
  const { personas } = services;
  const model = args.at(-1);
  const name = nameIn(args.slice(0, -1));
  if (!model || !name) return { text: `Usage: /persona model NAME MODEL\n\n${modelsIn(services)}` };
  const named = [services.facts.model, ...services.settings.choices.map((choice) => choice.name)];
  if (!isOwner && !named.includes(model)) {
    return { text: `${model} is not among the models that can be chosen here.\n\n${modelsIn(services)}` };
  }
  const set = await personas.setModel(command.chat.id, name, model);
  return { text: set.ok ? `${nameInWords(set.persona.name)} now uses the model ${model}.` : set.reason };
}

function modelsIn({ facts, settings }: CommandServices): string {
  const own = `- ${facts.model} (the gateway’s)`;
  const others = settings.choices
    .filter(({ name }) => name !== facts.model)
    .map((choice) => `- ${inWords(choice)}`);
  return ['There are:', own, ...others].join('\n');
}

function inWords({ name, contextTokens, inputPrice, outputPrice }: ModelChoice): string {
  const prices = [
    inputPrice === undefined ? '' : `${inputPrice} for a million tokens read`,
    outputPrice === undefined ? '' : `${outputPrice} for a million written`,
  ];
  const known = [contextTokens === undefined ? '' : `holds ${contextTokens} tokens`, ...prices];
  const words = known.filter((each) => each !== '').join(', ');
  return words === '' ? name : `${name} (${words})`;
}

/** A name may consist of several words. */
function nameIn(args: string[]): string {
  return args.join(' ').trim();
}
