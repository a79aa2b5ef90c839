/** Step 6 of the route: turns that end without an answer. The chat gets one sentence about it, owners a notice. */
import { createHash } from 'node:crypto';
import { describe, Fault, sentenceOf } from '../../core/errors.js';
import { roomParts } from '../../core/ids.js';
import { jobOfEvent } from '../../core/jobs.js';
import { personaName } from '../../core/persona.js';
import { headOfTaskEnd, taskOfEvent } from '../../core/task.js';
import { authorName, type StoredMessage } from '../../core/transcript.js';
import { isLimit, limitFault, limitName, MILLION } from '../daily-limits.js';
import { oneLine, code as quoted } from '../quoting.js';
import { ownerChats } from '../rights.js';
import type { LimitStatus, Payer } from '../services.js';
import { type Ending, type Finished, finish } from './finish.js';
import { payerOf, type RoomServices, type Turn } from './turn.js';

const NAME_CHARS = 60;

/** Gives up on a turn: its messages count as answered. */
export async function park(services: RoomServices, work: Turn): Promise<void> {
  const { id, personaId, crashes, attempts } = work.turn;
  const fields = { turn: id, room: work.room, crashes, attempts };
  services.log.error(fields, 'turn parked after repeated failures; chat notified');
  const text = failureIn(work.batch, sentenceOf(new Fault('internal', 'parked')));
  const speaker = personaName(work.personas, personaId);
  await finish(services, work, { outcome: 'parked', code: 'internal', text, speaker });
}

/** The model gave no answer. */
export async function fail(
  services: RoomServices,
  work: Turn,
  fault: Fault,
  ending: Omit<Ending, 'outcome' | 'text'>,
): Promise<Finished> {
  const limit = isLimit(fault) ? await services.dailyLimits.reached(payerOf(work)) : null;
  if (limit) return refuse(services, work, limit, ending.meter);
  const fields = { code: fault.code, room: work.room, turn: work.turn.id, why: describe(fault) };
  services.log.warn(fields, 'the model gave no answer; chat notified');
  const text = failureIn(work.batch, fault.sentence);
  return finish(services, work, { ...ending, outcome: 'failed', code: fault.code, text });
}

/** A daily limit is reached: the messages count as answered, and completed work stays. */
export async function refuse(
  services: RoomServices,
  work: Turn,
  limit: LimitStatus,
  meter?: Ending['meter'],
): Promise<Finished> {
  // Before `finish`, so that the chat is told even after a crash in between.
  await tellLimit(services, work, limit);
  const speaker = personaName(work.personas, work.turn.personaId);
  const text = taskEndsIn(work.batch);
  const { code } = limitFault(limit);
  return finish(services, work, { outcome: 'failed', code, text, speaker, ...(meter && { meter }) });
}

/** Empty for a turn of schedules alone, which are retried. The outcome of a task is reported in any case. */
function failureIn(batch: readonly StoredMessage[], sentence: string): string {
  if (batch.every(({ platformMessageId }) => jobOfEvent(platformMessageId) !== null)) return '';
  return [taskEndsIn(batch), sentence].filter((part) => part !== '').join('\n\n');
}

/** Empty if no task has ended. */
function taskEndsIn(batch: readonly StoredMessage[]): string {
  const ends = batch.filter(({ platformMessageId }) => taskOfEvent(platformMessageId) !== null);
  return ends.map(({ text }) => headOfTaskEnd(text)).join('\n\n');
}

/** Tells the chat and the owners once a day that a daily limit is reached. The outbox origin contains the day. */
async function tellLimit(services: RoomServices, turn: Turn, limit: LimitStatus): Promise<void> {
  const { clock, zone, log, metrics, deliver } = services;
  const { chat, room, batch } = turn;
  const name = limitName(limit);
  metrics.count('limited_total', { limit: name });
  const day = zone.date(clock.now());
  const payer = payerOf(turn);
  const whose = { day: '', chat: '', persona: `:${payer.personaId}`, person: `:${payer.personId}` };
  const origin = `limit:${day}:${name}:${chat.id}${whose[limit.scope]}`;
  const replyTo = batch.findLast(({ author }) => author.kind === 'person')?.platformMessageId;
  const here = { chat, threadId: roomParts(room).threadId };
  if (!(await deliver.say(here, origin, limitFault(limit).sentence, replyTo))) return;
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

/** Tells owners about a persona's file, once per content. */
export function tellPersonaFaults({ deliver }: RoomServices, faults: readonly string[]): void {
  const text = `What a persona’s file says and cannot be used here:\n${faults.map((fault) => `- ${fault}`).join('\n')}`;
  const digest = createHash('sha256').update(text).digest('hex').slice(0, 16);
  void deliver.tellOwners({ key: `persona.${digest}`, text });
}
