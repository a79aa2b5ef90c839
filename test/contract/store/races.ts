/**
 * The store's contract: several processes at the same moment. What one of them is to do is done by one, what is counted is
 * counted once, and who follows a growing table by its numbers misses nothing. Each is tried many times: on a database that
 * runs transactions side by side, a verb without its lock fails in some rounds only.
 */
import { describe, expect, it } from 'vitest';
import { type NewQuestion, offerKeyOf, type Refusal, waitsForCall } from '../../../src/core/access.js';
import type { Post } from '../../../src/core/channel.js';
import type { Firing, Job, NewJob } from '../../../src/core/jobs.js';
import type { MattTurn } from '../../../src/core/journal.js';
import { phraseOf } from '../../../src/core/phrase.js';
import type { Receipt } from '../../../src/core/receipt.js';
import { type CommandEffect, putSetting, type Store, settingOf } from '../../../src/core/store.js';
import { TASK_COMPLETED, type TaskParent, taskEventId } from '../../../src/core/task.js';
import { BEGINNING, type Position, type Step } from '../../../src/core/transcript.js';
import type { StoreUnderTest } from '../store.js';
import { ending, newTask } from './tasks.js';
import {
  ANN,
  askedCall,
  begin,
  begun,
  CHAT,
  chatAt,
  claimed,
  command,
  delivery,
  finish,
  finishWith,
  lease,
  looked,
  MINUTE,
  message,
  NOW,
  receive,
  recovered,
  windowTexts,
} from './words.js';

const LATE = NOW + MINUTE;
const ROUNDS = 25;
const BOUNDS = { waiting: 5_000, perRoom: 5_000, delegated: 5_000 };

const numbers = (count: number) => Array.from({ length: count }, (_, n) => n);

/** Runs `round` with a room of its own, again and again. */
async function rounds(round: (room: string, n: number) => Promise<void>, times = ROUNDS): Promise<void> {
  for (const n of numbers(times)) await round(`test_${n + 1}`, n);
}

const said = (room: string, id: string, text: string): Receipt => message(id, text, { chat: chatAt(room) });

