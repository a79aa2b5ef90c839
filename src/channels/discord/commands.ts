/** The chat commands as Discord's own, and what somebody chose of them back to what they would have typed. Pure. */
import type { CommandDescription, CommandVerb } from '../../core/channel.js';
import type { Interaction } from './payload.js';

const CHAT_INPUT = 1;
const SUBCOMMAND = 1;
const TEXT = 3;
/** In guilds and in direct chats with the bot, where the bot itself was invited. */
const WHERE = { contexts: [0, 1], integration_types: [0] };
const LONGEST_DESCRIPTION = 100;
const MOST_CHOICES = 25;
const LONGEST_CHOICE = 100;

/** Every name and alias is one. What it may begin with becomes subcommands; other text, one option. */
export function applicationCommands(commands: readonly CommandDescription[]) {
  return commands.flatMap(({ name, aliases, description, verbs }) =>
    [name, ...aliases].map((each) => ({
      type: CHAT_INPUT,
      name: each,
      description: short(description),
      options: verbs === undefined ? [ANY_TEXT] : verbs.map(subcommand),
      ...WHERE,
    })),
  );
}

const ANY_TEXT = {
  type: TEXT,
  name: 'text',
  description: 'What to say with it, if anything',
  required: false,
};

function subcommand({ name, description, rest }: CommandVerb) {
  const option = { type: SUBCOMMAND, name, description: short(description) };
  if (rest === undefined) return option;
  return {
    ...option,
    options: [
      {
        type: TEXT,
        name: rest.name,
        description: short(rest.description),
        required: rest.required,
        autocomplete: rest.suggest === 'persona',
      },
    ],
  };
}

function short(description: string): string {
  const characters = Array.from(description);
  if (characters.length <= LONGEST_DESCRIPTION) return description;
  return `${characters.slice(0, LONGEST_DESCRIPTION - 1).join('')}…`;
}

type Chosen = NonNullable<Interaction['data']>;

/** `/persona switch Luna`. What people typed stays as it is, since it may be more than a name (`Luna from Muse`). */
export function typedForm({ name, options = [] }: Chosen): string {
  const words = options.flatMap((option) => [
    ...(option.options === undefined && option.value !== undefined ? [] : [option.name]),
    ...[option, ...(option.options ?? [])].map(({ value }) =>
      value === undefined ? '' : String(value).trim(),
    ),
  ]);
  return [`/${name}`, ...words.filter((word) => word !== '')].join(' ');
}

/** What stands in the option that is being typed; null where none is. */
export function beingTyped({ options = [] }: Chosen): string | null {
  const focused = options
    .flatMap((option) => [option, ...(option.options ?? [])])
    .find((option) => option.focused);
  return focused === undefined ? null : String(focused.value ?? '');
}

/**
 * Names that go with what was typed so far. Those that begin with it first; one of several words is put into quotes when
 * it is chosen.
 */
export function choices(names: readonly string[], typed: string): { name: string; value: string }[] {
  const wanted = typed
    .replace(/^["'“„«]/, '')
    .trim()
    .toLowerCase();
  const rank = (name: string) => name.toLowerCase().indexOf(wanted);
  return [...new Set(names)]
    .filter((name) => name.trim() !== '' && rank(name) >= 0 && quoted(name).length <= LONGEST_CHOICE)
    .sort((one, other) => Number(rank(one) > 0) - Number(rank(other) > 0))
    .slice(0, MOST_CHOICES)
    .map((name) => ({ name, value: quoted(name) }));
}

function quoted(name: string): string {
  return /\s/.test(name) && !name.includes('"') ? `"${name}"` : name;
}
