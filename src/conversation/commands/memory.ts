/** `/memory`: lets users see and change what a persona remembers. Dispatches each verb to its file. */
import type { Command, CommandAnswer, CommandCall, CommandServices } from './command.js';
import { exportFiles } from './memory-export.js';
import { carryOut, endOf, forget, isErased } from './memory-forget.js';
import { show } from './memory-show.js';
import { undo } from './memory-undo.js';
import { why } from './memory-why.js';
import { verbAndRest } from './parse.js';

const USAGE = [
  'Usage:',
  '/memory — show what I remember here',
  '/memory why — show what my last answer was given: what I remember, recalled and searched, and where it comes from',
  '/memory why WORDS — say where the messages with these words went',
  '/memory forget TEXT — remove a text from memory, conversation and archives; I show what would go and ask first',
  '/memory undo — take back the last change of my memory',
  '/memory export — send the files of my memory',
].join('\n');

type Verb = (call: CommandCall, services: CommandServices, rest: string) => Promise<CommandAnswer>;

const VERBS: Record<string, { run: Verb; changes: boolean }> = {
  show: { run: show, changes: false },
  why: { run: why, changes: false },
  forget: { run: forget, changes: true },
  // The command that a yes to `forget` becomes; typing it counts as a yes.
  yes: { run: carryOut, changes: true },
  // The other answer to `forget`.
  keep: { run: async () => ({ text: 'All stays as it is.' }), changes: true },
  // With a turn's id: what a plain undo becomes that replies to a note on what was saved.
  undo: { run: undo, changes: true },
  // In a group, not everybody should be able to request all the files at once.
  export: { run: exportFiles, changes: true },
};

export const memory: Command = {
  name: 'memory',
  aliases: [],
  description: 'Show, explain, forget, undo or export what I remember',
  verbs: [
    { name: 'show', description: 'Show what I remember here' },
    {
      name: 'why',
      description: 'What my last answer was given to remember, and where it comes from',
      rest: { name: 'words', description: 'Where the messages with these words went', required: false },
    },
    {
      name: 'forget',
      description: 'Remove a text from memory, conversation and archives; I ask first',
      rest: { name: 'text', description: 'What is to be forgotten', required: true },
    },
    { name: 'undo', description: 'Take back the last change of my memory' },
    { name: 'export', description: 'Send the files of my memory' },
  ],
  changes: (argument) => verbOf(argument)?.changes ?? false,
  audited: (argument) => verbAndRest(argument).verb,
  async run(call, services) {
    if (isErased(call.command)) return endOf(call, services);
    const verb = verbOf(call.command.argument);
    return verb ? verb.run(call, services, verbAndRest(call.command.argument).rest) : { text: USAGE };
  },
};

function verbOf(argument: string): { run: Verb; changes: boolean } | undefined {
  const { verb, rest } = verbAndRest(argument);
  if (verb === '') return VERBS.show;
  if (rest === '' && (verb === 'forget' || verb === 'yes')) return undefined;
  return Object.hasOwn(VERBS, verb) ? VERBS[verb] : undefined;
}
