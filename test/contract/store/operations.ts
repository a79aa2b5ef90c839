/** `OperationsFeed`: people who were let in, open tasks and usage, of all chats. */
import { describe, expect, it } from 'vitest';
import type { NewJob } from '../../../src/core/jobs.js';
import type { StoreUnderTest } from '../store.js';
import { ANN, CHAT, DAY, delivery, exchange, HOUR, MINUTE, NOW } from './words.js';

const TOLD = { member: { text: 'in', marks: [] }, owner: { text: 'mine', marks: [] } };
const BOUNDS = { open: 99, followUps: 99, followUpsADay: 99 };
const SCRIPT = '<script>alert(1)</script>\u001b[31m\u202e';

export function operationsContract(under: StoreUnderTest): void {
  const approve = (codeOrId: string, more: { asOwner?: boolean; now?: number } = {}) =>
    under.store.approve({
      ...{ codeOrId, looksLike: 'sender' as const, asOwner: false, now: NOW, told: TOLD },
      ...more,
    });

  async function ask(id: string, name: string, code: string): Promise<void> {
    const to = { chatId: id, channel: 'test', address: id, threadId: null };
    const said = delivery(`pairing:${code}`, code, { personaId: null, speaker: 'coterie' });
    await under.store.requestPairing(
      { channel: 'test', senderId: id, now: NOW, answerEveryMs: HOUR, most: 9, mostPerHour: 9 },
      {
        ...{ name, code, expiresAt: NOW + HOUR, announcements: [] },
        answer: { ...to, kind: 'direct', now: NOW, delivery: said },
      },
    );
  }

  function addJob(id: string, more: Partial<NewJob> = {}) {
    const job: NewJob = {
      ...{ id, chatId: CHAT, room: CHAT, personaId: 'default', prompt: 'water the roses', kind: 'cron' },
      ...{ value: '* * * * *', timezone: 'UTC', followUp: false, senderId: ANN.id, tainted: false },
      ...{ guarded: true, turnId: 't1', nextAt: NOW + MINUTE, now: NOW, ...more },
    };
    return under.store.addJob(job, BOUNDS);
  }

  describe('for an operator', () => {
    it('lists people who were let in, by the name under which they asked, and no others', async () => {
      await ask('test_eve', SCRIPT, 'AAAA');
      expect(await under.store.letIn()).toEqual([]);
      await approve('AAAA');
      await approve('test_boss', { asOwner: true, now: NOW + 1 });
      await approve('test_gone');
      await under.store.refuse({ id: 'test_gone' });
      expect(await under.store.letIn()).toEqual([
        { id: 'test_boss', kind: 'sender', name: null, owner: true, since: NOW + 1 },
        { id: 'test_eve', kind: 'sender', name: SCRIPT, owner: false, since: NOW },
      ]);
    });

    it('lists open tasks of all chats, the next first, then those that wait for a person', async () => {
      await exchange(under.store, 't1', 'hello');
      await addJob('late', { nextAt: NOW + DAY });
      await addJob('soon', { chatId: 'test_far', room: 'test_far' });
      await addJob('paused');
      await addJob('over');
      await under.store.changeJob({ id: 'paused', from: ['active'] }, { state: 'paused' }, NOW);
      await under.store.changeJob({ id: 'over', from: ['active'] }, { state: 'done', nextAt: null }, NOW);
      const found = await under.store.openJobs(9);
      expect(found.map(({ id }) => id)).toEqual(['soon', 'late', 'paused']);
      const title = (await under.store.chat(CHAT))?.title;
      expect(found.map((each) => each.title)).toEqual([null, title, title]);
      expect(found[1]).toMatchObject({ n: 1, room: CHAT, state: 'active', guarded: true, senderName: 'Ann' });
      expect((await under.store.openJobs(2)).map(({ id }) => id)).toEqual(['soon', 'late']);
    });

    it('adds up usage by day, chat and persona, and today by account', async () => {
      const spend = (room: string, personaId: string, tokens: number, now: number) =>
        under.store.spend({
          ...{ room, personaId, personId: ANN.id, now },
          usage: { inputTokens: tokens, outputTokens: 1, cost: 10 },
        });
      await spend(CHAT, 'luna', 100, NOW - 40 * DAY);
      await spend(CHAT, 'luna', 100, NOW - DAY);
      await spend(CHAT, 'default', 10, NOW);
      await spend('test_far/7', 'luna', 500, NOW);
      const { days, chats, personas, today } = await under.store.spending({
        since: NOW - 29 * DAY,
        now: NOW,
      });
      expect(days.map(({ tokens, cost }) => [tokens, cost])).toEqual([
        [101, 10],
        [512, 20],
      ]);
      const [before, last] = days.map(({ day }) => day);
      expect((last ?? 0) - (before ?? 0)).toBe(DAY);
      expect(chats.map(({ chatId, tokens }) => [chatId, tokens])).toEqual([
        ['test_far', 501],
        [CHAT, 112],
      ]);
      expect(personas).toEqual([
        { personaId: 'luna', turns: 0, tokens: 602, cost: 20 },
        { personaId: 'default', turns: 0, tokens: 11, cost: 10 },
      ]);
      expect(today.people).toEqual([{ personId: ANN.id, tokens: 512, cost: 20 }]);
      expect([...today.personas].sort((a, b) => a.tokens - b.tokens)).toEqual([
        { chatId: CHAT, personaId: 'default', tokens: 11, cost: 10 },
        { chatId: 'test_far', personaId: 'luna', tokens: 501, cost: 10 },
      ]);
    });
  });
}
