/**
 * Beside step 5 of the route: a question to people about a call: in the control chats, or, where there are none, in the
 * chat itself for its owners. It shows exactly what would run: its arguments are somebody's words, so nothing in them
 * looks like another part of it.
 */
import { type AskedCall, type NewQuestion, type Offer, offerKeyOf, type Refusal } from '../core/access.js';
import type { NewDelivery, Post } from '../core/channel.js';
import type { ChatRecord } from '../core/chat-record.js';
import { commandEnv, looksSecret } from '../core/command-env.js';
import { cutAt } from '../core/cut.js';
import { addressOf, type ChatId, channelOf, DEFAULT_PERSONA, type RoomId, roomParts } from '../core/ids.js';
import { GATEWAY } from '../core/journal.js';
import { deliveriesOf, withButtons, withNumbers } from './deliver/reply.js';
import { counted, oneLine, code as quoted } from './quoting.js';
import type { BaseServices, Services } from './services.js';

/** Whose call it is, and where these words may be asked about. */
export interface Asking {
  /** The chat of the call. */
  chat: ChatRecord;
  room: RoomId;
  /** In which the question stands, if there are any. */
  controlChats: ChatId[];
}

/** What is longer is cut in the question, and stands whole in a file beside it. */
const ARGUMENTS_CHARS = 3_000;
/** The same of one text, so that the others are seen whatever it says. */
const VALUE_CHARS = 600;
const NAME_CHARS = 60;
const MINUTE_MS = 60_000;

export async function questionAbout(
  services: BaseServices,
  asking: Asking,
  call: AskedCall,
  { words, whole }: QuestionWords,
): Promise<NewQuestion> {
  const file =
    whole === null
      ? null
      : await services.exports.write({
          ...{ chatId: call.chatId, key: `asked-${call.id}`, name: fileOf(call), text: whole },
        });
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
    const files = file === null ? [] : [file];
    const deliveries = withButtons(channel, deliveriesOf(channel, text, from, files), offer);
    posts.push(...deliveries.map((delivery) => postTo(chat, threadId, delivery, call.askedAt)));
    offers.push(offer);
  }
  return { call, posts, offers };
}

interface QuestionPlace {
  chat: ChatRecord;
  threadId: string | null;
}

/** The control chats that are on a channel which runs. */
export function reachable(controlChats: readonly ChatId[], { channels }: BaseServices): ChatId[] {
  return [...new Set(controlChats)].filter((id) => channels.has(channelOf(id)));
}

