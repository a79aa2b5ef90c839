import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { InboundMessage } from '../../src/core/message.js';
import type { ModelClient } from '../../src/core/model.js';
import { manualClock } from '../fakes/clock.js';
import { type Workbench, type WorkbenchOptions, workbench } from '../harness/conversation.js';

let on: Workbench;
const open = async (options?: WorkbenchOptions) => {
  on = await workbench(options);
};
afterEach(() => on.close());

/** Whose store it is asked for, and when. */
const asOwner = () => ({ owner: 'test', channels: ['test'], now: Date.now() });
const SENTENCE = 'Something went wrong on my side, and I could not answer. Please send it again.';
const elsewhere = (address: string): Partial<InboundMessage> => ({
  chat: { address, kind: 'direct', title: address },
  sender: { address, name: address, administrator: false },
});
/** A model call that never ends, and a promise for its having begun. */
function hanging() {
  let begin: () => void = () => {};
  const begun = new Promise<void>((resolve) => {
    begin = resolve;
  });
  const reply = () => {
    begin();
    return new Promise<string>(() => {});
  };
  return { begun, reply };
}

describe('a fault of our own', () => {
  it('is tried three times, then parked and told in one plain sentence; the next message is answered', async () => {
    await open();
    on.answer(() => {
      throw new Error('a bug, with a secret inside');
    });
    await on.say('hello');
    await on.settled();
    expect(on.asked).toHaveLength(3);
    expect(on.texts()).toEqual([SENTENCE]);
    on.answer(() => 'well again');
    await on.say('and now?');
    await on.settled();
    expect(on.texts()).toEqual([SENTENCE, 'well again']);
    expect((await on.store.counts()).parked).toBe(1);
  }, 20_000);

  it('in one chat does not stop another', async () => {
    await open();
    on.answer(({ messages }) => {
      if (messages.at(-1)?.content.includes('break')) throw new Error('a bug');
      return 'fine';
    });
    await on.say('break', elsewhere('1'));
    await on.say('hello', elsewhere('2'));
    await on.conversation.idle('test');
    expect(on.texts().sort()).toEqual([SENTENCE, 'fine']);
  }, 20_000);
});

describe('ends of the process during a turn', () => {
  it('let it run again, and park it after five', async () => {
    await open();
    for (let end = 1; end <= 5; end++) {
      const { begun, reply } = hanging();
      on.answer(reply);
      if (end === 1) await on.say('the message that kills');
      await begun;
      on = await on.die();
    }
    await on.settled();
    expect(on.asked).toEqual([]);
    expect(on.texts()).toEqual([SENTENCE]);
  });
});

describe('delivery', () => {
  it('repeats what the platform may have taken once, and then gives it up', async () => {
    await open();
    on.results.push(
      { kind: 'unreachable', reason: 'cut', taken: 'unknown', retryAfterMs: 1 },
      { kind: 'unreachable', reason: 'cut', taken: 'unknown', retryAfterMs: 1 },
    );
    await on.say('hello');
    await on.settled();
    expect(on.texts()).toEqual(['fine', 'fine']);
    await on.say('next');
    await on.settled();
    expect(on.texts()).toEqual(['fine', 'fine', 'fine']);
  });

  it('repeats what was not taken as often as needed, and what is refused never', async () => {
    await open();
    const busy = { kind: 'unreachable', reason: '429', taken: 'no', retryAfterMs: 1 } as const;
    on.results.push(busy, busy, busy, busy, { kind: 'refused', reason: 'blocked' });
    await on.say('hello');
    await on.settled();
    expect(on.texts()).toHaveLength(4);
    expect(await on.store.nextDelivery('test_1', 'test', Date.now())).toBeNull();
  });

  it('follows a chat that moved', async () => {
    await open();
    on.results.push({ kind: 'moved', address: '-1001' });
    await on.say('hello');
    await on.settled();
    expect(on.sent.map(({ to }) => to.address)).toEqual(['1', '-1001']);
    await on.say('still here', { chat: { address: '-1001', kind: 'direct', title: 'Mira' } });
    await on.settled();
    expect(on.asked.at(-1)?.messages[0]?.content).toContain('The current chat_id is test_1 ');
  });

  it('says that a reply is late which could not be sent for more than a day', async () => {
    await open();
    await on.say('hello');
    await on.settled();
    await on.store.post({
      ...{ chatId: 'test_1', channel: 'test', address: '1', threadId: null, kind: 'direct' },
      now: Date.now() - 30 * 3_600_000,
      delivery: {
        origin: 'notice:1',
        personaId: null,
        speaker: 'x',
        part: 0,
        body: { text: 'old', marks: [] },
        replyTo: null,
      },
    });
    on.conversation.takeUp(await on.store.pending(asOwner()));
    await on.settled();
    expect(on.texts()).toEqual(['fine', '(What follows is late by 30 hours.)', 'old']);
  });
});

