/** The store's contract: buttons, of which one is taken, once. */
import { describe, expect, it } from 'vitest';
import type { Offer } from '../../../src/core/access.js';
import { FORGOTTEN, phraseOf } from '../../../src/core/phrase.js';
import type { Receipt } from '../../../src/core/receipt.js';
import type { CommandEffect, Store } from '../../../src/core/store.js';
import type { StoreUnderTest } from '../store.js';
import {
  ANN,
  BEN,
  CHAT,
  chatAt,
  command,
  delivery,
  lease,
  MINUTE,
  message,
  NOW,
  offerOf,
  pruned,
  receive,
} from './words.js';

const UNTIL = NOW + 2 * MINUTE;
const OFFER: Offer = {
  ...{ key: 'key-1', room: CHAT, senderId: ANN.id, until: UNTIL },
  options: [
    { label: 'Luna', command: { name: 'persona', argument: 'switch luna' } },
    { label: 'Nobody', command: null },
  ],
};

export function offerContract(under: StoreUnderTest): void {
  let given = 0;
  /** A command that is answered with these effects. */
  async function answered(effects: CommandEffect[], room = CHAT): Promise<void> {
    const [chatId = CHAT, threadId = null] = room.split('/');
    const said = command(`asks-${given++}`, 'persona', '', { chat: chatAt(chatId), threadId });
    const [pending] = (await receive(under.store, [said])).commands;
    const id = pending?.id ?? 0;
    await under.store.takeCommand(id, lease());
    await under.store.finishCommand({
      id,
      now: NOW,
      effects,
      deliveries: [delivery(`command:${id}`, 'which?')],
    });
  }
  const offered = (more: Partial<Offer> = {}) => {
    const offer = { ...OFFER, ...more };
    return answered([{ kind: 'offer', ...offer }], offer.room);
  };

  function press(
    value: string,
    { store = under.store, id = `press-${given++}`, now = NOW, sender = ANN, chat = CHAT } = {},
  ) {
    const choice: Receipt = { kind: 'choice', chat: chatAt(chat), platformMessageId: id, sender, value };
    return receive(store, [choice], { now });
  }
  const became = async (...ask: Parameters<typeof press>) => [
    ...((await press(...ask)).choices?.values() ?? []),
  ];
  const open = async (senderId = ANN.id, store: Store = under.store, now = NOW) =>
    (await store.offers({ room: CHAT, senderId }, now)).map(({ key }) => key);

  describe('an offer', () => {
    it('is made in one piece with the answer, and one of its options becomes a command of whoever took it', async () => {
      await offered();
      expect(await offerOf(under.store, 'key-1')).toEqual(OFFER);
      const { commands, choices } = await press('key-1.0', { id: 'p1' });
      expect(choices).toEqual(new Map([['p1', 'taken']]));
      const stored = await under.store.takeCommand(commands[0]?.id ?? 0, lease());
      expect(stored).toMatchObject({
        ...{ name: 'persona', argument: 'switch luna', room: CHAT, sender: ANN, platformMessageId: 'p1' },
      });
    });

    it('is good once, whatever is pressed; the same press, brought again, is not another', async () => {
      await offered();
      expect((await press('key-1.0', { id: 'p1' })).commands).toHaveLength(1);
      const again = await press('key-1.0', { id: 'p1' });
      expect(again).toMatchObject({ commands: [], choices: new Map([['p1', 'taken']]) });
      expect(await became('key-1.0')).toEqual(['over']);
      expect(await became('key-1.1')).toEqual(['over']);
      expect(await offerOf(under.store, 'key-1')).toBeNull();
    });

    it('may end without a command, which is known when it comes again', async () => {
      await offered();
      const first = await press('key-1.1', { id: 'p1' });
      expect(first).toMatchObject({ commands: [], choices: new Map([['p1', 'taken']]) });
      expect(await became('key-1.1', { id: 'p1' })).toEqual(['taken']);
      expect(await became('key-1.0')).toEqual(['over']);
      expect(
        (await under.store.pending({ owner: 'me', channels: ['test'], now: NOW })).commands,
      ).toHaveLength(0);
    });

    it('is taken by one of two processes', async () => {
      await offered();
      const other = await under.another();
      const both = await Promise.all([
        became('key-1.0', { id: 'p1' }),
        became('key-1.0', { id: 'p2', store: other }),
      ]);
      expect(both.flat().sort()).toEqual(['over', 'taken']);
    });

    it('is not for others, and stays open when one of them presses', async () => {
      await offered();
      expect(await became('key-1.0', { sender: BEN })).toEqual(['not yours']);
      expect(await became('key-1.0')).toEqual(['taken']);
      await offered({ key: 'key-2', senderId: null });
      expect(await became('key-2.0', { sender: BEN })).toEqual(['taken']);
    });

    it.each(['key-1.2', 'key-1', 'key-1.', '.0', '', 'key-1.00000', 'key-9.0'])(
      'is not taken by a value that names none of its options: %s',
      async (value) => {
        await offered();
        expect(await became(value)).toEqual(['over']);
        expect(await open()).toEqual(['key-1']);
      },
    );

    it('is taken in no other chat, but in any of its threads, where the command is run', async () => {
      await offered({ room: `${CHAT}/5` });
      expect(await became('key-1.0', { chat: 'test_2' })).toEqual(['over']);
      const { commands } = await press('key-1.0');
      expect(commands.map(({ room }) => room)).toEqual([`${CHAT}/5`]);
    });

    it('is over when its time is', async () => {
      await offered();
      expect(await open(ANN.id, under.store, UNTIL)).toEqual([]);
      expect(await offerOf(under.store, 'key-1', UNTIL)).toBeNull();
      expect(await became('key-1.0', { now: UNTIL })).toEqual(['over']);
      expect(await became('key-1.0', { now: UNTIL - 1 })).toEqual(['taken']);
    });

    it('stands in its room for those it is for, the newest first', async () => {
      await offered();
      await offered({ key: 'key-2', senderId: null });
      await offered({ key: 'key-3', senderId: BEN.id });
      await offered({ key: 'key-4', room: `${CHAT}/5` });
      expect(await open()).toEqual(['key-2', 'key-1']);
      expect(await open(BEN.id)).toEqual(['key-3', 'key-2']);
      await became('key-2.0');
      expect(await open()).toEqual(['key-1']);
      expect(await open(BEN.id, await under.another())).toEqual(['key-3']);
    });

    it('ends by what else is said, if that is said to end it, and not by what came before', async () => {
      await offered();
      await receive(under.store, [message('before', 'hi')]);
      await offered({ key: 'key-2' });
      await receive(under.store, [message('before', 'hi', { endsOffers: ['key-2'] })]);
      expect(await open()).toEqual(['key-2', 'key-1']);
      await receive(under.store, [message('1', 'hi', { endsOffers: ['key-1'] })]);
      expect(await open()).toEqual(['key-2']);
      await receive(under.store, [command('2', 'help', '', { endsOffers: ['key-2'] })]);
      expect(await open()).toEqual([]);
    });
  });

  describe('a question with an offer', () => {
    const IF_YES = { name: 'memory', argument: 'yes swordfish' };
    const asked = () =>
      answered([
        {
          kind: 'ask',
          room: CHAT,
          senderId: ANN.id,
          askedBy: 'q',
          ifYes: IF_YES,
          until: UNTIL,
          offer: 'key-1',
        },
        { kind: 'offer', ...OFFER, options: [{ label: 'Forget', command: IF_YES }] },
      ]);
    const question = () => under.store.question({ room: CHAT, senderId: ANN.id, now: NOW });
    const yes = async () => {
      const answers = (await question())?.id ?? -1;
      const said = command(`yes-${given++}`, IF_YES.name, IF_YES.argument, { answers });
      return (await receive(under.store, [said])).commands.length;
    };

    it('is answered once: by the button, or by a yes', async () => {
      await asked();
      const before = (await question())?.id ?? 0;
      expect(await became('key-1.0')).toEqual(['taken']);
      expect(await question()).toBeNull();
      const late = command('late', IF_YES.name, IF_YES.argument, { answers: before });
      expect((await receive(under.store, [late])).commands).toEqual([]);
    });

    it('ends its buttons by a yes', async () => {
      await asked();
      expect(await yes()).toBe(1);
      expect(await became('key-1.0')).toEqual(['over']);
    });

    it('keeps them when something else ends the waiting for a yes', async () => {
      await asked();
      await receive(under.store, [message('1', 'hm', { endsQuestion: (await question())?.id ?? 0 })]);
      expect(await question()).toBeNull();
      expect(await became('key-1.0')).toEqual(['taken']);
    });
  });

  it('of somebody in the room ends with a reset there, one to whoever may does not', async () => {
    await offered();
    await offered({ key: 'key-2', senderId: null });
    await offered({ key: 'key-3', room: `${CHAT}/5` });
    await answered([{ kind: 'reset', room: CHAT, personaId: 'default', upTo: 0 }]);
    expect(await open()).toEqual(['key-2']);
    expect(await became('key-3.0')).toEqual(['taken']);
  });

  it('loses words that are erased, and is gone from a restored copy and when its time is over', async () => {
    const options = [{ label: 'the swordfish', command: { name: 'memory', argument: 'yes swordfish' } }];
    await offered({ options });
    await under.store.eraseWords(CHAT, phraseOf('swordfish'), FORGOTTEN);
    const [left] = (await offerOf(under.store, 'key-1'))?.options ?? [];
    expect(left).toEqual({
      ...{ label: `the ${FORGOTTEN}`, command: { name: 'memory', argument: `yes ${FORGOTTEN}` } },
    });
    expect(await pruned(under.store, NOW, UNTIL)).toBe(0);
    expect(await open()).toEqual(['key-1']);
    expect(await pruned(under.store, NOW, UNTIL + 1)).toBe(1);
    await offered({ key: 'key-2' });
    await under.store.quieten();
    expect(await open()).toEqual([]);
  });
}
