/**
 * At a daily limit the chat gets one plain sentence, and the owners are told; then it is silent until the next day. Both go
 * through the outbox under an origin of the day, so that nothing is said twice.
 */
import { roomParts } from '../../core/ids.js';
import { authorName } from '../../core/transcript.js';
import { limitFault, limitName, MILLION } from '../daily-limits.js';
import { chatsOfOwners } from '../owner-chats.js';
import { oneLine, code as quoted } from '../quoting.js';
import type { LimitStatus, Payer } from '../services.js';
import { payerOf } from './batch.js';
import type { RoomServices, Turn } from './room-services.js';

const NAME_CHARS = 60;

/** Says so where and to whom it has not been said today. */
export async function tellLimit(services: RoomServices, turn: Turn, limit: LimitStatus): Promise<void> {
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
    for (const owners of await chatsOfOwners(services)) {
      const isTold = await deliver.say({ chat: owners, threadId: null }, `news:${key}:${owners.id}`, text);
      if (isTold) log.warn({ notice: key }, text);
    }
  } catch (error) {
    log.error({ err: error, notice: key }, 'owners could not be notified');
  }
}

/** Names are anybody's words: quoted, on one line. */
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
