/** Approvals of tool calls: the question, with exactly what would run, to the control chats or else the chat's owners; and refusals. */
import { type AskedCall, type NewQuestion, type Offer, offerKeyOf, type Refusal } from '../core/access.js';
import type { Post } from '../core/channel.js';
import type { ChatRecord } from '../core/chat-record.js';
import { commandEnv, looksSecret } from '../core/command-env.js';
import { cutAt } from '../core/cut.js';
import { addressOf, type ChatId, channelOf, DEFAULT_PERSONA, type RoomId, roomParts } from '../core/ids.js';
import { GATEWAY } from '../core/journal.js';
import { deliveriesOf, withButtons, withNumbers } from './deliver/reply.js';
import { counted, oneLine, code as quoted } from './quoting.js';
import type { BaseServices, Services } from './services.js';

export interface Asking {
  chat: ChatRecord;
  room: RoomId;
  /** Where to ask, if there are any. */
  controlChats: ChatId[];
}

/** Longer arguments are cut in the question and attached as a file. */
const ARGUMENTS_CHARS = 3_000;
/** Longer values are cut, so that the others stay visible. */
const VALUE_CHARS = 600;
const NAME_CHARS = 60;
const MOST_REFUSED = 20;
const MINUTE_MS = 60_000;

/** `wants`: who wants what, and why; `yes`: what a yes permits; `env`: environment of the agent's commands. */
export async function questionAbout(
  services: BaseServices,
  { chat, room, controlChats }: Asking,
  call: AskedCall,
  wants: string,
  yes: string,
  env: Readonly<Record<string, string>> = {},
): Promise<NewQuestion> {
  const name = `arguments-${call.id}.txt`;
  const { words, whole } = wordsOfQuestion(call, wants, yes, env, name);
  const ask = { chatId: call.chatId, key: `asked-${call.id}`, name };
  const files = whole === null ? [] : [await services.exports.write({ ...ask, text: whole })];
  // A control chat in which nobody has written yet is made up after the asking chat.
  const madeUp = { account: chat.account, kind: 'group' as const, activePersona: DEFAULT_PERSONA };
  const found = await Promise.all(
    reachable(controlChats, services).map(async (id): Promise<ChatRecord> => {
      const address = addressOf(id);
      const unseen = { ...madeUp, id, channel: channelOf(id), address, title: address };
      return (await services.store.chat(id)) ?? unseen;
    }),
  );
  const posts: Post[] = [];
  const offers: Offer[] = [];
  for (const [n, each] of (found.length > 0 ? found : [chat]).entries()) {
    const { id: chatId, channel: channelName, address, kind } = each;
    const channel = services.channels.get(channelName);
    if (channel === undefined) continue;
    const offer: Offer = {
      key: `${offerKeyOf(call.id)}${n}`,
      room: found.length > 0 ? chatId : room,
      senderId: null,
      options: [
        { label: 'Allow', command: { name: 'approve', argument: call.id } },
        { label: 'Refuse', command: { name: 'deny', argument: call.id } },
      ],
      until: call.until,
    };
    const from = { origin: `asked:${call.id}:${chatId}`, personaId: null, speaker: 'coterie', replyTo: null };
    const said = deliveriesOf(channel, withNumbers(channel, words, offer), from, files);
    const threadId = found.length > 0 ? null : roomParts(room).threadId;
    for (const delivery of withButtons(channel, said, offer)) {
      posts.push({ chatId, channel: channelName, address, kind, threadId, now: call.askedAt, delivery });
    }
    offers.push(offer);
  }
  return { call, posts, offers };
}

/** The control chats whose channel is running. */
export function reachable(controlChats: readonly ChatId[], { channels }: BaseServices): ChatId[] {
  return [...new Set(controlChats)].filter((id) => channels.has(channelOf(id)));
}

/** `whole`: the full text for the file, if it does not all fit. */
function wordsOfQuestion(
  call: AskedCall,
  wants: string,
  yes: string,
  env: Readonly<Record<string, string>>,
  file: string,
): { words: string; whole: string | null } {
  const given = argumentsShown(call.arguments);
  const { env: set, refused } = commandEnv(env);
  const entries = Object.entries(set).map(([name, value]) => [
    name,
    looksSecret(name, value) ? `[not shown: a secret of ${value.length} characters]` : value,
  ]);
  const environment = entries.length === 0 ? null : shownOf(Object.fromEntries(entries));
  const minutes = Math.max(1, Math.round((call.until - call.askedAt) / MINUTE_MS));
  const isCut = given.isCut || environment?.isCut === true;
  const words = [wants, `Exactly these arguments:\n\n${fenced(given.shown)}`];
  if (environment) words.push(`Its commands find in their environment:\n\n${fenced(environment.shown)}`);
  if (refused.length > 0) {
    // These variables would let the task's author decide what the commands run.
    const names = refused.slice(0, MOST_REFUSED).map((name) => shownName(name));
    const more = refused.length > names.length ? ` and ${refused.length - names.length} more` : '';
    words.push(`Refused of what the task wants to set there, and not set: ${names.join(', ')}${more}.`);
  }
  if (isCut) {
    const chars = given.whole.length + (environment?.whole.length ?? 0);
    words.push(
      `These are ${chars} characters, and cut here. They stand whole in the file ${quoted(file)} beside this, and a yes is to the whole of it.`,
    );
  }
  words.push(
    `${yes}: /approve ${call.id}\nTo refuse it: /deny ${call.id}\n\nOnly owners can; it waits for ${counted(minutes, 'minute')}.`,
  );
  const about = environment === null ? '' : `\n\nEnvironment:\n${environment.whole}`;
  const whole = isCut ? `${call.tool} (${call.id})\n\nArguments:\n${given.whole}${about}\n` : null;
  return { words: words.join('\n\n'), whole };
}

