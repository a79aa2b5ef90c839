/** A plain message as the route asks the store for it, for tests of what that costs. */
import type { Store } from '../../src/core/store.js';
import {
  ANN,
  begin,
  chatAt,
  delivery,
  finishWith,
  lease,
  looked,
  message,
  NOW,
  receive,
} from '../contract/store/words.js';

/** Called with each step of the route in turn. */
type EachStep = <T>(name: string, step: () => Promise<T>) => Promise<T>;

const runIt: EachStep = (_, step) => step();

export async function oneMessage(store: Store, n: number, chatId: string, each = runIt): Promise<void> {
  const turnId = `${chatId} ${n}`;
  await each('door', async () => {
    await store.chatOf(chatId);
    await store.aliasOf(ANN.id);
    await store.approvalOf({ chatId, senderId: ANN.id });
    await store.question({ room: chatId, senderId: ANN.id, now: NOW });
  });
  const receipts = [message(`${n}`, 'hi', { chat: chatAt(chatId) })];
  await each('receive', () => receive(store, receipts, { cursor: `${n}` }));
  const seen = await each('look', () => looked(store, chatId));
  const turn = await each('begin', () => begin(store, seen, turnId));
  const except = seen.waiting.map(({ id }) => id);
  await each('window', () =>
    store.window({ room: chatId, personaId: 'default', limit: 200, overheard: 50, except }),
  );
  if (!turn) throw new Error('the room was taken');
  const ended = await each('finish', () =>
    finishWith(store, turn, turnId, {
      deliveries: [delivery(`turn:${turnId}`, 'hello')],
      send: lease(),
      usage: { inputTokens: 1, outputTokens: 1 },
      measured: { counted: 10, estimated: 9 },
      given: { memory: 'm', dailyLog: 'd', recalled: 'r', summary: 's' },
    }),
  );
  const first = ended === 'lost' ? null : ended.first;
  await each('sent', () => store.settle(first?.id ?? 0, { kind: 'sent', platformMessageId: `p${n}` }, NOW));
}
