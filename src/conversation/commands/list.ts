/** All chat commands, in the order of `/help`. */
import { again, edit, goOn, undo } from './anew.js';
import type { ChatCommand } from './command.js';
import { greeting } from './greeting.js';
import { lore } from './lore.js';
import { memory } from './memory.js';
import { me, note, scene } from './notes.js';
import { approve, deny, pairing } from './owners.js';
import { persona } from './persona.js';
import { archive, reset, start, stop, voice } from './room.js';
import { schedule } from './schedule.js';
import { skill, skills } from './skills.js';
import { help, status, usage, whoami } from './status.js';

const TALK = [
  start,
  reset,
  again,
  goOn,
  edit,
  undo,
  persona,
  greeting,
  memory,
  lore,
  note,
  scene,
  me,
  archive,
  schedule,
  skills,
  skill,
  voice,
  stop,
];
export const COMMANDS: readonly ChatCommand[] = [...TALK, approve, deny, status, usage, whoami, help];

export const COMMAND_NAMES: ReadonlySet<string> = new Set(
  COMMANDS.flatMap((command) => [command.name, ...command.aliases]),
);

/** Finds a command by any of its names; `pairing` can only be chosen by button. */
export function commandCalled(called: string): ChatCommand | undefined {
  return [...COMMANDS, pairing].find(({ name, aliases }) => name === called || aliases.includes(called));
}