describe('the word that something is late', () => {
  const LATE = '(What follows is late by 30 hours.)';
  const busy = { kind: 'unreachable', reason: '429', taken: 'no', retryAfterMs: 1 } as const;
  const old = (now: number) =>
    on.store.post({
      ...{ chatId: 'test_1', channel: 'test', address: '1', threadId: null, kind: 'direct' },
      now: now - 30 * 3_600_000,
      delivery: {
        ...{ origin: 'notice:1', personaId: null, speaker: 'x', part: 0, replyTo: null },
        body: { text: 'old', marks: [] },
      },
    });

  it('is said once, however often it or what follows it is tried', async () => {
    await open();
    await on.say('hello');
    await on.settled();
    on.results.push(busy, busy, { kind: 'sent', platformMessageId: 'late' }, busy, busy, busy);
    await old(Date.now());
    on.conversation.takeUp(await on.store.pending(asOwner()));
    await on.settled();
    expect(on.texts()).toEqual(['fine', LATE, LATE, LATE, 'old', 'old', 'old', 'old']);
    // Each try of it was one of the same entry of the outbox.
    const keys = on.sent.filter(({ part }) => part.text === LATE).map(({ options }) => options.key);
    expect(new Set(keys).size).toBe(1);
  });

  it('is not said again by the next process', async () => {
    await open();
    await on.say('hello');
    await on.settled();
    on.results.push(
      { kind: 'sent', platformMessageId: 'late' },
      { kind: 'unreachable', reason: 'down', taken: 'no', retryAfterMs: 100 },
    );
    await old(Date.now());
    on.conversation.takeUp(await on.store.pending(asOwner()));
    await expect.poll(() => on.texts()).toEqual(['fine', LATE, 'old']);
    on = await on.die();
    await on.settled();
    expect(on.texts()).toEqual(['old']);
  });

  it('takes from the budget like everything else', async () => {
    const clock = manualClock();
    await open({ clock, limits: { perChatBurst: 1, perChatPerSecond: { direct: 1, group: 1 } } });
    await on.say('hello');
    await on.settled();
    await clock.advance(60_000);
    await old(clock.now());
    on.conversation.takeUp(await on.store.pending({ ...asOwner(), now: clock.now() }));
    await expect.poll(() => on.texts()).toEqual(['fine', LATE]);
    await clock.advance(900);
    expect(on.texts()).toEqual(['fine', LATE]);
    await clock.advance(200);
    await expect.poll(() => on.texts()).toEqual(['fine', LATE, 'old']);
    await on.settled();
  });
});

