/** Short ways to say what the store's tests say again and again. */
import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import { roomId } from '../../../src/core/ids.js';
import type { Claimed, NewDelivery, Receipt, Store } from '../../../src/core/store.js';
import { BEGINNING, type Place } from '../../../src/core/view.js';

export const NOW = Date.UTC(2026, 0, 15, 12);
export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

/** Behind everything that was ever heard. */
export const END: Place = { heardAfter: Number.MAX_SAFE_INTEGER, messageId: 0 };

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

export async function claimed(store: Store, room = CHAT, owner = 'me', now = NOW): Promise<Claimed> {
  const claim = await store.claim({ room, owner, now, leaseMs: MINUTE });
  expect(claim, `claim of ${room}`).not.toBeNull();
  return claim as Claimed;
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

/** Claims the room and begins a turn over all that waits. */
export async function begun(
  store: Store,
  turnId: string,
  { room = CHAT, personaId = 'default', hearers = [] as string[] } = {},
): Promise<Claimed> {
  const claim = await claimed(store, room);
  const batch = claim.waiting.map((waiting) => waiting.id);
  const turn = { id: turnId, personaId, batch };
  const taken = await store.beginTurn({ claim: claim.claim, turn, noted: [], hearers, now: NOW });
  expect(taken?.map(({ id }) => id)).toEqual(batch);
  return claim;
}

export function finish(
  store: Store,
  claim: Claimed,
  turnId: string,
  more: Partial<Parameters<Store['finishTurn']>[0]> = {},
) {
  return store.finishTurn({
    claim: claim.claim,
    turnId,
    outcome: 'answered',
    reply: `reply of ${turnId}`,
    hearers: [],
    deliveries: [],
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
  const { claim, waiting } = await claimed(store, room);
  const noted = waiting.map(({ id }) => id);
  await store.beginTurn({ claim, turn: null, noted, hearers, now: NOW });
  await store.release(claim);
}

/** `/reset`: everything up to now, or to an earlier word. */
export async function forget(
  store: Store,
  { room = CHAT, personaId = 'default', upTo = undefined as number | undefined } = {},
): Promise<{ abortedTurn: string | null }> {
  const [chatId = CHAT, threadId = null] = room.split('/');
  const said = command(`reset-${randomUUID()}`, 'reset', '', { chat: chatAt(chatId), threadId });
  const [pending] = (await receive(store, [said])).commands;
  const stored = await store.takeCommand(pending?.id ?? 0);
  if (!stored) throw new Error('the command is not there');
  const effect = { kind: 'reset' as const, room, personaId, upTo: upTo ?? stored.afterMessage };
  return store.finishCommand({ id: stored.id, now: NOW, deliveries: [], effects: [effect] });
}

/** Where a line of a persona's view stands, in the window or behind it. */
export async function placeOf(
  store: Store,
  text: string,
  { room = CHAT, personaId = 'default' } = {},
): Promise<Place> {
  const ask = { room, personaId, after: BEGINNING, upTo: END, limit: 10_000, overheard: 10_000 };
  const { messages } = await store.span(ask);
  const found = messages.find((line) => line.text === text);
  if (!found) throw new Error(`no line “${text}” in the view`);
  return found.place;
}

/** What waits in a room; gives the room back. */
export async function waitingTexts(store: Store, room = CHAT): Promise<string[]> {
  const claim = await store.claim({ room, owner: 'looking', now: NOW, leaseMs: MINUTE });
  if (!claim) return [];
  await store.release(claim.claim);
  expect(claim.turn, 'no turn is unfinished').toBeNull();
  return claim.waiting.map((waiting) => waiting.text);
}

export async function windowTexts(
  store: Store,
  { room = CHAT, personaId = 'default', limit = 100, overheard = 100, except = [] as number[] } = {},
): Promise<string[]> {
  const { messages } = await store.window({ room, personaId, limit, overheard, except });
  return messages.map((said) => said.text);
}
