/**
 * At a limit of the day: the chat gets one plain sentence, whoever runs the gateway is told, and then it is silent until
 * the next day. Both go through the outbox under an origin of the day, so that nothing is said twice after a restart or by
 * another process.
 */
import { roomParts } from '../../core/ids.js';
import { authorName } from '../../core/transcript.js';
import { limitFault, limitName, MILLION, type Payer, type Standing } from '../budgets.js';
import { postNews } from '../deliver/news.js';
import { postOnce } from '../deliver/say.js';
import { oneLine, code as quoted } from '../quoting.js';
import type { Services } from '../services.js';
import { payerOf } from './batch.js';
import type { Refusals, Turn } from './room-services.js';

type RefusalServices = Pick<
  Services,
  'store' | 'channels' | 'rulesFor' | 'clock' | 'zone' | 'log' | 'metrics'
> & { deliver: { wake(chatId: string): void } };

const NAME_CHARS = 60;
/** What this process has told today; beyond that the outbox alone knows it. */
const MOST_TOLD = 10_000;

export function createRefusals(services: RefusalServices): Refusals {
  const { clock, zone, log, metrics } = services;
  let told = new Set<string>();
  let day = '';

  /** Whether it is the first time today, as far as this process knows. */
  function isNews(key: string): boolean {
    if (told.has(key)) return false;
    if (told.size >= MOST_TOLD) told = new Set();
    told.add(key);
    return true;
  }

  async function tellChat(turn: Turn, payer: Payer, limit: Standing): Promise<void> {
    const { chat, room, batch } = turn;
    const of = { day: '', chat: '', persona: `:${payer.personaId}`, person: `:${payer.personId}` }[
      limit.scope
    ];
    const key = `limit:${day}:${limitName(limit)}:${chat.id}${of}`;
    if (told.has(key)) return;
    const replyTo = batch.findLast(({ author }) => author.kind === 'person')?.platformMessageId ?? null;
    const { threadId } = roomParts(room);
    const said = { origin: key, text: limitFault(limit).sentence, replyTo, now: clock.now() };
    await postOnce(services, { chat, threadId }, said);
    services.deliver.wake(chat.id);
    if (isNews(key))
      log.info({ room, limit: limitName(limit) }, 'a limit of the day is reached; the chat is told');
  }

  return {
    async tell(turn, limit) {
      const today = zone.date(clock.now());
      if (today !== day) told = new Set();
      day = today;
      const payer = payerOf(turn);
      metrics.count('limited_total', { limit: limitName(limit) });
      await tellChat(turn, payer, limit);
      const key = `limit ${day} ${limitName(limit)}`;
      if (isNews(key)) await postNews(services, { key, text: wordsForOwners(turn, payer, limit, zone.name) });
    },
  };
}

/** Names are anybody's words: quoted, on one line. */
function wordsForOwners({ chat, batch }: Turn, payer: Payer, limit: Standing, zone: string): string {
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
