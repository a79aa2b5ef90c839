/** Step 6 of the route: ends a turn. Its answer, or a sentence on why there is none, goes to transcript and outbox. */

import { type ArtifactDelta, deltasIn } from '../../core/artifacts.js';
import type { OutgoingFile } from '../../core/channel.js';
import { describe, Fault, sentenceOf } from '../../core/errors.js';
import { type PersonaId, roomParts } from '../../core/ids.js';
import { jobOfEvent } from '../../core/jobs.js';
import { personaName } from '../../core/persona.js';
import { headOfTaskEnd, taskOfEvent } from '../../core/task.js';
import { authorName, type Measured, type StoredMessage } from '../../core/transcript.js';
import { ownerChats } from '../access.js';
import type { TurnContext } from '../context/context.js';
import { limitFault, limitName, MILLION } from '../daily-limits.js';
import { savedNote } from '../deliver/memory-note.js';
import { filesOfReply, type ReplyInfo, recipientIn, replyOf } from '../deliver/reply.js';
import { attemptOf } from '../deliver/send.js';
import { spokenReply } from '../deliver/voice.js';
import { appearanceOf, presentIn } from '../participants.js';
import { counted, oneLine, code as quoted } from '../quoting.js';
import type { LimitStatus, MeteredModel, Payer } from '../services.js';
import { roundAfterReply } from './group-round.js';
import { calledOf, turnedTo } from './names.js';
import { payerOf, type RoomServices, senderOf, type Turn } from './turn.js';

export type Finished =
  | { kind: 'finished'; isSomebodyNext: boolean }
  /** Aborted, or the claim was lost: nothing was said. */
  | { kind: 'dropped' };

export interface Ending extends Partial<Made> {
  promptMemory: TurnContext['promptMemory'];
  outcome: 'answered' | 'failed' | 'parked';
  /** The persona's answer, or the error sentence of a failed turn. */
  text: string;
  /** The action that replaced words; null if it spoke. */
  wordless: string | null;
  speaker: string;
  lateByHours: number | null;
  /** Meters the turn's usage; null if there is none. */
  meter: MeteredModel | null;
  /** Size of the turn's last request, if the server counted it. */
  measured: Measured | null;
  /** It answers untrusted text or was given some. */
  tainted?: boolean;
}

/**
 * In one transaction, marks the messages as answered, adds the reply to the transcript and the outbox, makes the addressed personas
 * the next speakers, and releases the room. The only place that decides what is delivered.
 */
export async function finish(services: RoomServices, work: Turn, ending: Ending): Promise<Finished> {
  const { store, deliver, speech, clock, metrics } = services;
  const { chat, room, channel, personas, turn, claim } = work;
  const spent = ending.meter?.spent(turn.personaId);
  const isAnswered = ending.outcome === 'answered';
  const addressed = isAnswered ? othersCalled(work, ending.text) : [];
  const exchange = work.exchange && roundAfterReply(work.exchange, addressed, services.settings.caps);
  const late = isAnswered && ending.wordless === null ? ending.lateByHours : null;
  const note = turn.steps.length === 0 ? null : await savedNote(services, chat, turn);
  const said = { ...saidBy(work, ending.speaker, late), note };
  const deliveries = replyOf(channel, said, ending.text);
  if (isAnswered && speech !== null && channel.voiceNotes)
    deliveries.push(...spokenReply(speech, work, ending.text, deliveries));
  if (ending.files) deliveries.push(...filesOfReply(channel, said, ending.files, deliveries));
  // If the chat's delivery lane is free, the first delivery is claimed in the same transaction and sent at once.
  const lane = deliver.take(chat.id, chat.kind, channel);
  try {
    const finished = await store.finish({
      claim,
      turnId: turn.id,
      outcome: ending.outcome,
      reply: isAnswered ? (ending.wordless ?? ending.kept ?? ending.text) : null,
      wordless: ending.wordless !== null,
      tainted: ending.tainted ?? false,
      hearers: [...new Set([...presentIn(chat, personas), ...(work.exchange?.party ?? [])])],
      addressed,
      exchange,
      deliveries,
      send: lane ? attemptOf(services, channel, recipientIn(chat, room)) : null,
      usage: spent?.usage ?? null,
      ...(spent?.personId !== undefined && { personId: spent.personId }),
      measured: ending.measured,
      given: isAnswered ? ending.promptMemory : null,
      now: clock.now(),
    });
    if (finished === 'lost') return { kind: 'dropped' };
    ending.meter?.paid();
    if (lane && finished.first) lane.send(finished.first, deliveries.length);
    else deliver.wake(chat.id);
  } finally {
    lane?.leave();
  }
  if (isAnswered && ending.promptMemory) {
    const { revision } = work;
    services.windowCache.keep({ room, personaId: turn.personaId, revision }, { memory: ending.promptMemory });
  }
  services.recall.heard(room);
  metrics.count('turns_total', { outcome: ending.outcome });
  return { kind: 'finished', isSomebodyNext: exchange !== null };
}

const UNANSWERED = { wordless: null, lateByHours: null, measured: null, promptMemory: null };