async function placesFor(
  services: BaseServices,
  { chat, room, controlChats }: Asking,
): Promise<QuestionPlace[]> {
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

interface QuestionWords {
  words: string;
  /** What did not fit, whole, for a file beside it; null: it all did. */
  whole: string | null;
}

/** `wants`: who wants what, and why; `yes`: what a yes is to; `env`: what the commands of an agent find in their environment. */
export function wordsOfQuestion(
  call: AskedCall,
  { wants, yes, env = {} }: { wants: string; yes: string; env?: Readonly<Record<string, string>> },
): QuestionWords {
  const given = argumentsShown(call.arguments);
  const environment = environmentShown(env);
  const minutes = Math.max(1, Math.round((call.until - call.askedAt) / MINUTE_MS));
  const isCut = given.isCut || environment?.isCut === true;
  const words = [
    wants,
    `Exactly these arguments:\n\n${fenced(given.shown)}`,
    ...(environment === null
      ? []
      : [`Its commands find in their environment:\n\n${fenced(environment.shown)}`]),
    ...refusedOf(env),
    ...(isCut
      ? [
          `These are ${given.whole.length + (environment?.whole.length ?? 0)} characters, and cut here. They stand whole in the file ${quoted(fileOf(call))} beside this, and a yes is to the whole of it.`,
        ]
      : []),
    `${yes}: /approve ${call.id}\nTo refuse it: /deny ${call.id}\n\nOnly owners can; it waits for ${counted(minutes, 'minute')}.`,
  ];
  const about = environment === null ? '' : `\n\nEnvironment:\n${environment.whole}`;
  return {
    words: words.join('\n\n'),
    whole: isCut ? `${call.tool} (${call.id})\n\nArguments:\n${given.whole}${about}\n` : null,
  };
}

function fileOf({ id }: Pick<AskedCall, 'id'>): string {
  return `arguments-${id}.txt`;
}

/** A name as people are shown it. */
export function shownName(text: string, most = NAME_CHARS): string {
  return quoted(oneLine(text, most));
}

/** A sentence that holds somebody's words: nothing in it begins a line, and what would not be seen is spelt out. */
export function sentence(text: string): string {
  return spelt(text.replaceAll(/[\s\p{Z}]+/gu, ' '));
}

interface ShownArguments {
  shown: string;
  whole: string;
  isCut: boolean;
}

/**
 * As JSON, in which nothing begins a line by itself, and what would not be seen, would turn the writing or would push what
 * follows out of sight is spelt out. Of what is too long, each text has its beginning there.
 */
export function argumentsShown(given: string): ShownArguments {
  return shownOf(JSON.parse(given.trim() || '{}'));
}

function environmentShown(given: Readonly<Record<string, string>>): ShownArguments | null {
  const { env } = commandEnv(given);
  const entries = Object.entries(env).map(([name, value]) => [
    name,
    looksSecret(name, value) ? `[not shown: a secret of ${value.length} characters]` : value,
  ]);
  return entries.length === 0 ? null : shownOf(Object.fromEntries(entries));
}

/** By these whoever gave the task would decide what the commands run. */
function refusedOf(given: Readonly<Record<string, string>>): string[] {
  const { refused } = commandEnv(given);
  if (refused.length === 0) return [];
  const names = refused.slice(0, MOST_REFUSED).map((name) => shownName(name));
  const more = refused.length > names.length ? ` and ${refused.length - names.length} more` : '';
  return [`Refused of what the task wants to set there, and not set: ${names.join(', ')}${more}.`];
}

const MOST_REFUSED = 20;

function shownOf(value: unknown): ShownArguments {
  const whole = spelt(JSON.stringify(value, null, 2));
  if (whole.length <= ARGUMENTS_CHARS) return { shown: whole, whole, isCut: false };
  const brief = spelt(
    JSON.stringify(
      value,
      (_, each: unknown) =>
        typeof each === 'string' && each.length > VALUE_CHARS
          ? `${cutAt(each, VALUE_CHARS)}<<cut here: ${each.length} characters>>`
          : each,
      2,
    ),
  );
  const shown = brief.length <= ARGUMENTS_CHARS ? brief : `${cutAt(brief, ARGUMENTS_CHARS)}\n<<cut here>>`;
  return { shown, whole, isCut: true };
}

function fenced(json: string): string {
  const fence = '`'.repeat(Math.max(3, ...Array.from(json.matchAll(/`+/g), ([run]) => run.length + 1)));
  return `${fence}json\n${json}\n${fence}`;
}

/** What nobody sees, what turns the writing, blanks that look like others or are many, and marks that are heaped up. */
const UNSEEN = /(?!\n)[\p{C}\p{Zl}\p{Zp}\p{DI}]|(?! )\p{Zs}|(?<=\S {16}) +|(?<=\p{M}{3})\p{M}+/gu;

function spelt(text: string): string {
  return text.replaceAll(UNSEEN, (signs) =>
    Array.from({ length: signs.length }, (_, n) => escapeOf(signs.charCodeAt(n))).join(''),
  );
}

function escapeOf(code: number): string {
  return `\\u${code.toString(16).padStart(4, '0')}`;
}

// What people decided about a tool call, or did not in time: what the model and the call's chat are told of it.

const TOOL_NAME_CHARS = 60;

const DENIED = 'Denied: a person was asked and said no. It was not run; do without it, and say so.';
const EXPIRED = 'Not run: a person was asked and did not decide in time. Do without it, and say so.';

/** The tool's name as people are shown it. */
export function toolNamed({ tool }: Pick<AskedCall, 'tool'>): string {
  return quoted(oneLine(tool, TOOL_NAME_CHARS));
}

export async function denialOf(services: Services, call: AskedCall): Promise<Refusal> {
  // Of a call within a task its outcome tells.
  if ((await services.store.task(call.turnId)) !== null) return { content: DENIED, told: null };
  const told = `${toolNamed(call)} was not allowed, so it was not run.`;
  return { content: DENIED, told: await refusalPost(services, call, told) };
}

/** What the model is told of a call that people did not allow. */
export function refusedWith(decision: 'denied' | 'expired'): string {
  return decision === 'denied' ? DENIED : EXPIRED;
}

/** Nobody has decided in time. Returns the room that goes on; null if it was over already. */
export async function expireCall(services: Services, id: string): Promise<RoomId | null> {
  const { store, clock, audit } = services;
  const now = clock.now();
  const call = await store.askedCall(id, now);
  if (call === null) return null;
  const text = `Nobody allowed ${toolNamed(call)} in time, so it was not run.`;
  const refusal = { content: EXPIRED, told: await refusalPost(services, call, text) };
  const room = await store.expire({ id, now, refusal });
  if (room === null) return null;
  const what = `${call.tool} expired (${id})`;
  await audit.note({ kind: 'call', who: GATEWAY, where: call.chatId, what, word: null });
  return room;
}

async function refusalPost(
  { store, channels, clock }: Services,
  { id, chatId, room }: AskedCall,
  text: string,
): Promise<Refusal['told']> {
  const chat = await store.chat(chatId);
  const channel = chat && channels.get(chat.channel);
  if (!channel) return null;
  const from = { origin: `denied:${id}`, personaId: null, speaker: 'coterie', replyTo: null };
  const [delivery] = deliveriesOf(channel, text, from);
  const { threadId } = roomParts(room);
  const { address, kind } = chat;
  return delivery
    ? { chatId, channel: chat.channel, address, kind, threadId, now: clock.now(), delivery }
    : null;
}