describe('what is counted as received', () => {
  it('are new messages: no copies, no edits, no reactions, no commands', async () => {
    const counted: [string, number][] = [];
    await open({
      metrics: { count: (name, _labels, by = 1) => counted.push([name, by]), observe: () => {} },
    });
    const received = () =>
      counted.filter(([name]) => name === 'messages_received_total').reduce((sum, [, by]) => sum + by, 0);
    await on.say('one', { platformMessageId: 'a' });
    await on.say('two', { platformMessageId: 'b' });
    await on.settled();
    expect(received()).toBe(2);
    await on.say('one', { platformMessageId: 'a' });
    await on.say('/whoami');
    await on.receive(
      {
        ...{ kind: 'edit', chat: { address: '1', kind: 'direct', title: 'Mira' }, text: 'one, changed' },
        ...{ sender: { address: '1', name: 'Mira', administrator: false }, platformMessageId: 'a' },
        ...{ mentionsBot: false, editedAt: 1 },
      },
      {
        ...{ kind: 'reaction', chat: { address: '1', kind: 'direct' }, sign: '👍', sentAt: 0 },
        ...{ sender: { address: '1', name: 'Mira' }, platformMessageIds: [on.sentIds[0] ?? ''] },
      },
    );
    await on.settled();
    expect(received()).toBe(2);
    expect(counted.filter(([name]) => name === 'duplicates_total')).toEqual([['duplicates_total', 1]]);
  });
});

describe('a turn during which the process ended three times', () => {
  const clock = manualClock();
  let asked = 0;
  let answers = false;
  const model: ModelClient = {
    async *stream() {
      asked++;
      if (!answers) await new Promise(() => {});
      yield { kind: 'done', text: 'fine', calls: [], usage: null, model: 'm', truncated: false };
    },
    contextTokens: () => 100_000,
    check: async () => ({ identity: 'm', warnings: [] }),
  };
  beforeEach(async () => {
    asked = 0;
    answers = false;
    await open({ clock, model });
    await on.say('hello');
    for (let ends = 1; ends <= 3; ends++) {
      await expect.poll(() => asked).toBe(ends);
      on = await on.die();
    }
    answers = true;
  });

  it('rests until the process has lived for two seconds, with what is said there meanwhile', async () => {
    await on.say('are you there?');
    await on.say('hello', elsewhere('2'));
    await expect.poll(() => on.texts()).toEqual(['fine']);
    await clock.advance(1_900);
    expect(asked).toBe(4);
    await clock.advance(200);
    await on.settled();
    expect([asked, on.texts()]).toEqual([6, ['fine', 'fine', 'fine']]);
  });

  it.each(['/reset', '/stop'])('is ended by %s, and what follows is answered', async (command) => {
    await on.say(command);
    await expect.poll(() => on.texts()).toHaveLength(1);
    await on.say('who are you?');
    await clock.advance(2_000);
    await on.settled();
    expect([asked, on.texts().slice(1)]).toEqual([4, ['fine']]);
  });

  it('does not keep a process from ending, and is resumed by the next', async () => {
    const { folder } = on;
    await on.end();
    await open({ clock, model, folder });
    await clock.advance(2_000);
    await on.settled();
    expect([asked, on.texts()]).toEqual([4, ['fine']]);
  });
});

describe('a message that was being sent when the process ended, many times', () => {
  const waits = async () => {
    await on.say('hello');
    await on.settled();
    const delivery = { origin: 'notice:1', personaId: null, speaker: 'x', part: 0, replyTo: null };
    await on.store.post({
      ...{ chatId: 'test_1', channel: 'test', address: '1', threadId: null, kind: 'direct', now: Date.now() },
      delivery: { ...delivery, body: { text: 'wanted', marks: [] } },
    });
    const { id } = (await on.store.nextDelivery('test_1', 'test', Date.now())) ?? { id: 0 };
    for (let ends = 0; ends < 6; ends++) {
      await on.store.claimDelivery(id, { owner: 'test', now: Date.now(), leaseMs: 60_000 });
      await on.store.pending({ ...asOwner(), atStart: true });
    }
    on.conversation.takeUp(await on.store.pending(asOwner()));
    await on.settled();
  };

  it('is given up where it might be shown over and over', async () => {
    await open();
    await waits();
    expect(on.texts()).toEqual(['fine']);
  });

  it('is sent all the same where the platform recognises it', async () => {
    await open({ recognisesResends: true });
    await waits();
    expect(on.texts()).toEqual(['fine', 'wanted']);
  });
});