/** Gives up on a turn: its messages count as answered, and the chat gets one sentence about the failure. */
export async function park(services: RoomServices, work: Turn): Promise<void> {
  const { id, personaId, crashes, attempts } = work.turn;
  services.log.error(
    { turn: id, room: work.room, crashes, attempts },
    'turn parked after repeated failures; chat notified',
  );
  await finish(services, work, {
    outcome: 'parked',
    text: failureIn(work, sentenceOf(new Fault('internal', 'parked'))),
    speaker: personaName(work.personas, personaId),
    meter: null,
    ...UNANSWERED,
  });
}

/** A daily limit is reached: the messages count as answered, and completed work stays. */
export async function refuse(
  services: RoomServices,
  work: Turn,
  limit: LimitStatus,
  meter: MeteredModel | null,
): Promise<Finished> {
  // Before `finish`, so that the chat is told even after a crash in between.
  await tellLimit(services, work, limit);
  return finish(services, work, {
    outcome: 'failed',
    text: taskEndsIn(work.batch),
    speaker: personaName(work.personas, work.turn.personaId),
    meter,
    ...UNANSWERED,
  });
}

/** Empty for a turn of schedules alone, which are retried. The outcome of a task is reported in any case. */
export function failureIn({ batch }: Turn, sentence: string): string {
  if (batch.every(({ platformMessageId }) => jobOfEvent(platformMessageId) !== null)) return '';
  return [taskEndsIn(batch), sentence].filter((part) => part !== '').join('\n\n');
}

/** Empty if no task has ended. */
function taskEndsIn(batch: readonly StoredMessage[]): string {
  const ends = batch.filter(({ platformMessageId }) => taskOfEvent(platformMessageId) !== null);
  return ends.map(({ text }) => headOfTaskEnd(text)).join('\n\n');
}

/** The data a reply carries besides its text, both while it is written and when it is final. */
export function saidBy(
  { chat, channel, personas, turn, batch }: Turn,
  speaker: string,
  lateByHours: number | null,
): ReplyInfo {
  const { id: turnId, personaId } = turn;
  const appearance = appearanceOf(channel, chat, personas, personaId);
  return { turnId, personaId, speaker, appearance, kind: chat.kind, batch, lateByHours, note: null };
}

/** The other personas present that the reply addresses. */
function othersCalled({ chat, personas, turn }: Turn, reply: string): PersonaId[] {
  const others = presentIn(chat, personas).filter((id) => id !== turn.personaId);
  if (others.length === 0) return [];
  return turnedTo(reply, personas.filter(({ id }) => others.includes(id)).map(calledOf));
}

/** An answer's artifact blocks (`core/artifacts.ts`), as files. */
interface Made {
  /** The text people see. */
  text: string;
  /** The text kept in the transcript: the words, and a note per artifact without its content. */
  kept: string;
  files: OutgoingFile[];
}

const MOST_TITLE = 100;

/** Writes an answer's artifacts before its transaction; after a crash, the next run repeats it. null: aborted. */
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
    services.log.warn(why, 'malformed artifacts of an answer were skipped');
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
      // Artifacts that a tool of this turn made exist already.
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

const NAME_CHARS = 60;

/** Tells the chat and the owners once a day that a daily limit is reached. The outbox origin contains the day. */
async function tellLimit(services: RoomServices, turn: Turn, limit: LimitStatus): Promise<void> {
  const { clock, zone, log, metrics, deliver } = services;
  const { chat, room, batch } = turn;
  const name = limitName(limit);
  metrics.count('limited_total', { limit: name });
  const day = zone.date(clock.now());
  const payer = payerOf(turn);
  const whose = { day: '', chat: '', persona: `:${payer.personaId}`, person: `:${payer.personId}` }[
    limit.scope
  ];
  const replyTo = batch.findLast(({ author }) => author.kind === 'person')?.platformMessageId;
  const here = { chat, threadId: roomParts(room).threadId };
  const isNew = await deliver.say(
    here,
    `limit:${day}:${name}:${chat.id}${whose}`,
    limitFault(limit).sentence,
    replyTo,
  );
  if (!isNew) return;
  log.info({ room, limit: name }, 'daily limit reached; chat notified');
  const key = `limit ${day} ${name}`;
  try {
    const text = wordsForOwners(turn, payer, limit, zone.name);
    for (const owners of await ownerChats(services)) {
      const isTold = await deliver.say({ chat: owners, threadId: null }, `news:${key}:${owners.id}`, text);
      if (isTold) log.warn({ notice: key }, text);
    }
  } catch (error) {
    log.error({ err: error, notice: key }, 'owners could not be notified');
  }
}

/** Names are user input: quoted, on one line. */
function wordsForOwners({ chat, batch }: Turn, payer: Payer, limit: LimitStatus, zone: string): string {
  const name = (text: string) => quoted(oneLine(text, NAME_CHARS));
  const author = batch.findLast(({ author: by }) => by.kind === 'person')?.author;
  const here = `the chat ${name(chat.title)} (${chat.id})`;
  const who = {
    day: 'All chats together have',
    chat: `First today, ${here} has`,
    persona: `First today, the persona ${name(payer.personaId)} of ${here} has`,
    person: `First today, ${author ? `${name(authorName(author))} ` : ''}(${payer.personId}) has`,
  }[limit.scope];
  const most = limit.unit === 'money' ? limit.most / MILLION : limit.most;
  return (
    `${who} reached \`limits.${limitName(limit)}\` (${most}): no model is asked for more until midnight (${zone}). ` +
    'To allow more, raise it in config.yaml and restart; `/usage` shows what was used.'
  );
}
