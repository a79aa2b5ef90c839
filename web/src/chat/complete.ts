/** Commands that fit the words in the field: by name after `/`, then their verbs. Pure. */
import type { BoardCommand } from '../../../src/board/protocol.ts';

export interface Completion {
  /** Takes the place of all words in the field. */
  text: string;
  description: string;
}

export function completionsFor(text: string, commands: readonly BoardCommand[]): Completion[] {
  const [, name, verb] = /^\/(\w*)(?:[^\S\n]+(\S*))?$/.exec(text) ?? [];
  if (name === undefined) return [];
  if (verb === undefined) {
    return commands
      .filter((command) => command.name.startsWith(name.toLowerCase()))
      .map((command) => ({
        text: `/${command.name}${command.verbs === undefined ? '' : ' '}`,
        description: command.description,
      }));
  }
  const command = commands.find((each) => each.name === name.toLowerCase());
  return (command?.verbs ?? [])
    .filter((each) => each.name.startsWith(verb.toLowerCase()))
    .map((each) => ({
      text: `/${name} ${each.name}${each.rest === undefined ? '' : ' '}`,
      description: each.description,
    }));
}