export function shownName(text: string, most = NAME_CHARS): string {
  return quoted(oneLine(text, most));
}

/** Untrusted text as one line, with invisible characters escaped. */
export function sentence(text: string): string {
  return spelt(text.replaceAll(/[\s\p{Z}]+/gu, ' '));
}

interface ShownArguments {
  shown: string;
  whole: string;
  isCut: boolean;
}

/** JSON in which no text begins a line, hides, or pushes other text out of sight. If it is too long, each value is cut. */
export function argumentsShown(given: string): ShownArguments {
  return shownOf(JSON.parse(given.trim() || '{}'));
}

function shownOf(value: unknown): ShownArguments {
  const whole = spelt(JSON.stringify(value, null, 2));
  if (whole.length <= ARGUMENTS_CHARS) return { shown: whole, whole, isCut: false };
  const cut = (_: string, each: unknown) =>
    typeof each === 'string' && each.length > VALUE_CHARS
      ? `${cutAt(each, VALUE_CHARS)}<<cut here: ${each.length} characters>>`
      : each;
  const brief = spelt(JSON.stringify(value, cut, 2));
  const shown = brief.length <= ARGUMENTS_CHARS ? brief : `${cutAt(brief, ARGUMENTS_CHARS)}\n<<cut here>>`;
  return { shown, whole, isCut: true };
}

function fenced(json: string): string {
  const fence = '`'.repeat(Math.max(3, ...Array.from(json.matchAll(/`+/g), ([run]) => run.length + 1)));
  return `${fence}json\n${json}\n${fence}`;
}

/** Invisible and direction-changing characters, unusual or many spaces, and stacked combining marks. */
const UNSEEN = /(?!\n)[\p{C}\p{Zl}\p{Zp}\p{DI}]|(?! )\p{Zs}|(?<=\S {16}) +|(?<=\p{M}{3})\p{M}+/gu;

function spelt(text: string): string {
  const escaped = (sign: string) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return text.replaceAll(UNSEEN, (signs) => signs.split('').map(escaped).join(''));
}

/** The tool result that the model gets for a refused call. */
export const REFUSED = {
  denied: 'Denied: a person was asked and said no. It was not run; do without it, and say so.',
  expired: 'Not run: a person was asked and did not decide in time. Do without it, and say so.',
};

/** Nobody decided in time. Returns the room to resume; null if the call had already ended. */
export async function expireCall(services: Services, id: string): Promise<RoomId | null> {
  const { store, clock, audit } = services;
  const now = clock.now();
  const [call] = await store.askedCalls({ id }, now);
  if (call === undefined) return null;
  const room = await store.decide({ id, now, by: null, refusal: await refusalTo(services, call, 'expired') });
  if (room === null) return null;
  const what = `${call.tool} expired (${id})`;
  await audit.note({ kind: 'call', who: GATEWAY, where: call.chatId, what, word: null });
  return room;
}

/** Tells the model and the call's chat; a task reports its calls itself. */
export async function refusalTo(
  { store, channels, clock }: Services,
  { id, chatId, room, tool, turnId }: AskedCall,
  decision: 'denied' | 'expired',
): Promise<Refusal> {
  const content = REFUSED[decision];
  const chat = (await store.task(turnId)) === null ? await store.chat(chatId) : null;
  const channel = chat && channels.get(chat.channel);
  const name = shownName(tool);
  const text =
    decision === 'denied'
      ? `${name} was not allowed, so it was not run.`
      : `Nobody allowed ${name} in time, so it was not run.`;
  const from = { origin: `denied:${id}`, personaId: null, speaker: 'coterie', replyTo: null };
  const [delivery] = channel ? deliveriesOf(channel, text, from) : [];
  if (!chat || !delivery) return { content, told: null };
  const { address, kind } = chat;
  const { threadId } = roomParts(room);
  const told = { chatId, channel: chat.channel, address, kind, threadId, now: clock.now(), delivery };
  return { content, told };
}
