/** Outgoing content: files read from disk, the speaker's name, short labels, answers to presses. */
import { readFile, stat } from 'node:fs/promises';
import type { ChoiceOutcome, OutgoingFile, Part, SendResult, ShownSpeaker } from '../../core/channel.js';
import { sizeInWords } from '../../core/cut.js';
import { describe } from '../../core/errors.js';
import { graphemes } from '../markdown/cut.js';

type NotSent = Extract<SendResult, { kind: 'refused' | 'unreachable' }>;

type Limit = { bytes: number; platform: string };

/** Transient errors: too many open files, for example. */
const PASSING = new Set(['EMFILE', 'ENFILE', 'EBUSY', 'EAGAIN', 'ENOMEM', 'ABORT_ERR']);

export async function findFile(file: OutgoingFile): Promise<{ kind: 'found'; bytes: number } | NotSent> {
  try {
    const found = await stat(file.path);
    if (found.isFile()) return { kind: 'found', bytes: found.size };
    return refused(file, 'is not a file (only files can be sent, not folders)');
  } catch (error) {
    return unreadable(file, error);
  }
}

/** Reads the whole file once, even an empty one. */
export async function readOutgoing(
  file: OutgoingFile,
  limit: Limit,
  signal: AbortSignal,
): Promise<{ kind: 'read'; bytes: Buffer } | NotSent> {
  const found = await findFile(file);
  if (found.kind !== 'found') return found;
  if (found.bytes > limit.bytes) return tooLarge(file, found.bytes, limit);
  try {
    const bytes = await readFile(file.path, { signal });
    // It may have grown meanwhile.
    return bytes.length > limit.bytes ? tooLarge(file, bytes.length, limit) : { kind: 'read', bytes };
  } catch (error) {
    return unreadable(file, error);
  }
}

/** A note in place of an empty file, which platforms refuse. */
export function withEmptyNote(text: string, { name }: OutgoingFile): string {
  const note = `(The file ${name} is empty, so it is not attached.)`;
  return text.trim() === '' ? note : `${text}\n\n${note}`;
}

function tooLarge(file: OutgoingFile, size: number, { bytes, platform }: Limit): NotSent {
  const most = `${platform} takes at most ${Math.round(bytes / 100_000) / 10} MB`;
  return refused(file, `has ${sizeInWords(size)}, and ${most}; make it smaller, or take it from the disk`);
}

function unreadable(file: OutgoingFile, error: unknown): NotSent {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (code === 'ENOENT' || code === 'ENOTDIR') {
    return refused(file, 'is not there any more; ask for it again');
  }
  if (PASSING.has(code)) {
    return { kind: 'unreachable', reason: words(file, `cannot be read now (${code})`), taken: 'no' };
  }
  return refused(file, `cannot be read (${code || describe(error)}); see to its permissions and to the disk`);
}

function refused(file: OutgoingFile, what: string): NotSent {
  return { kind: 'refused', reason: words(file, what) };
}

function words({ name, path }: OutgoingFile, what: string): string {
  return `the file ${JSON.stringify(name)} (${path}) ${what}`;
}

/** Puts the speaker's name in bold before the first part, where several may speak; `compose` reserves room for it. */
export function withSpeakerName(part: Part, { appearance, leads }: ShownSpeaker): Part {
  if (appearance === undefined || appearance.alone || !leads) return part;
  const { text, marks } = part;
  const before = text === '' ? appearance.name : `${appearance.name}\n`;
  return {
    ...part,
    text: before + text,
    marks: [
      { kind: 'bold', offset: 0, length: appearance.name.length },
      ...marks.map((mark) => ({ ...mark, offset: mark.offset + before.length })),
    ],
  };
}

/** One line of at most `most` UTF-16 units, cut between graphemes. */
export function shortLine(text: string, most: number): string {
  const line = text.replace(/[\s\p{Cc}]+/gu, ' ').trim();
  if (line.length <= most) return line;
  let cut = '';
  for (const { segment } of graphemes().segment(line)) {
    if (cut.length + segment.length >= most) break;
    cut += segment;
  }
  return `${cut.trimEnd()}…`;
}

/** Reply to the person who pressed a button; null: none, because the next message says it. */
export const PRESS_ANSWERS: Readonly<Record<ChoiceOutcome, string | null>> = {
  taken: null,
  kept: null,
  over: 'This is over.',
  'not yours': 'This is for somebody else to decide.',
};
