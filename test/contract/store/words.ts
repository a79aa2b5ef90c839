/** Short ways to say what the store's tests say again and again. */
import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import type { NewDelivery } from '../../../src/core/channel.js';
import { roomId } from '../../../src/core/ids.js';
import type { JournalEntry } from '../../../src/core/journal.js';
import type { Receipt } from '../../../src/core/receipt.js';
import type { Claim, Lease, RoomState, Spent, Store } from '../../../src/core/store.js';
import {
  BEGINNING,
  type GroupRound,
  type Position,
  type StoredMessage,
} from '../../../src/core/transcript.js';

export const NOW = Date.UTC(2026, 0, 15, 12);
export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

/** Behind everything that was ever heard. */
export const END: Position = { heardAfter: Number.MAX_SAFE_INTEGER, messageId: 0 };

export const CHAT = 'test_1';
export const ANN = { id: 'test_ann', name: 'Ann', administrator: false };
export const BEN = { id: 'test_ben', name: 'Ben', administrator: true };

type Message = Extract<Receipt, { kind: 'message' }>;
type Command = Extract<Receipt, { kind: 'command' }>;
type Chat = Message['chat'];

export function chatAt(id: string, more: Partial<Chat> = {}): Chat {
  return { id, address: id.slice(id.indexOf('_') + 1), kind: 'group', title: `Title of ${id}`, ...more };
}

export function message(platformMessageId: string, text: string, more: Partial<Message> = {}): Message {
  return {
    kind: 'message',
    chat: chatAt(CHAT),
    threadId: null,
    platformMessageId,
    sender: ANN,
    text,
    sentAt: NOW,
    mentionsBot: false,
    replyTo: null,
    ...more,
  };
}

export function command(
  platformMessageId: string,
  name: string,
  argument = '',
  more: Partial<Command> = {},
): Command {
  return {
    kind: 'command',
    chat: chatAt(CHAT),
    threadId: null,
    platformMessageId,
    sender: ANN,
    command: { name, argument },
    ...more,
  };
}

export function edit(platformMessageId: string, text: string, { mentionsBot = false } = {}): Receipt {
  return {
    kind: 'edit',
    chatId: CHAT,
    senderId: ANN.id,
    platformMessageId,
    text,
    mentionsBot,
    editedAt: NOW + MINUTE,
  };
}

export function receive(store: Store, receipts: Receipt[], more: { cursor?: string; now?: number } = {}) {
  return store.receive({ channel: 'test', account: 'bot', now: NOW, receipts, ...more });
}

/** The claim of whoever is called so, for a minute. */
export function lease(owner = 'me', now = NOW): Lease {
  return { owner, now, leaseMs: MINUTE };
}

/** What is to be done in a room, and there is something. */
export async function looked(store: Store, room = CHAT, owner = 'me', now = NOW): Promise<RoomState> {
  const state = await store.readRoom(room, owner, now);
  expect(state, `something to be done in ${room}`).not.toBeNull();
  return state as RoomState;
}

/** A room as it was taken: what was seen in it, and the claim. */
export interface Taken extends RoomState {
  claim: Claim;
  turn: NonNullable<Awaited<ReturnType<Store['claim']>>>['turn'];
  batch: StoredMessage[];
}

/** Looks at a room and takes it; null where there is nothing to do, or another has it. */
export async function take(store: Store, room = CHAT, owner = 'me', now = NOW): Promise<Taken | null> {
  const state = await store.readRoom(room, owner, now);
  const taken = state && (await store.claim(state, lease(owner, now)));
  return state && taken && { ...state, ...taken };
}

export async function claimed(store: Store, room = CHAT, owner = 'me', now = NOW): Promise<Taken> {
  const taken = await take(store, room, owner, now);
  expect(taken, `claim of ${room}`).not.toBeNull();
  return taken as Taken;
}

export function delivery(origin: string, text: string, more: Partial<NewDelivery> = {}): NewDelivery {
  return {
    origin,
    personaId: 'default',
    speaker: 'Default',
    part: 0,
    body: { text, marks: [] },
    replyTo: null,
    ...more,
  };
}

