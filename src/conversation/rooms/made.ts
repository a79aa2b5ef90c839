/** Step 6 of the route: an answer's artifact blocks (`core/artifacts.ts`) become files. */
import { type ArtifactDelta, type Artifacts, deltasIn } from '../../core/artifacts.js';
import type { OutgoingFile } from '../../core/channel.js';
import { describe, Fault } from '../../core/errors.js';
import { counted, oneLine } from '../quoting.js';
import { type RoomServices, senderOf, type Turn } from './turn.js';

interface Made {
  /** The text people see. */
  text: string;
  /** The text kept in the transcript: the words, and a note per artifact without its content. */
  kept: string;
  files: OutgoingFile[];
}

const MOST_TITLE = 100;
const MOST_REF = 2_000;

/** Writes an answer's artifacts before its transaction; after a crash, the next run repeats it. null: aborted. */
export async function madeIn(
  services: RoomServices,
  work: Turn,
  answer: string,
  signal: AbortSignal,
): Promise<Made | null> {
  const { artifacts, log, settings } = services;
  const { text, deltas, leftOut } = deltasIn(answer);
  if (deltas.length === 0 || artifacts === undefined) return { text: answer, kept: answer, files: [] };
  if (leftOut.length > 0) {
    const fields = { turn: work.turn.id, items: leftOut.length, why: leftOut[0] };
    log.warn(fields, 'malformed artifacts of an answer were skipped');
  }
  const { sendsPerTurn } = settings.callLimits;
  const words = [text];
  const files: OutgoingFile[] = [];
  const notes: string[] = [];
  for (const delta of deltas) {
    const outcome = await make(services, artifacts, work, delta, signal);
    if (signal.aborted) return null;
    if (typeof outcome === 'string') {
      words.push(outcome);
      continue;
    }
    const { name, file } = outcome;
    if (file) files.push(file);
    const title = oneLine(delta.title ?? '', MOST_TITLE);
    notes.push(title === '' ? `[file: ${name}]` : `[file: ${name}, ${title}]`);
  }
  if (leftOut.length > 0) {
    const left = counted(leftOut.length, 'more file');
    words.push(`_(${left} could not be made: that part of my answer was malformed.)_`);
  }
  const unsent = files.splice(sendsPerTurn).length;
  if (unsent > 0) {
    words.push(`_(${counted(unsent, 'more file')} kept, but not sent: I may send ${sendsPerTurn} at once.)_`);
  }
  const said = words.filter((each) => each !== '').join('\n\n');
  return { text: said, kept: [said, ...notes].filter((each) => each !== '').join('\n'), files };
}

/** The file, or words in its place. */
async function make(
  { audit, log }: RoomServices,
  artifacts: Artifacts,
  { chat, turn, batch }: Turn,
  { id, title, type, content, ref }: ArtifactDelta,
  signal: AbortSignal,
): Promise<string | { name: string; file: OutgoingFile | null }> {
  try {
    if (content === undefined) {
      // Artifacts that a tool of this turn made exist already.
      const known = await artifacts.find(turn.id, id);
      if (known !== null) return { name: known.name, file: null };
      const where = ref === undefined ? [] : [oneLine(ref, MOST_REF)];
      return [oneLine(title ?? '', MOST_TITLE) || id, ...where].join(': ');
    }
    const who = `${chat.id}/${turn.personaId}`;
    const what = 'artifact in an answer';
    await audit.note({ kind: 'tool', who, where: chat.id, what, word: senderOf(batch) || null });
    const made = { title: title ?? null, type: type ?? null, content };
    const written = await artifacts.write({ taskId: turn.id, id, chatId: chat.id, ...made }, signal);
    if (written.ok) return { name: written.file?.name ?? id, file: written.file };
    return `_(The file ${id} could not be made: ${written.reason})_`;
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    log.warn({ turn: turn.id, why: describe(error) }, 'an artifact of an answer could not be written');
    return `_(The file ${id} could not be made. ${error.sentence})_`;
  }
}
