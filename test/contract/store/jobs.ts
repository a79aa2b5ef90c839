/** The store's contract: scheduled tasks. A slot is claimed once, with the run and the event that it becomes. */
import { describe, expect, it } from 'vitest';
import type { Firing, Job, JobBounds, NewJob } from '../../../src/core/jobs.js';
import { phraseOf } from '../../../src/core/phrase.js';
import type { Store } from '../../../src/core/store.js';
import type { StoreUnderTest } from '../store.js';
import {
  ANN,
  begun,
  CHAT,
  chatAt,
  DAY,
  delivery,
  exchange,
  finish,
  HOUR,
  journalOf,
  looked,
  MINUTE,
  message,
  NOW,
  nextOf,
  pruned,
  receive,
  waitingTexts,
} from './words.js';

const BOUNDS: JobBounds = { open: 5, followUps: 2, followUpsADay: 3 };
const CHANNELS = { channels: ['test'] };
const LATER = NOW + 2 * DAY;

export function jobContract(under: StoreUnderTest): void {
  let ids = 0;
  const newJob = (more: Partial<NewJob> = {}): NewJob => ({
    ...{ id: `j${ids++}`, chatId: CHAT, room: CHAT, personaId: 'default', prompt: 'water the roses' },
    ...{ kind: 'cron', value: '* * * * *', timezone: 'UTC', followUp: false, senderId: ANN.id },
    ...{ tainted: false, guarded: true, turnId: 't1', nextAt: NOW + MINUTE, now: NOW },
    ...more,
  });
  async function add(store: Store, more: Partial<NewJob> = {}): Promise<Job> {
    const added = await store.addJob(newJob(more), { open: 1_000, followUps: 1_000, followUpsADay: 1_000 });
    if (typeof added === 'string') throw new Error(added);
    return added;
  }
  const firing = (job: Job, more: Partial<Firing> = {}): Firing => {
    const slot = job.nextAt ?? 0;
    const becomes = { nextAt: slot + MINUTE };
    return { seen: job, slot, attempt: 0, head: 'It is time.', becomes, now: slot, ...more };
  };
  const answered = (job: Job, slot: number) => ({
    ended: { job, slot, attempt: 0, outcome: 'answered' as const, endedAt: NOW },
  });
  const again = async (store: Store, { id }: Job) => (await store.jobs({ id }))[0] as Job;
  const chatOnly = async () => {
    await exchange(under.store, 't1', 'hello');
    return under.store;
  };

  describe('of jobs', () => {
    it('counts them per chat, and knows who set them', async () => {
      const store = await chatOnly();
      expect(await add(store)).toMatchObject({ n: 1, senderName: 'Ann', state: 'active', failures: 0 });
      expect(await add(store, { chatId: 'test_2', room: 'test_2', turnId: 'other' })).toMatchObject({
        n: 1,
        senderName: '',
      });
      expect(await add(store, { turnId: 'of an event' })).toMatchObject({ n: 2, senderName: 'Ann' });
      expect((await store.jobs({ chatId: CHAT })).map(({ n }) => n)).toEqual([1, 2]);
      expect(await store.jobs({ chatId: CHAT, n: 2 })).toMatchObject([
        { n: 2, prompt: 'water the roses', guarded: true },
      ]);
      expect(await store.jobs({ chatId: 'test_2', n: 2 })).toEqual([]);
      expect(await store.jobs({ id: 'no such' })).toEqual([]);
      expect((await store.sizes()).jobs).toEqual({ active: 3 });
    });

    it('gives no number twice to two at once, and keeps its bounds', async () => {
      const [a, b] = [under.store, await under.another()];
      const added = await Promise.all(
        Array.from({ length: 8 }, (_, n) => (n % 2 ? a : b).addJob(newJob(), BOUNDS)),
      );
      expect(added.filter((one) => one === 'open')).toHaveLength(3);
      expect((await b.jobs({ chatId: CHAT })).map(({ n }) => n)).toEqual([1, 2, 3, 4, 5]);
      const own = { chatId: 'test_2', room: 'test_2', followUp: true };
      const first = await a.addJob(newJob(own), BOUNDS);
      await a.addJob(newJob(own), BOUNDS);
      expect(await a.addJob(newJob(own), BOUNDS)).toBe('followUps');
      expect(
        await a.changeJob({ id: (first as Job).id, from: ['active'] }, { state: 'done', nextAt: null }, NOW),
      ).toBe(true);
      expect(await a.addJob(newJob(own), BOUNDS)).toMatchObject({ n: 3 });
      await a.changeJob({ id: (first as Job).id, from: ['done'] }, { state: 'cancelled' }, NOW);
      await a.changeJob({ id: 'j9', from: ['active'] }, { state: 'done' }, NOW);
      for (const { id } of await a.jobs({ chatId: 'test_2' }))
        await a.changeJob({ id: id, from: ['active'] }, { state: 'done' }, NOW);
      expect(await a.addJob(newJob(own), BOUNDS)).toBe('followUpsADay');
      expect(await a.addJob(newJob({ ...own, now: NOW + DAY + 1 }), BOUNDS)).toMatchObject({ n: 4 });
    });

    it('tells what is due, earliest first, in some channels only', async () => {
      const store = await chatOnly();
      const late = await add(store, { nextAt: NOW + 2 * MINUTE });
      const early = await add(store, { nextAt: NOW + MINUTE });
      await add(store, { chatId: 'other_1', room: 'other_1', nextAt: NOW });
      const due = (now: number, most = 9) => store.dueJobs({ ...CHANNELS, now, most });
      expect(await due(NOW + HOUR)).toMatchObject({ due: [early, late], nextAt: null });
      expect(await due(NOW + HOUR, 1)).toMatchObject({ due: [early], nextAt: NOW + 2 * MINUTE });
      expect(await due(NOW)).toEqual({ due: [], nextAt: NOW + MINUTE });
      expect(await store.dueJobs({ channels: ['none'], now: NOW + HOUR, most: 9 })).toEqual({
        due: [],
        nextAt: null,
      });
      await store.changeJob({ id: early.id, from: ['active'] }, { state: 'paused' }, NOW);
      expect(await due(NOW)).toEqual({ due: [], nextAt: NOW + 2 * MINUTE });
      expect(await store.changeJob({ id: early.id, from: ['active'] }, { state: 'cancelled' }, NOW)).toBe(
        false,
      );
    });

    it('turns a slot into an event and a run, and into an entry of the journal', async () => {
      const store = await chatOnly();
      const job = await add(store, { tainted: true });
      expect(await store.fireJob(firing(job))).toBe('fired');
      const { waiting } = await looked(store);
      expect(waiting).toHaveLength(1);
      expect(waiting[0]).toMatchObject({
        ...{ author: { kind: 'gateway', about: 'schedule' }, text: 'It is time.\n\nwater the roses' },
        ...{ addresses: ['default'], platformMessageId: `event:job:${job.id}:${NOW + MINUTE}:0` },
      });
      expect(await store.runsOf(job.id)).toEqual([{ slot: NOW + MINUTE, attempt: 0, outcome: 'running' }]);
      const entries = await journalOf(store);
      expect(
        entries
          .map(({ entry }) => entry)
          .filter(({ type }) => type === 'GUPPIEvent')
          .at(-1),
      ).toEqual({
        ...{ id: `evt-${waiting[0]?.id}`, type: 'GUPPIEvent', agent: 'default', event_type: 'AlarmClock' },
        ...{ timestamp_event: new Date(NOW + MINUTE).toISOString(), source: 'schedule' },
        content: { task_id: 1, schedule: '* * * * *', prompt: 'water the roses' },
      });
    });

    it('lets one of two gateways fire a slot', async () => {
      const store = await chatOnly();
      const other = await under.another();
      const job = await add(store);
      const fired = await Promise.all([store.fireJob(firing(job)), other.fireJob(firing(job))]);
      expect(fired.filter((one) => one === 'fired')).toHaveLength(1);
      expect(fired).toContain(null);
      expect(await waitingTexts(other)).toHaveLength(1);
      expect(await other.fireJob(firing(job)), 'nor later').toBeNull();
    });

    it('never fires a slot again, even when the job is due at it again', async () => {
      const store = await chatOnly();
      const job = await add(store);
      await store.fireJob(firing(job));
      await store.changeJob(answered(job, NOW + MINUTE), {}, NOW + MINUTE);
      await store.changeJob({ id: job.id, from: ['active'] }, { nextAt: NOW + MINUTE }, NOW);
      expect(await store.fireJob(firing(await again(store, job)))).toBe('skipped');
      expect(await waitingTexts(store)).toHaveLength(1);
      expect(await again(store, job)).toMatchObject({ nextAt: NOW + 2 * MINUTE });
    });

    it('passes a slot over while an earlier run is under way', async () => {
      const store = await chatOnly();
      const job = await add(store);
      await store.fireJob(firing(job));
      expect(await store.fireJob(firing(await again(store, job)))).toBe('skipped');
      expect(await waitingTexts(store)).toHaveLength(1);
      expect((await store.runsOf(job.id)).map(({ outcome }) => outcome)).toEqual(['skipped', 'running']);
    });

    it('fires nothing that is paused, cancelled or due at another time by now', async () => {
      const store = await chatOnly();
      const job = await add(store);
      await store.changeJob({ id: job.id, from: ['active'] }, { nextAt: NOW + HOUR }, NOW);
      expect(await store.fireJob(firing(job))).toBeNull();
      await store.changeJob({ id: job.id, from: ['active'] }, { nextAt: NOW + MINUTE, state: 'paused' }, NOW);
      expect(await store.fireJob(firing(job))).toBeNull();
      expect(await store.readRoom(CHAT, 'me', NOW)).toBeNull();
    });

    it('knows how a run ended by the turn that answered its event', async () => {
      const store = await chatOnly();
      const job = await add(store, { kind: 'once' });
      const open = () => store.openRuns({ ...CHANNELS, since: NOW, now: LATER });
      await store.fireJob(firing(job, { becomes: { state: 'done', nextAt: null } }));
      expect(await open()).toEqual({ working: 1, ended: [], ahead: [] });
      expect(await store.openRuns({ ...CHANNELS, since: NOW + HOUR, now: LATER })).toMatchObject({
        working: 0,
      });
      const turn = await begun(store, 't2', { now: NOW + MINUTE });
      expect(await open()).toEqual({ working: 1, ended: [], ahead: [] });
      await finish(store, turn, 't2', { outcome: 'failed', reply: null, now: NOW + 2 * MINUTE });
      const { working, ended } = await open();
      expect(working).toBe(0);
      expect(ended).toMatchObject([
        { slot: NOW + MINUTE, attempt: 0, outcome: 'failed', endedAt: NOW + 2 * MINUTE },
      ]);
      const [run] = ended;
      const change = { state: 'active' as const, nextAt: NOW + HOUR, retryOf: NOW + MINUTE, failures: 1 };
      expect(run && (await store.changeJob({ ended: run }, change, NOW))).toBe(true);
      expect(run && (await store.changeJob({ ended: run }, { failures: 9 }, NOW)), 'once').toBe(false);
      expect(await again(store, job)).toMatchObject(change);
      expect(await open()).toEqual({ working: 0, ended: [], ahead: [] });
    });

    it('takes a reply that was refused for a failure, and waits for one that is on its way', async () => {
      const store = await chatOnly();
      const job = await add(store);
      await store.fireJob(firing(job));
      const turn = await begun(store, 't2', { now: NOW + MINUTE });
      await finish(store, turn, 't2', { deliveries: [delivery('turn:t2', 'the roses!')] });
      const open = () => store.openRuns({ ...CHANNELS, since: NOW, now: LATER });
      expect(await open()).toEqual({ working: 0, ended: [], ahead: [] });
      const entry = await nextOf(store);
      await store.settle(entry?.id ?? 0, { kind: 'refused', reason: 'kicked' }, NOW);
      expect((await open()).ended).toMatchObject([{ outcome: 'failed' }]);
    });

    it('takes a run for passed over that a reset forgot', async () => {
      const store = await chatOnly();
      const job = await add(store);
      await store.fireJob(firing(job));
      await store.quieten();
      expect((await store.openRuns({ ...CHANNELS, since: NOW, now: LATER })).ended).toMatchObject([
        { outcome: 'skipped' },
      ]);
    });

    it('changes nothing that was cancelled while it ran', async () => {
      const store = await chatOnly();
      const job = await add(store);
      await store.fireJob(firing(job));
      await store.changeJob({ id: job.id, from: ['active'] }, { state: 'cancelled', nextAt: null }, NOW);
      const run = { job, slot: NOW + MINUTE, attempt: 0, outcome: 'failed' as const, endedAt: NOW };
      expect(await store.changeJob({ ended: run }, { state: 'active', nextAt: NOW }, NOW)).toBe(true);
      expect(await again(store, job)).toMatchObject({ state: 'cancelled', nextAt: null });
    });

    it('keeps the last twenty runs', async () => {
      const store = await chatOnly();
      let job = await add(store);
      for (let n = 0; n < 25; n++) {
        const slot = job.nextAt ?? 0;
        expect(await store.fireJob(firing(job))).toBe('fired');
        await store.changeJob(answered(job, slot), {}, slot);
        job = await again(store, job);
      }
      const runs = await store.runsOf(job.id);
      expect(runs).toHaveLength(20);
      expect(runs[0]?.slot).toBe(NOW + 25 * MINUTE);
    });

    it('finds what fired at a time that is still to come, once', async () => {
      const store = await chatOnly();
      const job = await add(store);
      await store.fireJob(firing(job, { now: NOW + DAY }));
      const ahead = async (now: number, channels = ['test']) =>
        (await store.openRuns({ channels, since: 0, now })).ahead.map(({ id }) => id);
      expect(await ahead(NOW + DAY)).toEqual([]);
      expect(await ahead(NOW, ['other'])).toEqual([]);
      expect(await ahead(NOW)).toEqual([job.id]);
      expect(await ahead(NOW)).toEqual([]);
    });

    it('forgets what ended long ago, but no number', async () => {
      const store = await chatOnly();
      const [old, recent, newest] = [await add(store), await add(store), await add(store)];
      await store.fireJob(firing(old));
      for (const { id } of [old, newest])
        await store.changeJob({ id: id, from: ['active'] }, { state: 'done' }, NOW);
      await store.changeJob({ id: recent.id, from: ['active'] }, { state: 'done' }, NOW + DAY);
      await pruned(store, NOW + 1);
      expect(await store.jobs({ id: old.id })).toEqual([]);
      expect(await store.runsOf(old.id)).toEqual([]);
      expect(await store.jobs({ id: recent.id })).toHaveLength(1);
      expect(await add(store)).toMatchObject({ n: 4 });
    });

    it('erases words from prompts, and closes the jobs of a room that was another chat’s', async () => {
      const store = await chatOnly();
      await receive(store, [message('t', 'in the thread', { chat: chatAt(CHAT), threadId: '7' })]);
      const job = await add(store, { prompt: 'buy swordfish and bread' });
      const inThread = await add(store, { room: `${CHAT}/7`, prompt: 'secret of the thread' });
      const phrase = phraseOf('swordfish');
      expect((await store.findWords(CHAT, phrase)).others).toBe(1);
      await store.eraseWords(CHAT, phrase, ANN.id);
      expect((await again(store, job)).prompt).not.toContain('swordfish');
      expect((await again(store, job)).prompt).toContain('bread');
      await receive(store, [{ kind: 'apart', room: `${CHAT}/7` }]);
      expect(await again(store, inThread)).toMatchObject({ state: 'cancelled', prompt: '', nextAt: null });
      expect((await store.jobs({ chatId: CHAT })).map(({ id }) => id)).toEqual([job.id]);
    });
  });
}