interface BeginOptions {
  room?: string;
  personaId?: string;
  owner?: string;
  hearers?: string[];
  addressed?: string[];
  exchange?: GroupRound | null;
  batch?: number[];
  taken?: number[];
  noted?: number[];
  forBots?: boolean;
  spent?: Spent;
  now?: number;
}

/** Begins a turn over what was seen, all that waits unless something else is said; null when the claim is lost. */
export async function begin(
  store: Store,
  seen: RoomState | Taken,
  turnId: string,
  more: BeginOptions = {},
): Promise<Taken | null> {
  const { personaId = 'default', owner = 'me', hearers = [], addressed = [], noted = [], now = NOW } = more;
  const waiting = seen.waiting.map(({ id }) => id);
  const batch = more.batch ?? waiting.filter((id) => !noted.includes(id));
  const turn = { id: turnId, personaId, batch, taken: more.taken ?? batch, addressed };
  const claim = await store.hear({
    seen: 'claim' in seen ? seen.claim : seen,
    lease: lease(owner, now),
    turn,
    noted,
    hearers,
    exchange: more.exchange ?? null,
    ...(more.forBots === undefined ? {} : { forBots: more.forBots }),
    ...(more.spent && { spent: more.spent }),
  });
  return claim && { ...seen, claim, turn: null, batch: seen.waiting.filter(({ id }) => batch.includes(id)) };
}

/** Takes the room and begins a turn over all that waits. */
export async function begun(store: Store, turnId: string, more: BeginOptions = {}): Promise<Taken> {
  const seen = await looked(store, more.room, more.owner, more.now);
  const taken = await begin(store, seen, turnId, more);
  expect(taken, `the beginning of ${turnId}`).not.toBeNull();
  return taken as Taken;
}

/** Notes what waits in a room, or some of it. */
export async function note(
  store: Store,
  seen: RoomState | Taken,
  {
    hearers = ['default'],
    noted = undefined as number[] | undefined,
    forBots = undefined as boolean | undefined,
  } = {},
): Promise<boolean> {
  const claim = await store.hear({
    seen: 'claim' in seen ? seen.claim : seen,
    lease: lease(),
    turn: null,
    noted: noted ?? seen.waiting.map(({ id }) => id),
    hearers,
    exchange: null,
    ...(forBots === undefined ? {} : { forBots }),
  });
  return claim !== null;
}

type Finish = Parameters<Store['finish']>[0];

/** `finished`, or `lost`. */
export async function finish(
  store: Store,
  taken: { claim: Claim },
  turnId: string,
  more: Partial<Finish> = {},
): Promise<'finished' | 'lost'> {
  return (await finishWith(store, taken, turnId, more)) === 'lost' ? 'lost' : 'finished';
}

/** As `finish`, with what the store says. */
export function finishWith(
  store: Store,
  { claim }: { claim: Claim },
  turnId: string,
  more: Partial<Finish> = {},
) {
  return store.finish({
    claim,
    turnId,
    outcome: 'answered',
    reply: `reply of ${turnId}`,
    hearers: [],
    addressed: [],
    exchange: null,
    deliveries: [],
    send: null,
    usage: null,
    measured: null,
    given: null,
    now: NOW,
    ...more,
  });
}

/** One message in, one turn, one reply out. */
export async function exchange(
  store: Store,
  turnId: string,
  text: string,
  { room = CHAT, personaId = 'default', deliveries = [] as NewDelivery[] } = {},
): Promise<void> {
  const [chatId = CHAT, threadId = null] = room.split('/');
  await receive(store, [message(`in-${turnId}`, text, { chat: chatAt(chatId), threadId })]);
  const claim = await begun(store, turnId, { room: roomId(chatId, threadId), personaId });
  expect(await finish(store, claim, turnId, { deliveries })).toBe('finished');
}

