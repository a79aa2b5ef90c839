/**
 * The store's contract: several gateways on one store, each with a name of its own. What is to be done once is done by
 * one of them; each sees at once what the others wrote.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { CommandEffect, Store } from '../../../src/core/store.js';
import type { StoreUnderTest } from '../store.js';
import {
  ANN,
  begin,
  begun,
  CHAT,
  chatAt,
  claimed,
  command,
  delivery,
  edit,
  exchange,
  finish,
  finishWith,
  HOUR,
  lease,
  looked,
  MINUTE,
  message,
  NOW,
  nextOf,
  receive,
  recovered,
  type take,
  waitingTexts,
  windowTexts,
} from './words.js';

const LATE = NOW + MINUTE;
const owned = (owner: string, now = NOW) => ({ owner, channels: ['test'], now });

export function gatewayContract(under: StoreUnderTest): void {
  const both = async (): Promise<[Store, Store]> => [under.store, await under.another()];
  let given = 0;
  async function run(store: Store, ...effects: CommandEffect[]): Promise<void> {
    const { commands } = await receive(store, [command(`c${given++}`, 'do')]);
    const id = commands[0]?.id ?? 0;
    await store.takeCommand(id, lease());
    await store.finishCommand({ id, now: NOW, deliveries: [], effects });
  }

  describe('of two gateways', () => {
    it('one works in a room', async () => {
      const [a, b] = await both();
      await receive(a, [message('1', 'hi')]);
      const seen = await Promise.all([looked(a, CHAT, 'a'), looked(b, CHAT, 'b')]);
      const turns = await Promise.all([
        begin(a, seen[0], 'ta', { owner: 'a' }),
        begin(b, seen[1], 'tb', { owner: 'b' }),
      ]);
      expect(turns.filter((turn) => turn !== null)).toHaveLength(1);
      const [winner, loser] = turns[0] ? [a, b] : [b, a];
      expect(await loser.readRoom(CHAT, turns[0] ? 'b' : 'a', NOW)).toBeNull();
      expect((await loser.pending(owned(turns[0] ? 'b' : 'a'))).rooms).toEqual([]);
      const [turn] = turns.filter((one) => one !== null);
      expect(turn && (await finish(winner, turn, turns[0] ? 'ta' : 'tb'))).toBe('finished');
      expect(await windowTexts(loser)).toHaveLength(2);
    });

    it('one runs a command', async () => {
      const [a, b] = await both();
      const { commands } = await receive(a, [command('1', 'help')]);
      const id = commands[0]?.id ?? 0;
      const taken = await Promise.all([a.takeCommand(id, lease('a')), b.takeCommand(id, lease('b'))]);
      expect(taken.filter((one) => one !== null)).toHaveLength(1);
      const [holder, other] = taken[0] ? ['a', 'b'] : ['b', 'a'];
      expect((await b.pending(owned(other ?? ''))).commands).toEqual([]);
      expect(
        (await a.pending({ ...owned(other ?? ''), atStart: true })).commands,
        'its holder lives',
      ).toEqual([]);
      expect(await a.takeCommand(id, lease(other)), 'nor is it given').toBeNull();
      expect((await b.pending(owned(other ?? '', LATE))).commands, 'its lease ran out').toEqual(commands);
      expect(await b.takeCommand(id, lease(other, LATE))).toMatchObject({ tries: 2 });
      expect(await a.takeCommand(id, lease(holder, LATE))).toBeNull();
      await b.finishCommand({ id, now: LATE, deliveries: [delivery(`command:${id}`, 'done')], effects: [] });
      await a.finishCommand({ id, now: LATE, deliveries: [delivery(`command:${id}`, 'done')], effects: [] });
      expect((await a.counts()).undelivered, 'it ends once').toBe(1);
    });

    it('one sends an entry of the outbox, and what comes after it waits for that', async () => {
      const [a, b] = await both();
      const deliveries = [delivery('turn:t1', 'one'), delivery('turn:t1', 'two', { part: 1 })];
      await exchange(a, 't1', 'hi', { deliveries });
      const first = (await nextOf(a, CHAT, 'a'))?.id ?? 0;
      const tries = await Promise.all([
        a.claimDelivery(first, lease('a')),
        b.claimDelivery(first, lease('b')),
      ]);
      expect(tries.filter((begun) => begun)).toHaveLength(1);
      const other = tries[0] ? 'b' : 'a';
      expect(await nextOf(b, CHAT, other)).toBeNull();
      expect(await b.claimDelivery(first + 1, lease(other)), 'it is not its turn').toBe(false);
      expect((await b.pending(owned(other))).chats).toEqual([]);
      const taken = await nextOf(b, CHAT, other, LATE);
      expect(taken, 'whoever sent it may have done so').toMatchObject({ id: first, uncertainCrashes: 1 });
      expect(await b.claimDelivery(first, lease(other, LATE))).toBe(true);
      expect(await nextOf(b, CHAT, other, LATE)).toMatchObject({ uncertainCrashes: 1, attempts: 2 });
      await b.settle(first, { kind: 'sent', platformMessageId: '900' }, LATE);
      await a.settle(first, { kind: 'sent', platformMessageId: '901' }, LATE);
      expect(await a.delivery(String(first))).not.toMatchObject({ platformMessageId: '901' });
      expect((await nextOf(a, CHAT, 'a', LATE))?.body.text).toBe('two');
    });

    it('one takes over what the other held too long, whose turn changes nothing any more', async () => {
      const [a, b] = await both();
      await receive(a, [message('1', 'hi')]);
      const slow = await begun(a, 't1', { owner: 'a' });
      expect(await b.readRoom(CHAT, 'b', LATE - 1)).toBeNull();
      const taken = await claimed(b, CHAT, 'b', LATE);
      expect(taken.turn?.id).toBe('t1');
      expect(await a.hold(slow.claim, LATE + MINUTE)).toBe(false);
      expect(await a.addStep(slow.claim, 't1', { kind: 'call', callId: 'c' }, NOW)).toBe(false);
      expect(
        await a.addStep(slow.claim, 't1', { kind: 'waiting', callId: 'c', waitsFor: 'k', until: null }, LATE),
      ).toBe(false);
      expect(await a.fail(slow.claim, 't1')).toBe(0);
      expect(await finish(a, slow, 't1', { deliveries: [delivery('turn:t1', 'twice')] })).toBe('lost');
      await a.hold(slow.claim, null);
      expect(await finish(b, taken, 't1', { deliveries: [delivery('turn:t1', 'once')] })).toBe('finished');
      expect((await a.counts()).undelivered).toBe(1);
    });

    it('the start of one leaves alone what the other holds, and frees what ran out', async () => {
      const [a, b] = await both();
      await receive(a, [message('1', 'hi'), message('2', 'ho', { threadId: '5' }), command('3', 'help')]);
      const turn = await begun(a, 't1', { owner: 'a' });
      const { commands } = await a.pending(owned('a'));
      await a.takeCommand(commands[0]?.id ?? 0, lease('a'));
      await exchange(a, 't2', 'else', { room: 'test_2', deliveries: [delivery('turn:t2', 'x')] });
      const entry = (await nextOf(a, 'test_2', 'a'))?.id ?? 0;
      await a.claimDelivery(entry, lease('a'));
      expect(await recovered(b, 'b')).toEqual({ rooms: [`${CHAT}/5`], commands: [], chats: [], alarms: [] });
      expect(await a.hold(turn.claim, NOW + MINUTE)).toBe(true);
      expect(await a.delivery(String(entry))).toMatchObject({ uncertainCrashes: 0 });
      const late = await recovered(b, 'b', LATE);
      expect(late.rooms).toContain(CHAT);
      expect(late).toMatchObject({ commands, chats: ['test_2'] });
      expect(await b.delivery(String(entry))).toMatchObject({ uncertainCrashes: 1 });
      expect(await finish(a, turn, 't1')).toBe('lost');
      expect((await claimed(b, CHAT, 'b', LATE)).turn).toMatchObject({ crashes: 1 });
      expect(await b.takeCommand(commands[0]?.id ?? 0, lease('b', LATE))).toMatchObject({ crashes: 1 });
    });

    it('each sees at once what the other has received, approved, asked, named and moved', async () => {
      const [a, b] = await both();
      const told = { member: { text: '', marks: [] }, owner: { text: '', marks: [] } };
      const standing = (store: Store) => store.approvalOf({ chatId: CHAT, senderId: ANN.id });
      const question = (store: Store) => store.question({ room: CHAT, senderId: ANN.id, now: NOW });
      for (const store of [a, b]) {
        expect(await store.chat(CHAT)).toBeNull();
        expect(await store.aliasOf('test_lid')).toBeNull();
        expect(await standing(store)).toMatchObject({ chat: false });
        expect(await question(store)).toBeNull();
      }
      await receive(a, [message('1', 'hi')]);
      expect(await b.chat(CHAT)).toMatchObject({ activePersona: 'default', title: `Title of ${CHAT}` });
      expect(await waitingTexts(b)).toEqual(['hi']);
      const seen = await looked(b, CHAT, 'b');
      await receive(a, [edit('1', 'hello')]);
      expect(await begin(b, seen, 't1', { owner: 'b' }), 'it looked before the edit').toBeNull();
      await run(b, { kind: 'activate', chatId: CHAT, personaId: 'luna' });
      expect(await a.chat(CHAT)).toMatchObject({ activePersona: 'luna' });
      await a.approve({ codeOrId: CHAT, looksLike: null, asOwner: false, now: NOW, told });
      expect(await standing(b)).toMatchObject({ chat: true });
      await b.refuse({ id: CHAT });
      expect(await standing(a)).toMatchObject({ chat: false });
      await a.addAlias('test_lid', CHAT);
      expect(await b.aliasOf('test_lid')).toBe(CHAT);
      await b.addAlias('test_lid', 'test_2');
      expect(await a.aliasOf('test_lid')).toBe('test_2');
      const ask = { kind: 'ask', room: CHAT, senderId: ANN.id, askedBy: 'm', until: NOW + HOUR } as const;
      await run(a, { ...ask, ifYes: { name: 'memory', argument: '' } });
      const asked = await question(b);
      expect(asked).not.toBeNull();
      await receive(b, [message('2', 'no', { endsQuestion: asked?.id ?? 0 })]);
      expect(await question(a)).toBeNull();
      // Both had read it as open: the no came first, so the yes that the other took is nothing.
      const yes = command('3', 'memory', 'yes', { answers: asked?.id ?? 0 });
      expect((await receive(a, [yes])).commands).toEqual([]);
      await receive(a, [{ kind: 'moved', chatId: CHAT, address: 'new' }]);
      expect((await receive(b, [message('1', 'hi')])).duplicates, 'from where it has left').toBe(1);
      expect(await b.chat(CHAT)).toMatchObject({ address: 'new' });
    });

    it('a failed write leaves no copy that is wrong', async () => {
      const [a, b] = await both();
      await exchange(a, 't1', 'hi', { deliveries: [delivery('turn:t1', 'x')] });
      const { commands } = await receive(a, [command('c', 'do')]);
      const id = commands[0]?.id ?? 0;
      await a.takeCommand(id, lease());
      const failing = a.finishCommand({
        id,
        now: NOW,
        effects: [{ kind: 'activate', chatId: CHAT, personaId: 'luna' }],
        deliveries: [delivery('turn:t1', 'in the outbox already')],
      });
      await expect(failing).rejects.toMatchObject({ code: 'internal' });
      for (const store of [a, b]) expect(await store.chat(CHAT)).toMatchObject({ activePersona: 'default' });
    });

    it('what both receive in a room has one order, and nothing of it is there twice', async () => {
      const [a, b] = await both();
      const ids = Array.from({ length: 40 }, (_, n) => n);
      await Promise.all(
        ids.flatMap((n) => [
          receive(a, [message(`${n}`, `m${n}`)]),
          receive(b, [message(`${n}`, `m${n}`), message(`b${n}`, `b${n}`)]),
        ]),
      );
      const [seen, same] = [await looked(a, CHAT, 'a'), await looked(b, CHAT, 'b')];
      expect(seen.waiting).toEqual(same.waiting);
      expect(new Set(seen.waiting.map(({ text }) => text)).size).toBe(80);
      expect(seen.waiting).toHaveLength(80);
    });

    it('writes of one pass that fail do not take the others with them', async () => {
      const [a, b] = await both();
      await receive(a, [message('1', 'hi'), message('1', 'hi', { chat: chatAt('test_2') })]);
      const one = await looked(a);
      const two = await looked(a, 'test_2');
      const results = await Promise.allSettled([
        begin(a, one, 't1', { batch: [999_999] }),
        begin(a, two, 't2'),
        receive(a, [message('2', 'more')]),
      ]);
      expect(results.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'fulfilled']);
      expect((await b.roomNow('test_2')).running).toMatchObject({ turnId: 't2' });
      expect((await b.roomNow(CHAT)).running).toBeNull();
      expect(await waitingTexts(b)).toEqual(['hi', 'more']);
    });
  });

  describe('with the end of a turn', () => {
    it('its first delivery is handed over as being sent, where nothing of the chat waits before it', async () => {
      await receive(under.store, [message('1', 'hi')]);
      const turn = await begun(under.store, 't1');
      const deliveries = [delivery('turn:t1', 'one'), delivery('turn:t1', 'two', { part: 1 })];
      const ended = await finishWith(under.store, turn, 't1', { deliveries, send: lease('a') });
      expect(ended).toMatchObject({ first: { body: { text: 'one' }, attempts: 0, chatId: CHAT } });
      const { first } = ended as { first: { id: number } };
      expect(await nextOf(under.store, CHAT, 'b'), 'another finds it being sent').toBeNull();
      expect(await nextOf(under.store, CHAT, 'a')).toMatchObject({ id: first.id, attempts: 1 });
      await recovered(under.store, 'a');
      expect(await nextOf(under.store, CHAT, 'b')).toMatchObject({ uncertainCrashes: 1 });
      await under.store.settle(first.id, { kind: 'sent', platformMessageId: '900' }, NOW);
      await receive(under.store, [message('2', 'more')]);
      const next = await begun(under.store, 't2');
      const later = await finishWith(under.store, next, 't2', {
        deliveries: [delivery('turn:t2', 'three')],
        send: lease('a'),
      });
      expect(later, 'something waits before it').toEqual({ first: null });
      expect((await nextOf(under.store))?.body.text).toBe('two');
    });

    it('nothing is handed over where nothing is said, or nobody sends it', async () => {
      await receive(under.store, [message('1', 'hi')]);
      const turn = await begun(under.store, 't1');
      expect(await finishWith(under.store, turn, 't1', { send: lease() })).toEqual({ first: null });
      await receive(under.store, [message('2', 'ho')]);
      const next = await begun(under.store, 't2');
      const ended = await finishWith(under.store, next, 't2', { deliveries: [delivery('turn:t2', 'x')] });
      expect(ended).toEqual({ first: null });
      expect(await nextOf(under.store)).toMatchObject({ attempts: 0 });
    });
  });

  it('a notice may be delivered before an entry that is there already', async () => {
    await exchange(under.store, 't1', 'hi', {
      deliveries: [delivery('turn:t1', 'one'), delivery('turn:t1', 'two', { part: 1 })],
    });
    const first = (await nextOf(under.store))?.id ?? 0;
    const to = {
      chatId: CHAT,
      channel: 'test',
      address: '1',
      threadId: null,
      kind: 'group',
      now: NOW,
    } as const;
    const late = { ...to, delivery: delivery(`late:${first}`, 'late'), precedes: first };
    expect(await under.store.post(late)).toBe(true);
    expect(await under.store.post(late)).toBe(false);
    expect(await under.store.claimDelivery(first, lease()), 'it is not the next any more').toBe(false);
    const texts: string[] = [];
    for (let next = await nextOf(under.store); next; next = await nextOf(under.store)) {
      texts.push(next.body.text);
      await under.store.settle(next.id, { kind: 'sent', platformMessageId: `${next.id}` }, NOW);
    }
    expect(texts).toEqual(['late', 'one', 'two']);
  });

  type Move = { who: 0 | 1; kind: 'receive' | 'work' | 'finish' | 'late' | 'die' };
  const move: fc.Arbitrary<Move> = fc.record({
    who: fc.constantFrom(0 as const, 1 as const),
    kind: fc.constantFrom('receive', 'receive', 'work', 'work', 'finish', 'finish', 'late', 'die'),
  });

  it('answers every message once, whatever two gateways do in whatever order', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(move, { minLength: 5, maxLength: 40 }), (moves) =>
        under.withFresh(async ({ store: first, another }) => {
          const gateways = [
            { store: first, name: 'a', turn: null as Awaited<ReturnType<typeof take>>, id: '' },
            { store: await another(), name: 'b', turn: null as Awaited<ReturnType<typeof take>>, id: '' },
          ];
          const received: string[] = [];
          const answered: string[] = [];
          let now = NOW;
          let next = 0;
          async function work({ who, kind }: Move): Promise<void> {
            const mine = gateways[who];
            if (!mine) return;
            const { store, name } = mine;
            if (kind === 'receive') {
              const text = `m${next++}`;
              received.push(text);
              // Both are told of it, as two connections of one account may be.
              const results = [];
              for (const gateway of gateways)
                results.push(await receive(gateway.store, [message(text, text)]));
              expect(results.map(({ messages }) => messages).sort()).toEqual([0, 1]);
            } else if (kind === 'work') {
              const seen = await store.readRoom(CHAT, name, now);
              if (!seen) return;
              if (seen.unfinished) {
                const claim = await store.claim(seen, lease(name, now));
                mine.turn = claim && { ...seen, ...claim };
                mine.id = seen.unfinished.turnId;
              } else {
                mine.id = `t${next++}`;
                mine.turn = await begin(store, seen, mine.id, { owner: name, now });
              }
            } else if (kind === 'finish') {
              if (!mine.turn) return;
              const { batch } = mine.turn;
              const end = await finish(store, mine.turn, mine.id, {
                deliveries: [delivery(`turn:${mine.id}`, 'said')],
                now,
              });
              if (end === 'finished') answered.push(...batch.map(({ text }) => text));
              mine.turn = null;
            } else if (kind === 'late') now += MINUTE / 2;
            else {
              mine.turn = null;
              await store.pending({ ...owned(name, now), atStart: true });
            }
          }
          for (const one of moves) await work(one);
          now += 10 * MINUTE;
          for (let round = 0; round < 4; round++) {
            await work({ who: 0, kind: 'work' });
            await work({ who: 0, kind: 'finish' });
          }
          expect(answered.sort()).toEqual(received.sort());
          expect(await gateways[1]?.store.readRoom(CHAT, 'b', now)).toBeNull();
        }),
      ),
      { numRuns: 40 },
    );
  });
}
