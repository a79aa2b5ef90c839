/** `read_file`: text from the working folder, of what people sent, and of skills. */
import * as z from 'zod';
import { sizeInWords } from '../../core/bytes.js';
import { cutAt } from '../../core/cut.js';
import type { Tool, ToolResult } from '../../core/tool.js';
import { done } from '../results.js';
import { openToRead, PathRefusal, readUpTo } from './paths.js';
import type { Folders, Places } from './places.js';
import { inPlaces, inSkills } from './run.js';
import { linesOf, type Text, textOf } from './text.js';

/** A larger file is not read: it would have to be in memory as a whole. */
export const MOST_BYTES = 10_000_000;
const LINES = 2000;
const MOST_CHARS = 40_000;

const parameters = z.object({
  path: z.string().describe('Relative to your working folder; media/… is what people sent here.'),
  offset: z.int().min(1).optional().describe('The first line to read, counted from 1. Left out: 1.'),
  limit: z.int().min(1).optional().describe(`How many lines. Left out: ${LINES}.`),
});

type Parameters = z.infer<typeof parameters>;

export function readFile(folders: Folders): Tool<Parameters> {
  return {
    name: 'read_file',
    description:
      folders.skills === null
        ? 'Reads a text file of your working folder, or one that people sent here (media/…).'
        : 'Reads a text file of your working folder, of a skill (skills/…), or one that people sent here (media/…).',
    hint: 'read files',
    parameters,
    risk: 'low',
    isFromOutside: true,
    execute: (given, context) => inPlaces(folders, context, (places) => read(places, given)),
  };
}

/** The same for whoever has skills, and no files. */
export function readSkillFile(folders: Folders): Tool<Parameters> {
  return {
    name: 'read_file',
    description: 'Reads a text file of a skill (skills/…).',
    hint: 'read files of skills',
    parameters: parameters.extend({ path: z.string().describe('As the skill names it: skills/…') }),
    risk: 'low',
    execute: (given, context) => inSkills(folders, context, (places) => read(places, given)),
  };
}

/** A skill's are the operator's words, as the principles are. */
async function read(places: Places, { path, offset = 1, limit = LINES }: Parameters): Promise<ToolResult> {
  const { text, isSkill } = await readText(places, path);
  const result = done(excerpt(path, linesOf(text), offset, limit));
  return isSkill ? { ...result, inside: true } : result;
}

/** The text of a file, with the bytes that it was read from. Throws a `PathRefusal` for what is none. */
export async function readText(
  places: Places,
  path: string,
): Promise<Text & { bytes: Buffer; isSkill: boolean }> {
  const { handle, bytes: size, isSkill } = await openToRead(places, path);
  try {
    const bytes = size > MOST_BYTES ? null : await readUpTo(handle, MOST_BYTES + 1);
    if (bytes === null || bytes.length > MOST_BYTES) {
      throw new PathRefusal(
        `${path} is too large: it has ${sizeInWords(size)}, and at most ${sizeInWords(MOST_BYTES)} can be read.`,
      );
    }
    const text = textOf(bytes);
    if (text === null) {
      throw new PathRefusal(`${path} is no text in UTF-8 but a binary file of ${sizeInWords(size)}.`);
    }
    return { ...text, bytes, isSkill };
  } finally {
    await handle.close();
  }
}

/** As many whole lines as fit, with a line before them that says which they are and where to go on. */
function excerpt(path: string, lines: string[], offset: number, limit: number): string {
  if (lines.length === 0) return `[${path} is empty.]`;
  const counted = lines.length === 1 ? '1 line' : `${lines.length} lines`;
  if (offset > lines.length) return `[${path} has ${counted}: nothing stands at line ${offset}.]`;
  const shown: string[] = [];
  let chars = 0;
  for (const line of lines.slice(offset - 1, offset - 1 + limit)) {
    if (shown.length > 0 && chars + line.length > MOST_CHARS) break;
    chars += line.length + 1;
    shown.push(line.length > MOST_CHARS ? `${cutAt(line, MOST_CHARS)} [… ${line.length} characters]` : line);
  }
  const last = offset + shown.length - 1;
  const which =
    shown.length === lines.length ? `all ${counted}` : `lines ${offset} to ${last} of ${lines.length}`;
  const next = last < lines.length ? `; go on with offset ${last + 1}` : '';
  return `[${path}: ${which}${next}]\n${shown.join('\n')}`;
}
