/** All chat commands, in the order of `/help`. */
import { approve, deny } from './approve.js';
import { archive } from './archive.js';
import type { Command } from './command.js';
import { help } from './help.js';
import { memory } from './memory.js';
import { pairing } from './pairing.js';
import { persona } from './persona.js';
import { reset } from './reset.js';
import { schedule } from './schedule.js';
import { skill } from './skill.js';
import { skills } from './skills.js';
import { start } from './start.js';
import { status } from './status.js';
import { stop } from './stop.js';
import { usage } from './usage.js';
import { voice } from './voice.js';
import { whoami } from './whoami.js';

export const COMMANDS: readonly Command[] = [
  start,
  reset,
  persona,
  memory,
  archive,
  schedule,
  skills,
  skill,
  voice,
  stop,
  approve,
  deny,
  status,
  usage,
  whoami,
  help,
];

/** What a choice may become, and nobody can type. */
const UNTYPED: readonly Command[] = [pairing];

/** Every name and alias that can be typed. */
export const COMMAND_NAMES: ReadonlySet<string> = new Set(
  COMMANDS.flatMap((command) => [command.name, ...command.aliases]),
);

/** By any of its names, also one that nobody can type. */
export function commandCalled(called: string): Command | undefined {
  return [...COMMANDS, ...UNTYPED].find(({ name, aliases }) => name === called || aliases.includes(called));
}