export function raceContract(under: StoreUnderTest): void {
  /** Several processes, each with its connections. */
  async function processes(count: number): Promise<Store[]> {
    const stores = [under.store];
    while (stores.length < count) stores.push(await under.another());
    return stores;
  }
  const two = async () => (await processes(2)) as [Store, Store];

  it('of those that replace one value of a setting, one does', async () => {
    const stores = await processes(3);
    await rounds(async (key) => {
      const replaced = (from: string | null) =>
        Promise.all(stores.map((store, n) => store.replaceSetting(key, from, `${from ?? 'first'} ${n}`)));
      for (const from of [null, 'begun']) {
        expect((await replaced(from)).filter(Boolean)).toHaveLength(1);
        await putSetting(under.store, key, 'begun');
      }
      expect(await under.store.replaceSetting(key, 'another', 'x')).toBe(false);
      expect(await settingOf(under.store, key)).toBe('begun');
    });
  });

  const CALLS: Step = {
    kind: 'answer',
    text: '',
    calls: [{ id: 'c1', name: 'run', arguments: '{"command":"ls"}' }],
  };
  const postTo = (chatId: string, origin: string): Post => ({
    ...{ chatId, channel: 'test', address: chatId, kind: 'group', threadId: null, now: NOW },
    delivery: delivery(origin, 'may it?', { personaId: null }),
  });
  const questionOf = (room: string, turnId: string, post = postTo(room, `asked:${turnId}`)): NewQuestion => {
    const what = { id: turnId.toUpperCase(), arguments: '{"command":"ls"}' };
    const call = {
      ...{ ...what, room, chatId: room, personaId: 'default', turnId, callId: 'c1', tool: 'run', why: 'w' },
      ...{ waitsFor: waitsForCall(what), askedAt: NOW, until: NOW + MINUTE },
    };
    const options = [{ label: 'Allow', command: { name: 'approve', argument: what.id } }];
    const offer = { key: `${offerKeyOf(what.id)}0`, room, senderId: null, until: call.until, options };
    return { call, posts: [post], offers: [offer] };
  };
  const waitFor = (waitsFor: string) => ({ kind: 'waiting' as const, callId: 'c1', waitsFor, until: null });

  /** A turn at work, about to wait. */
  async function working(room: string, turnId: string, store = under.store) {
    await receive(store, [said(room, `in-${turnId}`, 'run it')]);
    const turn = await begun(store, turnId, { room });
    await store.addStep(turn.claim, turnId, CALLS, NOW);
    return turn;
  }
  /** A turn that waits for a person's yes. */
  async function asking(room: string, turnId: string): Promise<NewQuestion['call']> {
    const { claim } = await working(room, turnId);
    const question = questionOf(room, turnId);
    const waits = waitFor(question.call.waitsFor);
    expect(await under.store.addStep(claim, turnId, waits, NOW, { question })).toBe(true);
    return question.call;
  }
  const deny = (told: Refusal['told'] = null): Refusal => ({ content: 'denied', told });

  /** A command of the room, taken and about to end with this effect. */
  async function ordering(store: Store, effect: CommandEffect & { room: string }) {
    const { room } = effect;
    const said = command(`order-${room}`, 'order', '', { chat: chatAt(room) });
    const { commands } = await receive(store, [said]);
    const stored = await store.takeCommand(commands[0]?.id ?? 0, lease());
    const upTo = stored?.afterMessage ?? 0;
    const effects = [effect.kind === 'reset' ? { ...effect, upTo } : effect];
    return () => store.finishCommand({ id: stored?.id ?? 0, now: NOW, deliveries: [], effects });
  }
  const resetting = (store: Store, room: string) =>
    ordering(store, { kind: 'reset', room, personaId: 'default', upTo: 0 });

  /** Sends everything of a chat, in order. */
  async function sendAll(chatId: string): Promise<number> {
    for (let sent = 0; ; sent++) {
      const next = await under.store.nextDelivery(chatId, 'sender', NOW + 2 * MINUTE);
      if (next === null) return sent;
      await under.store.settle(next.id, { kind: 'sent', platformMessageId: `p${next.id}` }, NOW);
    }
  }

  describe('of several processes at the same moment', () => {
    it('one decides a call that people were asked about', async () => {
      const stores = await processes(4);
      await rounds(async (room, n) => {
        const turnId = `t${n}`;
        const { id } = await asking(room, turnId);
        const answers = await Promise.all(
          stores.map((store, who) => {
            const by = { by: `test_${who}`, commandId: n * 10 + who, now: NOW + 1 };
            return store.decide({ id, ...by, refusal: who % 2 === 0 ? null : deny() });
          }),
        );
        expect(answers.filter((answer) => answer !== null)).toEqual([room]);
        const { steps = [] } = (await claimed(under.store, room)).turn ?? {};
        const decisions = steps.filter(({ kind }) => kind === 'approved' || kind === 'result');
        expect(decisions).toHaveLength(1);
        const isApproved = answers.findIndex((answer) => answer !== null) % 2 === 0;
        expect(decisions[0]?.kind).toBe(isApproved ? 'approved' : 'result');
        expect(await askedCall(under.store, id)).toMatchObject({
          decision: isApproved ? 'approved' : 'denied',
        });
      });
    });

    it('one decides what another lets expire', async () => {
      const [a, b] = await two();
      await rounds(async (room, n) => {
        const { id } = await asking(room, `t${n}`);
        const [answer, expired] = await Promise.all([
          a.decide({ id, by: 'test_9', commandId: n, now: NOW + 1, refusal: null }),
          b.decide({ id, by: null, now: NOW + 1, refusal: deny() }),
        ]);
        expect([answer, expired].sort()).toEqual([room, null].sort());
        expect(await askedCall(a, id)).toMatchObject({ decision: answer === null ? 'expired' : 'approved' });
        const { steps = [] } = (await claimed(a, room)).turn ?? {};
        expect(steps.filter(({ kind }) => kind === 'approved' || kind === 'result')).toHaveLength(1);
      });
    });

    it('one fires a slot of a job', async () => {
      const stores = await processes(3);
      await receive(under.store, [message('1', 'hi')]);
      const job = await addJob(under.store, 'j1');
      for (const n of numbers(ROUNDS)) {
        const seen = await jobNow(under.store, job);
        const fired = await Promise.all(stores.map((store) => store.fireJob(firing(seen))));
        expect(fired.filter((one) => one !== null)).toHaveLength(1);
        expect(await under.store.runsOf(job.id)).toHaveLength(Math.min(n + 1, 20));
        const [run] = await under.store.runsOf(job.id);
        const at = { job: seen, slot: run?.slot ?? 0, attempt: 0, endedAt: NOW };
        const ended = { ...at, outcome: 'answered' } as const;
        const ends = await Promise.all(stores.map((store) => store.changeJob({ ended }, {}, NOW)));
        expect(ends.filter((isFirst) => isFirst)).toHaveLength(1);
      }
      const { waiting } = await looked(under.store);
      expect(waiting.filter(({ author }) => author.kind === 'gateway')).toHaveLength(ROUNDS);
    });

    it('a job is cancelled or fired, not set again by the one that lost', async () => {
      const [a, b] = await two();
      await rounds(async (room, n) => {
        await receive(a, [said(room, '1', 'hi')]);
        const job = await addJob(a, `j${n}`, room);
        const cancel = { state: 'cancelled', nextAt: null } as const;
        const [, cancelled] = await Promise.all([
          a.fireJob(firing(job)),
          b.changeJob({ id: job.id, from: ['active'] }, cancel, NOW),
        ]);
        expect(cancelled).toBe(true);
        expect(await jobNow(a, job)).toMatchObject(cancel);
        const next = await addJob(a, `k${n}`, room);
        await Promise.all([a.fireJob(firing(next)), receive(b, [{ kind: 'apart', room }])]);
        expect(await jobNow(a, next), 'the room belongs to another chat now').toMatchObject(cancel);
      });
    });

    it('keep the bounds of jobs and tasks, and give no number and no key twice', async () => {
      const stores = await processes(4);
      await rounds(async (room, n) => {
        await receive(under.store, [said(room, '1', 'hi')]);
        const jobs = await Promise.all(
          numbers(8).map((k) =>
            stores[k % 4]?.addJob(newJob(`j${n}-${k}`, room), { open: 3, followUps: 9, followUpsADay: 9 }),
          ),
        );
        expect(jobs.filter((job) => job === 'open')).toHaveLength(5);
        expect((await under.store.jobs({ chatId: room })).map((job) => job.n)).toEqual([1, 2, 3]);
        const given = (which: string) => ({ ...BOUNDS, [which]: 3 });
        const delegated = await Promise.all(
          numbers(8).map((k) =>
            stores[k % 4]?.addTask(newTask(`d${n}-${k}`, { parent: parent(room) }), given('perRoom')),
          ),
        );
        expect(delegated.filter((one) => one?.kind === 'added')).toHaveLength(3);
        const idempotency = { key: `key${n}`, hash: 'h' };
        const keyed = await Promise.all(
          numbers(6).map((k) => stores[k % 4]?.addTask(newTask(`i${n}-${k}`, { idempotency }), BOUNDS)),
        );
        expect(keyed.filter((one) => one?.kind === 'added')).toHaveLength(1);
        expect(keyed.filter((one) => one?.kind === 'there')).toHaveLength(5);
      }, 10);
      const waiting = await Promise.all(
        numbers(40).map((k) => stores[k % 4]?.addTask(newTask(`w${k}`), { ...BOUNDS, waiting: 15 })),
      );
      expect(
        waiting.filter((one) => one?.kind === 'added'),
        'ten with a key wait already',
      ).toHaveLength(5);
    });

    it('one runs a task, and one ends it', async () => {
      const stores = await processes(4);
      await rounds(async (room, n) => {
        await working(room, `t${n}`);
        for (const k of numbers(3)) await under.store.addTask(newTask(`p${n}-${k}`), BOUNDS);
        const id = `k${n}`;
        await under.store.addTask(newTask(id, { parent: parent(room, `t${n}`) }), BOUNDS);
        const taken = await Promise.all([
          ...stores.map((store, k) => store.claimTask({ ...lease(`p${k}`), of: 'programs' })),
          ...stores.map((store, k) => store.claimTask({ ...lease(`p${k}`), of: { channels: ['test'] } })),
        ]);
        const ids = taken.flatMap((task) => task?.id ?? []);
        expect(ids.sort()).toEqual([id, ...numbers(3).map((k) => `p${n}-${k}`)]);
        // Its process has died: all others see that, and so may itself.
        const left = await Promise.all(
          stores.map((store) => store.runningTasks({ owner: 'new', now: LATE })),
        );
        const [owner] = left.flat().flatMap((one) => (one.id === id ? one.owner : []));
        const tell = { ...told(id, room), id: taskEventId(id) };
        const end = ending(id, { status: 'interrupted', result: null, error: 'died', tell });
        const ends = await Promise.all(stores.map((store) => store.finishTask(end, owner ?? '')));
        expect(ends.filter((one) => one === 'finished')).toHaveLength(1);
        const statuses = (await under.store.taskEvents(id)).flatMap((one) =>
          one.kind === 'status' ? [one.status] : [],
        );
        expect(statuses).toEqual(['pending', 'running', 'interrupted']);
        for (const k of numbers(3)) await under.store.tellTask(`p${n}-${k}`, 'stop', NOW);
      });
    });

    it('a task ends as one of them says, whether it is finished, stopped or forgotten', async () => {
      const [a, b] = await two();
      await rounds(async (room, n) => {
        await working(room, `t${n}`);
        const id = `k${n}`;
        await a.addTask(newTask(id, { parent: parent(room, `t${n}`) }), BOUNDS);
        await a.claimTask({ ...lease('p'), of: { channels: ['test'] } });
        const stop = [
          async () => b.tellTask(id, 'stop', NOW),
          await resetting(b, room),
          async () => receive(b, [{ kind: 'apart', room }]),
        ][n % 3];
        const tell = n % 2 === 0 ? told(id, room) : null;
        const [end] = await Promise.all([a.finishTask(ending(id, { tell }), 'p'), stop?.()]);
        expect((await a.task(id))?.status).toBe(end === 'finished' ? 'completed' : 'stopped');
        const ends = (await a.taskEvents(id)).filter(
          (event) => event.kind === 'status' && event.status !== 'pending' && event.status !== 'running',
        );
        expect(ends).toHaveLength(1);
      }, 3 * ROUNDS);
    });

    it('one delivers to a chat, whichever of its rooms end their turns', async () => {
      const stores = await processes(3);
      await rounds(async (chatId, n) => {
        const threads = stores.map((_, k) => `${k}`);
        const turns = await Promise.all(
          threads.map(async (threadId, k) => {
            const turnId = `t${n}-${k}`;
            await receive(under.store, [message(turnId, 'hi', { chat: chatAt(chatId), threadId })]);
            return { turnId, taken: await begun(under.store, turnId, { room: `${chatId}/${threadId}` }) };
          }),
        );
        const ends = await Promise.all(
          turns.map(({ turnId, taken }, k) => {
            const deliveries = [delivery(`turn:${turnId}`, 'said')];
            const send = lease(`p${k}`);
            return stores[k] && finishWith(stores[k], taken, turnId, { deliveries, send });
          }),
        );
        const underWay = ends.flatMap((end) => (end && end !== 'lost' && end.first ? [end.first] : []));
        expect(underWay).toHaveLength(1);
        const tries = await Promise.all(
          stores.map((store, k) => store.nextDelivery(chatId, `p${k}`, NOW).then((next) => next?.id)),
        );
        expect(new Set(tries.filter((id) => id !== undefined))).toEqual(new Set([underWay[0]?.id]));
        await sendAll(chatId);
      });
    });

    it('one delivers to a chat, whatever else is said there at that moment', async () => {
      const [a, b, c] = (await processes(3)) as [Store, Store, Store];
      await rounds(async (chatId, n) => {
        // Somebody else's room asks people of this chat, and one of its questions is refused here.
        const other = `test_o${n}`;
        const asked = await asking(`test_r${n}`, `r${n}`);
        await sendAll(asked.chatId);
        const waits = await working(other, `o${n}`);
        const question = questionOf(other, `o${n}`, postTo(chatId, `asked:o${n}`));
        const step = waitFor(question.call.waitsFor);
        const refusal = deny(postTo(chatId, `refused:${n}`));
        await b.claimTask({ ...lease('p'), of: 'programs' });
        await b.addTask(newTask(`k${n}`), BOUNDS);
        await b.claimTask({ ...lease('p'), of: 'programs' });
        const task = questionOf(chatId, `k${n}`, postTo(chatId, `asked:k${n}`));
        const turn = await working(chatId, `t${n}`);
        const deliveries = [delivery(`turn:t${n}`, 'said')];
        const [end] = await Promise.all([
          pauses(n % 4).then(() => finishWith(a, turn, `t${n}`, { deliveries, send: lease('a') })),
          b.addStep(waits.claim, `o${n}`, step, NOW, { question }),
          c.decide({ id: asked.id, by: 'test_9', commandId: n, now: NOW + 1, refusal }),
          b.noteTask({ id: `k${n}`, owner: 'p' }, { question: task }),
        ]);
        const first = end === 'lost' ? null : end.first;
        const next = await b.nextDelivery(chatId, 'b', NOW);
        expect(first === null || next === null, 'one is under way, or none').toBe(true);
        expect(first ?? next).not.toBeNull();
        expect(await sendAll(chatId)).toBe(4);
      });
    });

    it('one delivers to a chat, though somebody is let in there at that moment', async () => {
      const [a, b] = await two();
      const told = { member: { text: 'Come in.', marks: [] }, owner: { text: '', marks: [] } };
      await rounds(async (chatId, n) => {
        const code = `CODE${n}`;
        const pairing = { channel: 'test', senderId: `test_s${n}`, now: NOW, answerEveryMs: 0 };
        await a.requestPairing(
          { ...pairing, most: 99, mostPerHour: 99 },
          {
            ...{ name: 'Sue', code, expiresAt: LATE, announcements: [] },
            answer: postTo(chatId, `pairing:${n}`),
          },
        );
        await sendAll(chatId);
        const turn = await working(chatId, `t${n}`);
        const deliveries = [delivery(`turn:t${n}`, 'said')];
        const letIn = { codeOrId: code, looksLike: null, asOwner: false, now: NOW, told };
        const [end] = await Promise.all([
          pauses(n % 12).then(() => finishWith(a, turn, `t${n}`, { deliveries, send: lease('a') })),
          b.approve(letIn),
        ]);
        const first = end === 'lost' ? null : end.first;
        const next = await b.nextDelivery(chatId, 'b', NOW);
        expect(first === null || next === null, 'one is under way, or none').toBe(true);
        expect(await sendAll(chatId)).toBe(2);
      }, 4 * ROUNDS);
    });

    it('words are erased, and the outcome of what held them is stored', async () => {
      const [a, b] = await two();
      await rounds(async (room, n) => {
        const turn = await working(room, `t${n}`);
        const text = 'the fire is red';
        const deliveries = numbers(30).map((part) => delivery(`turn:t${n}`, text, { part }));
        await finish(a, turn, `t${n}`, { deliveries });
        let isErasing = true;
        const settling = (async () => {
          for (let sent = 0; isErasing && sent < 30; sent++) {
            const next = await b.nextDelivery(room, 'b', NOW);
            await b.settle(next?.id ?? 0, { kind: 'sent', platformMessageId: `p${sent}` }, NOW);
          }
        })();
        await a.eraseWords(room, phraseOf('fire'), '…');
        isErasing = false;
        await settling;
        await sendAll(room);
        const entries = (await a.journal({ after: 0, most: 10_000 })).map(({ entry }) => entry);
        const sends = entries.filter(({ id }) => id.startsWith(`turn-t${n}-send-`)) as MattTurn[];
        expect(sends.filter(({ results }) => results !== null && 'output' in results)).toHaveLength(30);
        expect(JSON.stringify(sends)).not.toContain('fire');
      }, 10);
    });

    it('one runs a command, and one sends an entry', async () => {
      const stores = await processes(4);
      await rounds(async (room, n) => {
        const { commands } = await receive(under.store, [
          command(`c${n}`, 'help', '', { chat: chatAt(room) }),
        ]);
        const id = commands[0]?.id ?? 0;
        const taken = await Promise.all(stores.map((store, k) => store.takeCommand(id, lease(`p${k}`))));
        expect(taken.filter((one) => one !== null)).toHaveLength(1);
        const end = { id, now: NOW, deliveries: [delivery(`command:${id}`, 'done')], effects: [] };
        await Promise.all(stores.map((store) => store.finishCommand(end)));
        const next = await under.store.nextDelivery(room, 'p0', NOW);
        const sends = await Promise.all(
          stores.map((store, k) => store.claimDelivery(next?.id ?? 0, lease(`p${k}`))),
        );
        expect(sends.filter((isBegun) => isBegun)).toHaveLength(1);
        await sendAll(room);
      });
    });

    it('one answers, however many receive and work in a room', async () => {
      const stores = await processes(4);
      const all = numbers(120).map((n) => `m${n}`);
      let isReceiving = true;
      let turns = 0;
      const answered: string[] = [];
      const receiving = numbers(6).map(async (k) => {
        // Each is told of some that another was told of, too.
        const mine = all.filter((_, n) => n % 6 === k || n % 6 === (k + 1) % 6);
        for (const text of mine) await receive(stores[k % 2] ?? under.store, [message(text, text)]);
      });
      const working = stores.slice(2).map(async (store, k) => {
        const owner = `worker ${k}`;
        for (;;) {
          const wasReceiving = isReceiving;
          const seen = await store.readRoom(CHAT, owner, NOW);
          if (seen === null) {
            if (!wasReceiving && answered.length >= all.length) return;
            await pause();
            continue;
          }
          const turnId = `t${turns++}`;
          const turn = await begin(store, seen, turnId, { owner });
          if (turn === null) continue;
          if ((await finish(store, turn, turnId)) === 'finished')
            answered.push(...turn.batch.map(({ text }) => text));
        }
      });
      const following = followHeard(stores[1] as Store, () => isReceiving || answered.length < all.length);
      await Promise.all(receiving);
      isReceiving = false;
      await Promise.all(working);
      expect(answered.sort()).toEqual([...all].sort());
      const window = await windowTexts(under.store, { limit: 1_000 });
      expect(window.filter((text) => text.startsWith('m')).sort()).toEqual([...all].sort());
      expect((await following).filter((text) => text.startsWith('m')).sort()).toEqual([...all].sort());
    });

    it('messages of a room have numbers in the order in which they are seen', async () => {
      const stores = await processes(4);
      let isReceiving = true;
      const watching = (async () => {
        let newest = 0;
        const known = new Set<number>();
        for (;;) {
          const isLast = !isReceiving;
          const waiting = (await stores[3]?.readRoom(CHAT, 'me', NOW))?.waiting ?? [];
          const late = waiting.filter(({ id }) => id < newest && !known.has(id));
          expect(
            late.map(({ text }) => text),
            'seen after younger ones',
          ).toEqual([]);
          for (const { id } of waiting) known.add(id);
          newest = Math.max(newest, ...known);
          if (isLast) return known.size;
          await pause();
        }
      })();
      await Promise.all(
        stores.slice(0, 3).map(async (store, k) => {
          for (const n of numbers(25)) {
            const texts = numbers(n % 3 === 0 ? 12 : 1).map((m) => `${k}.${n}.${m}`);
            await receive(
              store,
              texts.map((text) => message(text, text)),
            );
          }
        }),
      );
      isReceiving = false;
      expect(await watching).toBe(3 * (9 * 12 + 16));
    });

    it('who follows the journal and what is said misses nothing that is stored late', async () => {
      const [reader, ...writers] = (await processes(4)) as [Store, Store, Store, Store];
      const chats = writers.map((_, k) => `test_${k + 1}`);
      let isWriting = true;
      const changes = follow(
        () => isWriting,
        async (mark: number) => {
          const rows = await reader.journal({ after: mark, most: 40 });
          return { found: rows.map(({ entry }) => entry.id), mark: rows.at(-1)?.mark ?? mark };
        },
      );
      const unfiled = follow(
        () => isWriting,
        async (mark: number) => {
          const rows = (await reader.unfiled(mark)).filter(({ entry }) => entry !== null);
          const found = rows.flatMap(({ entry }) => entry?.id ?? []);
          return { found, mark: Math.max(mark, ...rows.map(({ changed }) => changed)) };
        },
      );
      const words = follow(
        () => isWriting,
        async (mark: number) => {
          const { said: found, upTo } = await reader.saidSince({ chats, after: mark });
          return { found: found.map(({ text }) => text), mark: Math.max(mark, upTo) };
        },
      );
      const written: string[] = [];
      await Promise.all(
        writers.map(async (store, k) => {
          for (const n of numbers(20)) {
            // A long transaction of one overtakes, and is overtaken by, short ones of others.
            const texts = numbers((n + k) % 3 === 0 ? 20 : 1).map((m) => `${k}.${n}.${m}`);
            written.push(...texts);
            await receive(
              store,
              texts.map((text) => said(chats[k] ?? '', text, text)),
            );
          }
        }),
      );
      isWriting = false;
      expect((await words).sort()).toEqual(written.sort());
      for (const followed of [changes, unfiled]) {
        const found = await followed;
        expect(new Set(found).size).toBe(written.length);
        expect(found).toHaveLength(written.length);
      }
    });

    it('what a dead process held is freed and counted once', async () => {
      const [a, b] = await two();
      await rounds(async (room, n) => {
        const turnId = `t${n}`;
        await receive(a, [said(room, '1', 'hi')]);
        await begun(a, turnId, { room, owner: 'dead' });
        const { commands } = await receive(a, [command('c', 'help', '', { chat: chatAt(room) })]);
        const id = commands[0]?.id ?? 0;
        await a.takeCommand(id, lease('dead'));
        await a.post(postTo(room, `notice:${n}`));
        const entry = (await a.nextDelivery(room, 'dead', NOW))?.id ?? 0;
        await a.claimDelivery(entry, lease('dead'));
        await Promise.all([recovered(a, 'a', LATE), recovered(b, 'b', LATE)]);
        expect((await looked(a, room, 'a', LATE)).unfinished).toEqual({ turnId, crashes: 1 });
        expect(await a.takeCommand(id, lease('a', LATE))).toMatchObject({ crashes: 1 });
        expect(await a.delivery(String(entry))).toMatchObject({ uncertainCrashes: 1 });
        await a.finishCommand({ id, now: LATE, deliveries: [], effects: [] });
        const turn = await claimed(a, room, 'a', LATE);
        expect(await finish(a, turn, turnId)).toBe('finished');
        await sendAll(room);
      });
    });

    it('what one has just taken from a dead process is not freed by another that starts', async () => {
      const [a, b] = await two();
      await rounds(async (room, n) => {
        const turnId = `t${n}`;
        await receive(a, [said(room, '1', 'hi')]);
        await begun(a, turnId, { room, owner: 'dead' });
        const { commands } = await receive(a, [command('c', 'help', '', { chat: chatAt(room) })]);
        const id = commands[0]?.id ?? 0;
        await a.takeCommand(id, lease('dead'));
        await a.post(postTo(room, `notice:${n}`));
        const entry = (await a.nextDelivery(room, 'dead', NOW))?.id ?? 0;
        await a.claimDelivery(entry, lease('dead'));
        const seen = await looked(a, room, 'a', LATE);
        const [claim, taken, isBegun] = await Promise.all([
          a.claim(seen, lease('a', LATE)),
          a.takeCommand(id, lease('a', LATE)),
          a.claimDelivery(entry, lease('a', LATE)),
          recovered(b, 'b', LATE),
        ]);
        expect(claim).not.toBeNull();
        expect(claim && (await a.hold(claim.claim, LATE + MINUTE))).toBe(true);
        expect(taken).not.toBeNull();
        expect(await b.takeCommand(id, lease('b', LATE))).toBeNull();
        expect(isBegun).toBe(true);
        expect(await b.claimDelivery(entry, lease('b', LATE))).toBe(false);
        await a.finishCommand({ id, now: LATE, deliveries: [], effects: [] });
        expect(claim && (await finish(a, claim, turnId, { now: LATE }))).toBe('finished');
        await sendAll(room);
      });
    });

    it('a turn goes on though its result comes in the moment in which it begins to wait', async () => {
      const [a, b] = await two();
      await rounds(async (room, n) => {
        const turnId = `t${n}`;
        const { claim } = await working(room, turnId);
        const resume = { kind: 'resume', waitsFor: `w${n}`, content: 'yes', failed: false } as const;
        const [isSuspended] = await Promise.all([
          a.addStep(claim, turnId, waitFor(`w${n}`), NOW),
          receive(b, [resume]),
        ]);
        expect(isSuspended).toBe(true);
        const { turn } = await claimed(a, room);
        expect(turn?.id).toBe(turnId);
        expect(turn?.steps.filter(({ kind }) => kind === 'result')).toHaveLength(1);
      }, 2 * ROUNDS);
    });

    it('what is shown of a reply is known where the turn ends in the moment in which its id comes', async () => {
      const [a, b] = await two();
      await rounds(async (room, n) => {
        const turnId = `t${n}`;
        const turn = await working(room, turnId);
        const shown = { body: { text: 'He', marks: [] }, speaker: 'Default', key: 'k', sentAt: NOW };
        await a.show(turnId, [{ ...shown, platformMessageId: null }]);
        const deliveries = [delivery(`turn:${turnId}`, 'Hello')];
        await Promise.all([
          finish(a, turn, turnId, { deliveries }),
          (n % 2 === 0 ? a : b).show(turnId, [{ ...shown, platformMessageId: '77' }]),
        ]);
        const next = await a.nextDelivery(room, 'me', NOW);
        expect(next?.shown).toMatchObject({ platformMessageId: '77', key: 'k' });
      }, 2 * ROUNDS);
    });

    it('a turn that is forgotten does not come back with a decision, a result or a late start', async () => {
      const [a, b] = await two();
      await rounds(async (room, n) => {
        const turnId = `t${n}`;
        const [, act] =
          (await [
            async () => {
              const { id } = await asking(room, turnId);
              return [
                id,
                () => b.decide({ id, by: 'test_9', commandId: n, now: NOW + 1, refusal: null }),
              ] as const;
            },
            async () => {
              const { claim } = await working(room, turnId);
              await a.addStep(claim, turnId, waitFor(`w${n}`), NOW);
              const resume = { kind: 'resume', waitsFor: `w${n}`, content: 'yes', failed: false } as const;
              return ['', () => receive(b, [resume])] as const;
            },
            async () => {
              await receive(a, [said(room, '1', 'hi')]);
              const seen = await looked(b, room, 'b');
              return ['', () => begin(b, seen, turnId, { owner: 'b' })] as const;
            },
          ][n % 3]?.()) ?? [];
        const reset = await resetting(a, room);
        await Promise.all([reset(), act?.()]);
        expect(await a.readRoom(room, 'c', LATE), 'nothing is to be done').toBeNull();
        expect(await a.roomNow(room)).toMatchObject({ running: null, suspended: null, waits: null });
        expect(await windowTexts(a, { room })).toEqual([]);
        await sendAll(room);
      }, 3 * ROUNDS);
    });

    it('chats are locked in one order, so nobody waits for ever, and sums are exact', async () => {
      const stores = await processes(3);
      const chats = numbers(6).map((k) => `test_${k}`);
      await Promise.all(
        stores.map(async (store, k) => {
          for (const n of numbers(20)) {
            const order = (n + k) % 2 === 0 ? chats : [...chats].reverse();
            await receive(
              store,
              order.map((chatId) => said(chatId, `${k}.${n}`, 'hi')),
            );
            const usage = { inputTokens: 1, outputTokens: 2 };
            await Promise.all(
              order.map((room) =>
                store.spend({ room, personaId: 'default', personId: ANN.id, usage, now: NOW }),
              ),
            );
          }
        }),
      );
      for (const chatId of chats) expect((await looked(under.store, chatId)).waiting).toHaveLength(60);
      const ask = { chatId: chats[0] ?? '', personId: ANN.id, since: NOW, now: NOW };
      const { person, all } = await under.store.usage(ask);
      expect([person.tokens, all.tokens]).toEqual([3 * 20 * 6 * 3, 3 * 20 * 6 * 3]);
    });
  });

  const jobNow = async (store: Store, { id }: Job) => (await store.jobs({ id }))[0] as Job;
  function newJob(id: string, room = CHAT): NewJob {
    return {
      ...{ id, chatId: room, room, personaId: 'default', prompt: 'water the roses', kind: 'cron' },
      ...{ value: '* * * * *', timezone: 'UTC', followUp: false, senderId: ANN.id, tainted: false },
      ...{ guarded: true, turnId: 't1', nextAt: LATE, now: NOW },
    };
  }
  async function addJob(store: Store, id: string, room = CHAT): Promise<Job> {
    const added = await store.addJob(newJob(id, room), { open: 99, followUps: 99, followUpsADay: 99 });
    if (typeof added === 'string') throw new Error(added);
    return added;
  }
}

