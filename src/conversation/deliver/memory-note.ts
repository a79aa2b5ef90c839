/** Step 6 of the route: the line under a reply about what was saved. Not in the transcript, so that no model imitates it. */
import type { Part } from '../../core/channel.js';
import type { ChatRecord } from '../../core/chat-record.js';
import { cutAt } from '../../core/cut.js';
import { describe } from '../../core/errors.js';
import { changedLines, netChanges, type Version } from '../../core/memory.js';
import type { StoredTurn } from '../../core/store.js';
import { withoutBullet } from '../quoting.js';
import type { BaseServices } from '../services.js';

/** Maximum length of each line and of the whole; `full` must fit with escapes into Discord's 2,000 characters. */
const QUIET = { line: 80, all: 160 };
const FULL = { line: 120, all: 400 };
const MOST_VERSIONS = 100;

/** The line of a turn that called tools; null if nothing was saved or the chat does not show it. */
export async function savedNote(
  { store, memory, settings, log }: BaseServices,
  { id: chatId, kind }: ChatRecord,
  { id: turnId }: StoredTurn,
): Promise<string | null> {
  const how = settings.announce ?? (kind === 'direct' ? 'quiet' : 'off');
  if (how === 'off') return null;
  const versions = await store.versions({ chatId, personaId: null, most: MOST_VERSIONS, turnId });
  const saved: Version[] = [];
  try {
    for (const change of netChanges(versions)) if (await stands(memory, change)) saved.push(change);
  } catch (error) {
    log.warn({ chat: chatId, turn: turnId, why: describe(error) }, 'sent a reply without its memory note');
    return null;
  }
  return how === 'quiet' ? quietly(saved) : inFull(saved);
}

/** A version is stored before its file is written, so after a crash in between the file may lack it. */
async function stands(
  memory: BaseServices['memory'],
  { chatId, file, tier, after }: Version,
): Promise<boolean> {
  const [folder = '', name = ''] = file.split('/');
  if (tier !== null) return (await memory.readTier({ chatId, personaId: folder }, tier)) === after;
  const log = await memory.readDaily(chatId, name.replace(/\.md$/, ''));
  return log.split('\n').some((line) => line.trim() === after);
}

/** Example: `— remembered: likes roses; planted a rose (+2)`. */
function quietly(saved: Version[]): string | null {
  const changes = saved.map(({ before, after }) => changedLines(before, after));
  const came = worded(changes.flatMap(({ came }) => came));
  const went = worded(changes.flatMap(({ went }) => went));
  const [verb, lines] = came.length > 0 ? ['remembered', came] : ['no longer remembered', went];
  if (lines.length === 0) return null;
  const [first = '', ...others] = lines.map((line) => shortened(line, QUIET.line));
  // The first line is shown in any case.
  const shown = [first, ...fitting(others, QUIET.all - first.length, 0)];
  const rest = lines.length > shown.length ? ` (+${lines.length - shown.length})` : '';
  return `— ${verb}: ${shown.join('; ')}${rest}`;
}

/** Each file with its added and removed lines. */
function inFull(saved: Version[]): string | null {
  const lines = saved.flatMap(({ file, tier, before, after }) => {
    const { came, went } = changedLines(before, after);
    const changed = [...worded(came).map((line) => `+ ${line}`), ...worded(went).map((line) => `− ${line}`)];
    return changed.length === 0 ? [] : [`— ${file}${tier === null ? '' : `, tier ${tier}`}`, ...changed];
  });
  if (lines.length === 0) return null;
  const short = lines.map((line) => shortened(line, FULL.line));
  const shown = fitting(short, FULL.all, 1);
  if (lines.length > shown.length) shown.push(`(+${lines.length - shown.length})`);
  return shown.join('\n');
}

/** The first lines within this many characters. `gap`: characters between two. */
function fitting(lines: string[], most: number, gap: number): string[] {
  let chars = 0;
  const end = lines.findIndex((line) => {
    chars += line.length + gap;
    return chars > most;
  });
  return end < 0 ? lines : lines.slice(0, end);
}

/** Without list markers, and without lines that are only headings. */
function worded(lines: string[]): string[] {
  return lines
    .filter((line) => !/^#{1,6}\s/.test(line))
    .map((line) => withoutBullet(line).replaceAll(/\s+/g, ' '))
    .filter((line) => line !== '');
}

function shortened(line: string, most: number): string {
  return line.length <= most ? line : `${cutAt(line, most - 1).trimEnd()}…`;
}

/** The parts of a reply, with the note below the text of the last one. */
export function withNote(parts: Part[], note: string): Part[] {
  const last = parts.at(-1) ?? { text: '', marks: [] };
  const gap = last.text === '' ? '' : '\n\n';
  const at = last.text.length + gap.length;
  const marks = [...last.marks, { kind: 'italic' as const, offset: at, length: note.length }];
  return [...parts.slice(0, -1), { ...last, text: last.text + gap + note, marks, note: at }];
}

export function roomForNote(note: string): number {
  return note.length + 4;
}
