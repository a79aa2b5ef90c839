/**
 * Between steps 5 and 6 of the route: the artifacts that an answer holds in blocks (`core/artifacts.ts`) become
 * files, which go out with its words. They are written before the transaction that ends the turn: a crash in between
 * leaves a file that nobody was sent, and the next run writes it again.
 */
import { type ArtifactDelta, deltasIn } from '../../core/artifacts.js';
import type { OutgoingFile } from '../../core/channel.js';
import { describe, Fault } from '../../core/errors.js';
import { counted, oneLine } from '../quoting.js';
import { senderOf } from './batch.js';
import type { RoomServices, Turn } from './room-services.js';

export interface Made {
  /** What people are told in words. */
  text: string;
  /** What the transcript keeps: the words, and what was made, without its content. */
  kept: string;
  files: OutgoingFile[];
}

const MOST_TITLE = 100;

/** For a turn that may make artifacts. null: aborted. */
export async function madeIn(
  services: RoomServices,
  work: Turn,
  answer: string,
  signal: AbortSignal,
): Promise<Made | null> {
  const nothing = { text: answer, kept: answer, files: [] };
  const { text, deltas, leftOut } = deltasIn(answer);
  if (deltas.length === 0) return nothing;
  if (leftOut.length > 0) {
    const why = { turn: work.turn.id, items: leftOut.length, why: leftOut[0] };
    services.log.warn(why, 'artifacts of an answer were left out');
  }
  const { sendsPerTurn } = services.settings.callLimits;
  const files: OutgoingFile[] = [];
  const words = [text];
  const notes: string[] = [];
  let unsent = 0;
  for (const delta of deltas) {
    const outcome = await outcomeOf(services, work, delta, signal);
    if (signal.aborted) return null;
    if ('words' in outcome) words.push(outcome.words);
    else if (outcome.file !== null && files.length < sendsPerTurn) files.push(outcome.file);
    else if (outcome.file !== null) unsent += 1;
    if ('note' in outcome) notes.push(outcome.note);
  }
  if (leftOut.length > 0)
    words.push(
      `_(${counted(leftOut.length, 'more file')} could not be made: that part of my answer was malformed.)_`,
    );
  if (unsent > 0)
    words.push(`_(${counted(unsent, 'more file')} kept, but not sent: I may send ${sendsPerTurn} at once.)_`);
  const said = words.filter((each) => each !== '').join('\n\n');
  return { text: said, kept: [said, ...notes].filter((each) => each !== '').join('\n'), files };
}

type Outcome = { words: string } | { file: OutgoingFile | null; note: string };

async function outcomeOf(
  { artifacts, audit, log }: RoomServices,
  { chat, turn, batch }: Turn,
  { id, title, type, content, ref }: ArtifactDelta,
  signal: AbortSignal,
): Promise<Outcome> {
  const called = oneLine(title ?? '', MOST_TITLE);
  if (artifacts === undefined) return { words: '' };
  try {
    if (content === undefined) {
      // What a tool of this very turn has made is here already.
      const known = await artifacts.find(turn.id, id);
      if (known !== null) return { file: null, note: noteOf(known.name, called) };
      const where = ref === undefined ? [] : [oneLine(ref, 2_000)];
      return { words: [called || id, ...where].join(': ') };
    }
    const who = `${chat.id}/${turn.personaId}`;
    await audit.note({
      kind: 'tool',
      who,
      where: chat.id,
      what: 'artifact in an answer',
      word: senderOf(batch) || null,
    });
    const written = await artifacts.write(
      { taskId: turn.id, id, title: title ?? null, type: type ?? null, content, chatId: chat.id },
      signal,
    );
    if (written.ok) return { file: written.file, note: noteOf(written.file?.name ?? id, called) };
    return { words: `_(The file ${id} could not be made: ${written.reason})_` };
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    log.warn({ turn: turn.id, why: describe(error) }, 'an artifact of an answer could not be written');
    return { words: `_(The file ${id} could not be made. ${error.sentence})_` };
  }
}

function noteOf(name: string, title: string): string {
  return title === '' ? `[file: ${name}]` : `[file: ${name}, ${title}]`;
}
