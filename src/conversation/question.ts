/**
 * Beside step 5 of the route: a question to people about a call: in the control chats, or, where there are none, in the
 * chat itself for its owners. It shows exactly what would run: its arguments are somebody's words, so nothing in them
 * looks like another part of it.
 */
import type { Offer } from '../core/access.js';
import { type AskedCall, type NewQuestion, offerKeyOf } from '../core/approval.js';
import type { ChatRecord } from '../core/chat-record.js';
import { cutAt } from '../core/cut.js';
import type { NewDelivery, Post } from '../core/delivery.js';
import { addressOf, type ChatId, channelOf, DEFAULT_PERSONA, type RoomId, roomParts } from '../core/ids.js';
import { withButtons, withNumbers } from './deliver/choices.js';
import { deliveriesOf } from './deliver/reply.js';
import { counted, oneLine, code as quoted } from './quoting.js';
import type { Services } from './services.js';

/** Whose call it is, and where these words may be asked about. */
export interface Asking {
  /** The chat of the call. */
  chat: ChatRecord;
  room: RoomId;
  /** In which the question stands, if there are any. */
  controlChats: ChatId[];
}

type AskingServices = Pick<Services, 'store' | 'channels'>;

/** What is longer is cut in the question; the whole of it is what is allowed. */
const ARGUMENTS_CHARS = 3_000;
const NAME_CHARS = 60;
const MINUTE_MS = 60_000;

export async function questionAbout(
  services: AskingServices,
  asking: Asking,
  call: AskedCall,
  words: string,
): Promise<NewQuestion> {
  const posts: Post[] = [];
  const offers: Offer[] = [];
  for (const [n, { chat, threadId }] of (await placesFor(services, asking)).entries()) {
    const channel = services.channels.get(chat.channel);
    if (channel === undefined) continue;
    const room = threadId === null ? chat.id : asking.room;
    const options = [
      { label: 'Allow', command: { name: 'approve', argument: call.id } },
      { label: 'Refuse', command: { name: 'deny', argument: call.id } },
    ];
    const offer = { key: `${offerKeyOf(call.id)}${n}`, room, senderId: null, options, until: call.until };
    const text = withNumbers(channel, words, offer);
    const from = {
      origin: `asked:${call.id}:${chat.id}`,
      personaId: null,
      speaker: 'coterie',
      replyTo: null,
    };
    const deliveries = withButtons(channel, deliveriesOf(channel, text, from), offer);
    posts.push(...deliveries.map((delivery) => postTo(chat, threadId, delivery, call.askedAt)));
    offers.push(offer);
  }
  return { call, posts, offers };
}

interface Place {
  chat: ChatRecord;
  threadId: string | null;
}

/** The control chats that are on a channel which runs. */
export function reachable(controlChats: readonly ChatId[], { channels }: AskingServices): ChatId[] {
  return [...new Set(controlChats)].filter((id) => channels.has(channelOf(id)));
}

async function placesFor(services: AskingServices, { chat, room, controlChats }: Asking): Promise<Place[]> {
  const ids = reachable(controlChats, services);
  const found = await Promise.all(ids.map(async (id) => (await services.store.chat(id)) ?? unseen(id, chat)));
  const places = found.map((each) => ({ chat: each, threadId: null }));
  if (places.length > 0) return places;
  return [{ chat, threadId: roomParts(room).threadId }];
}

/** A control chat in which nobody has written yet. What its id does not tell, it has of the chat that asks. */
function unseen(id: ChatId, { account }: ChatRecord): ChatRecord {
  const address = addressOf(id);
  return {
    ...{ id, channel: channelOf(id), account, address, title: address },
    ...{ kind: 'group', activePersona: DEFAULT_PERSONA },
  };
}

function postTo(
  { id: chatId, channel, address, kind }: ChatRecord,
  threadId: string | null,
  delivery: NewDelivery,
  now: number,
): Post {
  return { chatId, channel, address, kind, threadId, now, delivery };
}

/** `wants`: who wants what, and why; `yes`: what a yes is to. */
export function wordsOfQuestion(call: AskedCall, wants: string, yes: string): string {
  const { shown, note } = argumentsShown(call.arguments);
  const fence = '`'.repeat(Math.max(3, ...Array.from(shown.matchAll(/`+/g), ([run]) => run.length + 1)));
  const minutes = Math.max(1, Math.round((call.until - call.askedAt) / MINUTE_MS));
  return [
    wants,
    `Exactly these arguments:\n\n${fence}json\n${shown}\n${fence}${note}`,
    `${yes}: /approve ${call.id}\nTo refuse it: /deny ${call.id}\n\nOnly owners can; it waits for ${counted(minutes, 'minute')}.`,
  ].join('\n\n');
}

/** A name as people are shown it. */
export function shownName(text: string, most = NAME_CHARS): string {
  return quoted(oneLine(text, most));
}

/** As JSON, in which nothing begins a line by itself, and what would not be seen, or would turn the writing, is spelt out. */
export function argumentsShown(given: string): { shown: string; note: string } {
  const pretty = JSON.stringify(JSON.parse(given.trim() || '{}'), null, 2);
  const spelt = pretty.replaceAll(/(?!\n)[\p{C}\p{Zl}\p{Zp}\p{DI}\u00a0]/gu, (sign) =>
    Array.from({ length: sign.length }, (_, n) => escapeOf(sign.charCodeAt(n))).join(''),
  );
  if (spelt.length <= ARGUMENTS_CHARS) return { shown: spelt, note: '' };
  const note = `\n\nThese are ${spelt.length} characters; only the first ${ARGUMENTS_CHARS} are shown. A yes is to the whole of it.`;
  return { shown: `${cutAt(spelt, ARGUMENTS_CHARS)}\n<<cut here>>`, note };
}

function escapeOf(code: number): string {
  return `\\u${code.toString(16).padStart(4, '0')}`;
}