function firing(seen: Job): Firing {
  const slot = seen.nextAt ?? 0;
  return { seen, slot, attempt: 0, head: 'Now.', becomes: { nextAt: slot + MINUTE }, now: slot };
}

function parent(room: string, turnId = 't'): TaskParent {
  return {
    ...{ chatId: room, room, personaId: 'default', turnId, callId: 'spawn' },
    ...{ senderId: ANN.id, tainted: false },
  };
}

function told(id: string, room: string) {
  const event = { kind: 'event', id: taskEventId(id), room, about: TASK_COMPLETED, at: NOW + 9 } as const;
  return { ...event, text: `${id} is done`, personaId: 'default', content: { status: 'success' } };
}

/** SQLite answers a read in the same pass of the event loop; others are to have their turn. */
const pause = () => new Promise((resolve) => setImmediate(resolve));

/** So that what begins later meets what has begun at different places. */
async function pauses(count: number): Promise<void> {
  for (const _ of numbers(count)) await pause();
}

/** Reads on from a mark until nobody writes any more; what was found, in this order. */
async function follow(
  isWriting: () => boolean,
  read: (mark: number) => Promise<{ found: string[]; mark: number }>,
): Promise<string[]> {
  const all: string[] = [];
  for (let mark = 0; ; ) {
    const isLast = !isWriting();
    const next = await read(mark);
    all.push(...next.found);
    if (isLast && next.mark === mark) return all;
    mark = next.mark;
    await pause();
  }
}

/** What the persona of the room hears, in pages from where the last one ended. */
async function followHeard(store: Store, isGoingOn: () => boolean): Promise<string[]> {
  const all: string[] = [];
  for (let after: Position = BEGINNING; ; ) {
    const isLast = !isGoingOn();
    const ask = { room: CHAT, personaId: 'default', addressed: true, after, most: 20 };
    const heard = await store.heardSince(ask);
    all.push(...heard.map(({ text }) => text));
    after = heard.at(-1)?.position ?? after;
    if (isLast && heard.length === 0) return all;
    await pause();
  }
}