describe('the disk full', () => {
  it('takes nothing in, says so to the channel, and goes on when there is room', async () => {
    await open({ maxPages: 120 });
    const rejected = on.say('x'.repeat(2_000_000));
    await expect(rejected).rejects.toThrow(/full|disk/i);
    await on.say('small');
    await on.settled();
    expect(on.texts()).toEqual(['fine']);
    expect(JSON.stringify(on.asked)).not.toContain('xxx');
  });
});

describe('reset', () => {
  it('drops what a turn in flight would still have said, and what waits', async () => {
    await open();
    const { begun, reply } = hanging();
    on.answer(reply);
    await on.say('first-word');
    await begun;
    await on.say('second-word');
    await on.say('/reset');
    await on.settled();
    on.answer(() => 'new');
    await on.say('three');
    await on.settled();
    expect(on.texts()).toEqual([
      'Conversation cleared. Principles and per-persona memory are unchanged.',
      'new',
    ]);
    expect(JSON.stringify(on.asked.at(-1))).not.toMatch(/first-word|second-word/);
  });
});

describe('a long absence', () => {
  it('leaves nothing waiting, however much piled up in a room', async () => {
    await open();
    const group = { chat: { address: '-9', kind: 'group', title: 'Garden' } } as const;
    const events = Array.from(
      { length: 620 },
      (_, n): InboundMessage => ({
        ...{ kind: 'message', ...group, threadId: null, platformMessageId: `g${n}` },
        ...{ sender: { address: '7', name: 'Ben', administrator: false }, sentAt: Date.now(), replyTo: null },
        ...{ text: `line ${n}`, mentionsBot: n === 560 },
      }),
    );
    await on.conversation.receive({ channel: 'test', account: 'bot', events });
    await on.settled();
    expect(on.texts()).toEqual(['fine']);
    expect((await on.store.counts()).waiting).toBe(0);
  });
});

describe('a stop', () => {
  it('does not wait out an outage of the platform', async () => {
    await open();
    on.results.push({ kind: 'unreachable', reason: 'down', taken: 'no', retryAfterMs: 60_000 });
    await on.say('hello');
    await on.conversation.idle('nothing');
    while (on.texts().length === 0) await new Promise((resolve) => setImmediate(resolve));
    const before = Date.now();
    await on.conversation.stop(10_000);
    expect(Date.now() - before).toBeLessThan(2_000);
    expect((await on.store.counts()).undelivered).toBe(1);
  });
});

describe('a retry', () => {
  it('waits by the clock of the store, however wrong that of the gateway was which noted it', async () => {
    const [ahead, right] = [manualClock(Date.UTC(2026, 0, 1, 0, 1)), manualClock(Date.UTC(2026, 0, 1))];
    await open({ clock: ahead, storeNow: () => ahead.now() - 60_000 });
    on.results.push({ kind: 'unreachable', reason: 'down', taken: 'no', retryAfterMs: 1_000 });
    await on.say('hello');
    await ahead.asleep(1_000);
    expect(on.texts()).toEqual(['fine']);
    await on.store.close();
    // Another gateway goes on.
    on = await workbench({ folder: on.folder, clock: right });
    await right.asleep(1_000);
    expect(on.texts()).toEqual([]);
    await right.advance(1_000);
    await on.settled();
    expect(on.texts()).toEqual(['fine']);
  });
});

describe('what cannot be stored or written', () => {
  it('a send whose outcome could not be stored is not sent again', async () => {
    let failures = 1;
    await open({
      around: (store) => ({
        ...store,
        settle: async (id, outcome, now) => {
          if (outcome.kind === 'sent' && failures-- > 0) throw new Error('the disk is full');
          return store.settle(id, outcome, now);
        },
      }),
    });
    await on.say('hello');
    await on.settled();
    expect(on.texts()).toEqual(['fine']);
    expect(await on.store.nextDelivery('test_1', 'test', Date.now())).toBeNull();
  });

  it('a chat.yaml that cannot be written stops no reply', async () => {
    await open();
    await mkdir(join(on.folder, 'groups/test_1/chat.yaml'), { recursive: true });
    await on.say('hello');
    await on.settled();
    expect(on.texts()).toEqual(['fine']);
  });
});
