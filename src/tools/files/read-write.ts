/** `read_file`, `write_file` and `edit_file`: text in the working folder, written whole or not at all. */
import * as z from 'zod';
import { cutAt, decodedAs, markedEncoding, sizeInWords } from '../../core/cut.js';
import type { ToolResult } from '../../core/tool.js';
import { done, failed } from '../results.js';
import { openToRead, PathRefusal, readUpTo, writeWithin } from './paths.js';
import type { FileRoots, ToolFolders } from './roots.js';
import { fileTool } from './run.js';

interface DecodedText {
  text: string;
  /** The file's byte order mark. */
  bom: 'utf-8' | 'utf-16le' | null;
}

/** null unless it is UTF-8, or UTF-16 with a byte order mark. */
export function textOf(bytes: Buffer): DecodedText | null {
  const bom = markedEncoding(bytes);
  if (bom === 'utf-16be' || (bom !== 'utf-16le' && bytes.includes(0))) return null;
  const text = decodedAs(bom ?? 'utf-8', bytes);
  return text === null ? null : { text, bom };
}

function bytesOf({ text, bom }: DecodedText): Buffer {
  const marked = bom === null ? text : `\ufeff${text}`;
  return Buffer.from(marked, bom === 'utf-16le' ? 'utf16le' : 'utf8');
}

/** Without line ends; a final line end adds no empty line. */
export function linesOf(text: string): string[] {
  if (text === '') return [];
  const lines = text.split(/\r?\n/);
  if (lines.at(-1) === '') lines.pop();
  return lines;
}

/** Also where they overlap. Linear, whatever the content (Knuth, Morris and Pratt), unlike built-in searches. */
function positionsOf(text: string, wanted: string, most: number): number[] {
  const fallback = [0];
  for (let n = 1, held = 0; n < wanted.length; n++) {
    while (held > 0 && wanted[n] !== wanted[held]) held = fallback[held - 1] ?? 0;
    if (wanted[n] === wanted[held]) held++;
    fallback.push(held);
  }
  const found: number[] = [];
  for (let n = 0, held = 0; n < text.length && found.length < most; n++) {
    while (held > 0 && text[n] !== wanted[held]) held = fallback[held - 1] ?? 0;
    if (text[n] === wanted[held]) held++;
    if (held < wanted.length) continue;
    found.push(n - wanted.length + 1);
    held = fallback[held - 1] ?? 0;
  }
  return found;
}

/** Larger files are refused: they would have to be in memory as a whole. */
export const MOST_BYTES = 10_000_000;
const LINES = 2000;
const MOST_CHARS = 40_000;

const parameters = z.object({
  path: z.string().describe('Relative to your working folder; media/… is what people sent here.'),
  offset: z.int().min(1).optional().describe('The first line to read, counted from 1. Left out: 1.'),
  limit: z.int().min(1).optional().describe(`How many lines. Left out: ${LINES}.`),
});

export function readFile(folders: ToolFolders) {
  return fileTool(folders, {
    name: 'read_file',
    description:
      folders.skills === null
        ? 'Reads a text file of your working folder, or one that people sent here (media/…).'
        : 'Reads a text file of your working folder, of a skill (skills/…), or one that people sent here (media/…).',
    hint: 'read files',
    parameters,
    risk: 'low',
    isFromOutside: true,
    execute: read,
  });
}

/** The same for callers that have skills and no files. */
export function readSkillFile(folders: ToolFolders) {
  return fileTool(folders, {
    name: 'read_file',
    description: 'Reads a text file of a skill (skills/…).',
    hint: 'read files of skills',
    parameters: parameters.extend({ path: z.string().describe('As the skill names it: skills/…') }),
    risk: 'low',
    ofSkills: true,
    execute: read,
  });
}

/** A skill's text is trusted like the principles. */
async function read(
  { path, offset = 1, limit = LINES }: z.infer<typeof parameters>,
  allowed: FileRoots,
): Promise<ToolResult> {
  const { text, isSkill } = await readText(allowed, path);
  const result = done(excerpt(path, linesOf(text), offset, limit));
  return isSkill ? { ...result, inside: true } : result;
}

/** A file's text, with the bytes it was read from. Throws a `PathRefusal` for a binary file. */
async function readText(allowed: FileRoots, path: string) {
  const { handle, bytes: size, isSkill } = await openToRead(allowed, path);
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

/** As many whole lines as fit, after a line that says which they are and where to continue. */
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

const path = z.string().describe('Relative to your working folder.');

/** Whole or not at all. */
export function writeFile(folders: ToolFolders) {
  return fileTool(folders, {
    name: 'write_file',
    description: 'Writes a text file into your working folder; folders on the way to it are made.',
    hint: 'write files into a working folder of your own',
    parameters: z.object({
      path,
      content: z.string().describe('The whole file; what stood there is replaced.'),
    }),
    risk: 'medium',
    async execute({ path, content }, allowed, { signal }) {
      const bytes = Buffer.from(content);
      if (bytes.length > MOST_BYTES) return failed(tooLarge(path));
      await writeWithin(allowed, path, bytes, signal);
      return done(`${path} was written (${sizeInWords(bytes.length)}).`);
    },
  });
}

/** More are not counted. */
const MOST_COUNTED = 100;

export function editFile(folders: ToolFolders) {
  return fileTool(folders, {
    name: 'edit_file',
    description: 'Replaces one passage of a text file in your working folder.',
    hint: 'change a passage of a file',
    parameters: z.object({
      path,
      old_string: z.string().min(1).describe('What stands there, exactly and in one place alone.'),
      new_string: z.string().describe('What is to stand there instead.'),
    }),
    risk: 'medium',
    async execute({ path, old_string, new_string }, allowed, { signal }) {
      const { text, bom, bytes: expected } = await readText(allowed, path);
      const [wanted, put] = withEndsOf(text, old_string, new_string);
      const found = positionsOf(text, wanted, MOST_COUNTED);
      const [at] = found;
      if (at === undefined) {
        return failed(`Nothing was changed: old_string does not stand in ${path}. It has to match exactly.`);
      }
      if (found.length > 1) {
        const times = `${found.length} times${found.length === MOST_COUNTED ? ' or more' : ''}`;
        return failed(
          `Nothing was changed: old_string stands ${times} in ${path}. Give more of what stands around the place.`,
        );
      }
      const changed = text.slice(0, at) + put + text.slice(at + wanted.length);
      const bytes = bytesOf({ text: changed, bom });
      if (bytes.length > MOST_BYTES) return failed(tooLarge(path));
      const outcome = await writeWithin(allowed, path, bytes, signal, expected);
      return outcome === 'written'
        ? done(`${path} was changed.`)
        : failed(`Nothing was changed: ${path} has changed meanwhile. Read it again.`);
    },
  });
}

/** Models write line ends as \n, even for a file whose lines all end with \r\n. */
function withEndsOf(text: string, wanted: string, put: string): [wanted: string, put: string] {
  if (!text.includes('\r\n') || wanted.includes('\r') || /(?<!\r)\n/.test(text)) return [wanted, put];
  const inWindows = (words: string) => words.replace(/\r?\n/g, '\r\n');
  return [inWindows(wanted), inWindows(put)];
}

function tooLarge(path: string): string {
  return `Nothing was written: ${path} would have more than ${sizeInWords(MOST_BYTES)}.`;
}
