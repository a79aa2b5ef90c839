/**
 * Step 6 of the route: how a turn ends. What it said, or one plain sentence about why it said nothing, goes into the
 * transcript and the outbox.
 */
import { Fault, sentenceOf } from '../../core/errors.js';
import type { PersonaId } from '../../core/ids.js';
import { jobOfEvent } from '../../core/jobs.js';
import { personaName } from '../../core/persona.js';
import { headOfTaskEnd, taskOfEvent } from '../../core/task.js';
import type { Measured, StoredMessage } from '../../core/transcript.js';
import type { TurnContext } from '../context/context.js';
import { filesOfReply, recipientIn, replyOf, type Said } from '../deliver/reply.js';
import { savedNote } from '../deliver/saved.js';
import { attemptOf } from '../deliver/send-one.js';
import { spokenReply } from '../deliver/voice-note.js';
import { appearanceOf, presentIn } from '../participants.js';
import type { LimitStatus, MeteredModel } from '../services.js';
import { calledOf, turnedTo } from './addressing.js';
import type { Made } from './made.js';
import { tellLimit } from './refusals.js';
import type { RoomServices, Turn } from './room-services.js';
import { spoken } from './speakers.js';

export type Finished =
  | { kind: 'finished'; isSomebodyNext: boolean }
  /** Aborted, or the claim was lost: nothing was said. */
  | { kind: 'dropped' };

export interface Ending extends Pick<TurnContext, 'promptMemory'>, Partial<Made> {
  outcome: 'answered' | 'failed' | 'parked';
  /** What the persona said, or the error sentence of a turn that failed. */
  text: string;
  /** What it did instead of saying anything; null if it spoke. */
  wordless: string | null;
  speaker: string;
  lateByHours: number | null;
  /** What it has used; null: nothing. */
  meter: MeteredModel | null;
  /** Size of the turn's last request, if the server counted it. */
  measured: Measured | null;
  /** It answers words from outside, or was given some. */
  tainted?: boolean;
}

/**
 * One transaction: marks the messages as answered, adds the reply to the transcript and the outbox, makes the
 * personas it addresses the next speakers, and releases the room. This is the only place that decides what is delivered.
 */
export async function finish(services: RoomServices, work: Turn, ending: Ending): Promise<Finished> {
  const { store, deliver, speech, clock, metrics } = services;
  const { chat, room, channel, personas, turn, claim } = work;
  const spent = ending.meter?.spent(turn.personaId);
  const isAnswered = ending.outcome === 'answered';
  const addressed = isAnswered ? othersCalled(work, ending.text) : [];
  const exchange = work.exchange && spoken(work.exchange, addressed, services.settings.caps);
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

/** Gives up on a turn: its messages count as answered, and the chat gets one plain sentence about the failure. */
export async function park(services: RoomServices, work: Turn): Promise<void> {
  const { id, personaId, crashes, attempts } = work.turn;
  services.log.error(
    { turn: id, room: work.room, crashes, attempts },
    'a turn failed too often and is given up (parked); the chat is told',
  );
  await finish(services, work, {
    outcome: 'parked',
    text: failureIn(work, sentenceOf(new Fault('internal', 'parked'))),
    speaker: personaName(work.personas, personaId),
    meter: null,
    ...UNANSWERED,
  });
}

/** Nothing is left of a limit of the day: its messages count as answered, and what was done stays. */
export async function refuse(
  services: RoomServices,
  work: Turn,
  limit: LimitStatus,
  meter: MeteredModel | null,
): Promise<Finished> {
  // First, so that a crash in between says it, too.
  await tellLimit(services, work, limit);
  return finish(services, work, {
    outcome: 'failed',
    text: taskEndsIn(work.batch),
    speaker: personaName(work.personas, work.turn.personaId),
    meter,
    ...UNANSWERED,
  });
}

/**
 * What only a schedule led to is tried again, and told of when that was in vain. What became of a task is told all the
 * same: whoever wanted it would wait for ever.
 */
export function failureIn({ batch }: Pick<Turn, 'batch'>, sentence: string): string {
  if (batch.every(({ platformMessageId }) => jobOfEvent(platformMessageId) !== null)) return '';
  return [taskEndsIn(batch), sentence].filter((part) => part !== '').join('\n\n');
}

/** Empty if no task has ended. */
function taskEndsIn(batch: readonly StoredMessage[]): string {
  const ends = batch.filter(({ platformMessageId }) => taskOfEvent(platformMessageId) !== null);
  return ends.map(({ text }) => headOfTaskEnd(text)).join('\n\n');
}

/** What a reply carries besides its text: the same while it is written and when it is final. */
export function saidBy(
  { chat, channel, personas, turn, batch }: Turn,
  speaker: string,
  lateByHours: number | null,
): Said {
  const { id: turnId, personaId } = turn;
  const appearance = appearanceOf(channel, chat, personas, personaId);
  return { turnId, personaId, speaker, appearance, kind: chat.kind, batch, lateByHours, note: null };
}

/** Which of the other personas present the reply addresses. */
function othersCalled({ chat, personas, turn }: Turn, reply: string): PersonaId[] {
  const others = presentIn(chat, personas).filter((id) => id !== turn.personaId);
  if (others.length === 0) return [];
  return turnedTo(reply, personas.filter(({ id }) => others.includes(id)).map(calledOf));
}