/** Messages that are for nobody, heard in passing. */
export async function overhear(
  store: Store,
  texts: string[],
  { room = CHAT, hearers = ['default'] } = {},
): Promise<void> {
  const [chatId = CHAT, threadId = null] = room.split('/');
  await receive(
    store,
    texts.map((text) => message(`over-${text}`, text, { chat: chatAt(chatId), threadId })),
  );
  expect(await note(store, await looked(store, room), { hearers })).toBe(true);
}

/** `/reset`: everything up to now, or to an earlier word. */
export async function forget(
  store: Store,
  { room = CHAT, personaId = 'default', upTo = undefined as number | undefined } = {},
): Promise<{ abortedTurn: string | null }> {
  const [chatId = CHAT, threadId = null] = room.split('/');
  const said = command(`reset-${randomUUID()}`, 'reset', '', { chat: chatAt(chatId), threadId });
  const [pending] = (await receive(store, [said])).commands;
  const stored = await store.takeCommand(pending?.id ?? 0, lease());
  if (!stored) throw new Error('the command is not there');
  const effect = { kind: 'reset' as const, room, personaId, upTo: upTo ?? stored.afterMessage };
  return store.finishCommand({ id: stored.id, now: NOW, deliveries: [], effects: [effect] });
}

/** Where a line of a persona's view stands, in the window or behind it. */
export async function placeOf(
  store: Store,
  text: string,
  { room = CHAT, personaId = 'default' } = {},
): Promise<Position> {
  const ask = { room, personaId, after: BEGINNING, upTo: END, limit: 10_000, overheard: 10_000 };
  const { messages } = await store.span(ask);
  const found = messages.find((line) => line.text === text);
  if (!found) throw new Error(`no line “${text}” in the view`);
  return found.position;
}

/** What waits in a room. */
export async function waitingTexts(store: Store, room = CHAT): Promise<string[]> {
  const state = await store.readRoom(room, 'looking', NOW);
  expect(state?.unfinished ?? null, 'no turn is unfinished').toBeNull();
  return (state?.waiting ?? []).map((waiting) => waiting.text);
}

/** What is to be delivered next, as whoever is called so sees it. */
export function nextOf(store: Store, chatId = CHAT, owner = 'me', now = NOW) {
  return store.nextDelivery(chatId, owner, now);
}

/** As at the start of a process of that name. */
export function recovered(store: Store, owner = 'me', now = NOW, channels = ['test']) {
  return store.pending({ owner, channels, now, atStart: true });
}

export async function windowTexts(
  store: Store,
  { room = CHAT, personaId = 'default', limit = 100, overheard = 100, except = [] as number[] } = {},
): Promise<string[]> {
  const { messages } = await store.window({ room, personaId, limit, overheard, except });
  return messages.map((said) => said.text);
}

const FAR = NOW + 1_000 * DAY;

/** What each persona of a chat has used since a day. */
export async function usedIn(store: Store, chatId: string, since: number) {
  return (await store.usage({ chatId, personId: null, since, now: FAR })).personas;
}

/** A call that people were asked about. */
export async function askedCall(store: Store, id: string, now = NOW) {
  return (await store.askedCalls({ id }, now))[0] ?? null;
}

/** An open offer. */
export async function offerOf(store: Store, key: string, now = NOW) {
  return (await store.offers({ key }, now))[0] ?? null;
}

/** The newest form of every entry that is in no archive, by its last change. */
export async function journalOf(store: Store): Promise<{ mark: number; entry: JournalEntry }[]> {
  const all = await store.unfiled(0);
  const entries = all.flatMap(({ changed: mark, entry }) => (entry ? [{ mark, entry }] : []));
  return entries.sort((a, b) => a.mark - b.mark);
}

/** Prunes in steps until nothing is left. Returns the number of rows that went. */
export async function pruned(store: Store, before: number, now = before, most = 50): Promise<number> {
  const { rows, more } = await store.prune({ before, now, most });
  return more ? rows + (await pruned(store, before, now, most)) : rows;
}

export async function cursorOf(store: Store, account: string): Promise<string | null> {
  return (await store.values({ cursorsOf: 'test' }, [account])).get(account) ?? null;
}
