/** Scheduled tasks on the route: set by a tool, fired by the clock, answered as a turn, seen and changed by `/schedule`. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import * as z from 'zod';
import { toolSet } from '../../src/conversation/turn/call.js';
import type { Tool } from '../../src/core/tool.js';
import { look, startJobs } from '../../src/jobs/clock.js';
import { scheduleTools } from '../../src/tools/schedules.js';
import { type ManualClock, manualClock } from '../fakes/clock.js';
import { SETTINGS, type Workbench, type WorkbenchOptions, workbench } from '../harness/conversation.js';

const START = Date.UTC(2026, 0, 15, 12);
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

const OTHER = { address: '2', kind: 'direct' as const, title: 'Ben' };
let on: Workbench;
let clock: ManualClock;
let began: number;
/** What the asker of a turn may do, as a tool sees it. */
let rights: { owner: boolean; senders: string[] }[];
beforeEach(() => {
  clock = manualClock(START);
  began = START;
  rights = [];
});
afterEach(() => on.close());

const whoAmI: Tool<Record<string, never>> = {
  name: 'who_asks',
  description: 'Says who asks.',
  parameters: z.object({}),
  risk: 'low',
  async execute(_, { authorisation }) {
    const asker = authorisation?.asker;
    rights.push({ owner: (await asker?.isOwner()) ?? false, senders: (await asker?.senders()) ?? [] });
    return { content: 'noted', failed: false };
  },
};

async function open(options: WorkbenchOptions = {}): Promise<Workbench> {
  const toolsFor = () =>
    toolSet([...scheduleTools({ jobs: on.jobs, chat: (id) => on.store.chat(id) }), whoAmI]);
  on = await workbench({ clock, toolsFor, ...options });
  return on;
}

/** Somebody says something, and the persona calls a tool; returns what the model was told. */
async function call(
  name: string,
  given: object,
  more: Parameters<Workbench['say']>[1] = {},
): Promise<string> {
  let result = '';
  on.answer(({ messages }) => {
    const last = messages.at(-1);
    if (last?.role !== 'tool') return { calls: [{ name, arguments: given }] };
    result = last.content;
    return 'I will.';
  });
  await on.say('please', { mentionsBot: true, ...more });
  await on.settled();
  on.answer(() => 'done');
  return result;
}
const once = (minutes: number, more: object = {}) => ({
  ...{ prompt: 'Tell Mira to water the roses.', schedule_type: 'once' },
  ...{ schedule_value: new Date(clock.now() + minutes * MINUTE).toISOString(), ...more },
});
const every = (line: string, more: object = {}) => ({
  ...{ prompt: 'Say good morning.', schedule_type: 'cron', schedule_value: line, ...more },
});

async function pass(ms: number): Promise<void> {
  await clock.advance(ms);
  await look(on.jobClock, began, new AbortController().signal);
  await on.settled();
}
const lastAsked = () => on.asked.at(-1)?.messages.at(-1)?.content ?? '';
const command = async (text: string, more = {}) => {
  await on.say(text, more);
  await on.settled();
  return on.texts().at(-1);
};

describe('a task', () => {
  it('is set, fires once at its time as an event of nobody now, and is answered', async () => {
    await open();
    expect(await call('schedule_task', once(20))).toBe(
      'Task 1 is scheduled (task_id 1). Next run: 2026-01-15 12:20 (UTC). It is now 2026-01-15 12:00 (UTC).',
    );
    expect(await command('/schedule')).toMatch(
      /^- 1, active, 2026-01-15 12:20 \(UTC\), by Mira for default: Tell Mira to water the roses\./,
    );
    await pass(19 * MINUTE);
    const before = on.texts().length;
    on.answer(() => 'Water the roses!');
    await pass(MINUTE);
    expect(on.texts().slice(before)).toEqual(['Water the roses!']);
    expect(lastAsked()).toMatch(
      /<event about="schedule" at="2026-01-15 12:20">Scheduled task 1 was due at 2026-01-15 12:20 \(UTC\)\. Mira asked for it on 2026-01-15 12:00 \(UTC\)\. Nobody has said anything now; [^<]*\n\nTell Mira to water the roses\.<\/event>/,
    );
    expect(await command('/schedule')).toMatch(/^Nothing is scheduled here/);
    await pass(HOUR);
    expect(await command('/schedule history 1')).toBe(
      'Task 1, newest first:\n- 2026-01-15 12:20 (UTC): done',
    );
    expect(on.texts().filter((text) => text === 'Water the roses!')).toHaveLength(1);
  });

  it('counts for the person who set it', async () => {
    const limits = { ...SETTINGS.limits, tokensPerPerson: 100_000 };
    await open({ settings: { limits } });
    await call('schedule_task', every('*/10 * * * *'));
    const used = { inputTokens: 40_000, outputTokens: 10 };
    on.answer(() => ({ text: 'Good morning!', usage: used }));
    const asked = on.asked.length;
    for (let n = 0; n < 6; n++) await pass(10 * MINUTE);
    expect(on.asked.length - asked).toBe(3);
    const spent = await on.store.usage({
      chatId: 'test_1',
      personId: 'test_1',
      since: clock.now(),
      now: clock.now(),
    });
    expect(spent.person.tokens).toBeGreaterThanOrEqual(120_000);
    // Another person is not held up by it.
    await on.say('hello', { chat: OTHER, sender: { address: '2', name: 'Ben', administrator: false } });
    await on.settled();
    expect(on.asked.length - asked).toBe(4);
  });

  it('goes to its thread and its persona', async () => {
    await open();
    await on.say('/persona new Luna', { threadId: '7' });
    await on.settled();
    await call('schedule_task', once(1), { threadId: '7' });
    await command('/persona switch default');
    on.answer(() => 'from Luna');
    await pass(MINUTE);
    expect(on.sent.at(-1)).toMatchObject({ to: { threadId: '7' }, part: { text: 'from Luna' } });
    expect(JSON.stringify(on.asked.at(-1)?.messages)).toContain('persona_id is luna');
  });

  it('is listed, paused, resumed and cancelled by tools, by its number in this chat alone', async () => {
    await open();
    expect(await call('list_scheduled_tasks', {})).toMatch(/^No scheduled tasks in this chat\./);
    await call('schedule_task', every('0 8 * * *', { timezone: 'Europe/Berlin' }));
    expect(await call('list_scheduled_tasks', {})).toMatch(
      /^task_id 1, active, next run 2026-01-16 08:00 \(Europe\/Berlin\), cron 0 8 \* \* \*, set by Mira: Say good morning\.\nIt is now/,
    );
    const elsewhere = {
      chat: { address: '2', kind: 'direct' as const, title: 'Ben' },
      sender: { address: '2', name: 'Ben', administrator: false },
    };
    expect(await call('cancel_scheduled_task', { task_id: 1 }, elsewhere)).toBe(
      'There is no scheduled task 1 in this chat.',
    );
    expect(await call('schedule_task', once(5, { chat_id: 'test_1' }), elsewhere)).toMatch(
      /^Permission denied/,
    );
    expect(await call('list_scheduled_tasks', { chat_id: 'test_1' }, elsewhere)).toMatch(
      /^Permission denied/,
    );
    expect(await call('pause_scheduled_task', { task_id: '1' })).toBe('Task 1 is paused (task_id 1).');
    expect(await call('pause_scheduled_task', { task_id: '#1' })).toBe('Task 1 is paused already.');
    await pass(24 * HOUR);
    expect(on.texts().at(-1)).toBe('I will.');
    expect(await call('resume_scheduled_task', { task_id: 1 })).toMatch(
      /^Task 1 is active again \(task_id 1\)\. Next run: 2026-01-17 08:00/,
    );
    expect(await call('cancel_scheduled_task', { task_id: 1 })).toBe('Task 1 is cancelled (task_id 1).');
    expect(await call('resume_scheduled_task', { task_id: 1 })).toBe('Task 1 is cancelled already.');
  });

  it('is refused with a sentence that helps', async () => {
    await open();
    expect(await call('schedule_task', once(-1))).toMatch(
      /^Nothing was scheduled\. ".*" is past\. It is now 2026-01-15 12:00 \(UTC\)\.$/,
    );
    expect(await call('schedule_task', every('0 0 30 2 *'))).toMatch(/never comes/);
    expect(await call('schedule_task', once(5, { timezone: 'Mars/Olympus' }))).toMatch(/no time zone/);
    expect(await call('schedule_task', once(5, { prompt: 'x'.repeat(20_000) }))).toMatch(/4000 are the most/);
    expect(await on.jobs.list('test_1')).toEqual([]);
  });

  it('that nobody asked for keeps its bounds', async () => {
    await open();
    for (let n = 1; n <= 5; n++) await call('schedule_task', once(n, { follow_up: true }));
    expect(await call('schedule_task', once(6, { follow_up: true }))).toMatch(
      /5 open tasks here that nobody asked for/,
    );
    expect(await call('schedule_task', once(6))).toMatch(/^Task 6 is scheduled/);
  });
});

describe('the rights of a task', () => {
  const control = { rules: { controlChats: ['test_1'], owners: ['test_1'] } };

  async function rightsOf(set: () => Promise<unknown>): Promise<(typeof rights)[number] | undefined> {
    await set();
    on.answer(({ messages }) =>
      messages.at(-1)?.role === 'tool' ? 'so' : { calls: [{ name: 'who_asks', arguments: {} }] },
    );
    await pass(5 * MINUTE);
    return rights.at(-1);
  }

  it('are those of who asked for it, as they are when it fires', async () => {
    await open(control);
    expect(await rightsOf(() => call('schedule_task', once(5)))).toEqual({
      owner: true,
      senders: ['test_1'],
    });
    await on.close();
    await open();
    expect(await rightsOf(() => call('schedule_task', once(5)))).toEqual({
      owner: false,
      senders: ['test_1'],
    });
  });

  it('are nobody’s where nobody asked, or where words from outside may have', async () => {
    await open(control);
    expect(await rightsOf(() => call('schedule_task', once(5, { follow_up: true })))).toEqual({
      ...{ owner: false, senders: [] },
    });
    const wish = {
      chatId: 'test_1',
      room: 'test_1',
      personaId: 'default',
      prompt: 'x',
      kind: 'once' as const,
    };
    const set = () =>
      on.jobs.add({
        ...{ ...wish, value: '2026-01-15T12:10', followUp: false, senderId: 'test_1' },
        ...{ tainted: true, turnId: 't' },
      });
    expect(await rightsOf(set)).toEqual({ owner: false, senders: [] });
  });

  it('reach another chat from a control chat, on the word of an owner', async () => {
    await open(control);
    const elsewhere = {
      chat: { address: '2', kind: 'direct' as const, title: 'Ben' },
      sender: { address: '2', name: 'Ben', administrator: false },
    };
    await on.say('hello', elsewhere);
    await on.settled();
    expect(await call('schedule_task', once(5, { chat_id: 'test_9' }))).toMatch(
      /nobody has ever written in a chat/,
    );
    expect(await call('schedule_task', once(5, { chat_id: 'test_2', prompt: 'greet' }))).toMatch(
      /^Task 1 is/,
    );
    expect(await call('list_scheduled_tasks', { chat_id: 'test_2' })).toContain('greet');
    on.answer(() => 'greetings');
    await pass(5 * MINUTE);
    expect(on.sent.at(-1)).toMatchObject({ to: { address: '2' }, part: { text: 'greetings' } });
  });

  it('ask a person about another chat after words from outside, but not where they are refused anyway', async () => {
    await open({ rules: { owners: ['test_1'], controlChats: ['test_1'] } });
    const ben = {
      chat: { address: '2', kind: 'direct' as const, title: 'Ben' },
      sender: { address: '2', name: 'Ben', administrator: false },
    };
    const forwarded = { forwardedFrom: 'Bob' };
    const questions = () => on.texts().filter((text) => text.includes('/approve'));
    expect(await call('schedule_task', once(5, { chat_id: 'test_1' }), { ...ben, ...forwarded })).toMatch(
      /^Permission denied/,
    );
    expect(questions()).toEqual([]);
    await on.say('look at this', forwarded);
    await on.settled();
    expect(await call('schedule_task', once(5, { chat_id: 'test_2' }))).toBe('');
    expect(questions()[0]).toContain('it reaches another chat, test_2');
  });

  it('in a group let others change what they set themselves, and administrators everything', async () => {
    await open();
    const group = { chat: { address: '-5', kind: 'group' as const, title: 'Garden' } };
    const by = (address: string, name: string, administrator = false) => ({
      ...group,
      sender: { address, name, administrator },
    });
    await call('schedule_task', once(5), by('1', 'Mira'));
    await call('schedule_task', once(5), by('2', 'Ben'));
    expect(await call('cancel_scheduled_task', { task_id: 1 }, by('2', 'Ben'))).toMatch(
      /^Task 1 was not changed: only whoever set it, administrators/,
    );
    expect(await call('cancel_scheduled_task', { task_id: 1 }, by('1', 'Mira'))).toBe(
      'Task 1 is cancelled (task_id 1).',
    );
    expect(await command('/schedule cancel 2', { ...by('2', 'Ben') })).toBe(
      'Only owners and administrators of this group can do that.',
    );
    expect(await command('/schedule', { ...by('2', 'Ben') })).toMatch(/^- 2, active, .*by Ben/);
    expect(await command('/schedule pause 2', by('3', 'Ada', true))).toBe('Task 2 is paused.');
    expect(await call('cancel_scheduled_task', { task_id: 2 }, by('3', 'Ada', true))).toMatch(/is cancelled/);
    expect(on.audited.map(({ what }) => what)).toContain('/schedule pause 2');
  });
});

describe('/schedule', () => {
  it('pauses, resumes, cancels, and says what it does not know', async () => {
    await open();
    await call('schedule_task', every('0 8 * * *'));
    expect(await command('/schedule history 1')).toBe('Task 1 has not run yet.');
    expect(await command('/schedule pause 1')).toBe('Task 1 is paused.');
    expect(await command('/schedule resume #1')).toBe(
      'Task 1 is active again. Next: 2026-01-16 08:00 (UTC).',
    );
    expect(await command('/schedule cancel 1')).toBe('Task 1 is cancelled.');
    expect(await command('/schedule cancel 1')).toBe('Task 1 is cancelled already.');
    expect(await command('/schedule cancel 99')).toBe('There is no task 99 here. /schedule lists the tasks.');
    expect(await command('/schedule cancel')).toMatch(/^Usage:/);
    expect(await command('/schedule cancel 1 or so')).toMatch(/^Usage:/);
    expect(await command('/schedule constructor 1')).toMatch(/^Usage:/);
    expect(await command('/help')).toContain('/schedule');
  });

  it('tells the runs of a task that comes each second apart, of which one is under way at a time', async () => {
    await open();
    await call('schedule_task', every('* * * * * *'));
    let resolve = (_: string) => {};
    const answer = new Promise<string>((resolved) => {
      resolve = resolved;
    });
    on.answer(() => answer);
    const fire = async () => {
      await clock.advance(1_000);
      await look(on.jobClock, began, new AbortController().signal);
    };
    await fire();
    await expect.poll(lastAsked).toContain('Say good morning.');
    await fire();
    resolve('good morning');
    await on.settled();
    await fire();
    await on.settled();
    expect(await command('/schedule history 1')).toMatch(
      /at second 3: running\n.*at second 2: skipped\n.*at second 1: done$/,
    );
  });

  it('lists as many as there may be in one message', async () => {
    await open();
    for (let n = 0; n < 50; n++) {
      await on.jobs.add({
        ...{
          chatId: 'test_1',
          room: 'test_1',
          personaId: 'default',
          prompt: 'x'.repeat(4_000),
          kind: 'cron',
        },
        ...{ value: '0 8 * * *', followUp: false, senderId: 'test_1', tainted: false, turnId: 't' },
      });
    }
    expect(await call('schedule_task', once(5))).toMatch(
      /50 scheduled tasks, which is as many as there may be/,
    );
    expect((await command('/schedule'))?.length).toBeLessThan(8_000);
  });
});

describe('what goes wrong', () => {
  it('is tried again after 1, 5 and 30 minutes, then parked, and the chat is told once', async () => {
    await open();
    await call('schedule_task', once(10));
    const before = on.texts().length;
    on.answer(() => ({ fault: 'model_unreachable' }));
    await pass(10 * MINUTE);
    for (const minutes of [1, 1, 5, 5, 30, 30]) await pass(minutes * MINUTE);
    expect(on.texts().slice(before)).toEqual([
      'Scheduled task 1 (“Tell Mira to water the roses.”) failed four times in a row and is parked. /schedule resume 1 ' +
        'starts it again, /schedule cancel 1 ends it.',
    ]);
    expect(await command('/schedule')).toMatch(/^- 1, parked, by Mira/);
    expect(await command('/schedule history 1')).toMatch(
      /^Task 1, newest first:\n- .*: failed \(retry 3 of 3\)\n.*2 of 3\)\n.*1 of 3\)\n- 2026-01-15 12:10 \(UTC\): failed$/,
    );
    on.answer(() => 'The roses!');
    await command('/schedule resume 1');
    await pass(1);
    expect(on.texts().at(-1)).toBe('The roses!');
  });

  it('starts anew behind a success', async () => {
    await open();
    await call('schedule_task', every('0 * * * *'));
    on.answer(() => ({ fault: 'model_unreachable' }));
    await pass(HOUR);
    on.answer(() => 'well');
    await pass(MINUTE);
    expect(on.texts().at(-1)).toBe('well');
    await pass(MINUTE);
    const [job] = await on.jobs.list('test_1');
    expect(job).toMatchObject({ failures: 0, state: 'active', nextAt: START + 2 * HOUR, retryOf: null });
  });

  it('parks the tasks of a persona that was deleted, with a word', async () => {
    await open();
    await command('/persona new Luna');
    await call('schedule_task', once(5));
    await command('/persona delete Luna');
    await pass(5 * MINUTE);
    expect(on.texts().at(-1)).toMatch(/^Scheduled task 1 .* is parked: its persona luna is gone\./);
    expect(JSON.stringify(on.asked)).not.toContain('Scheduled task 1');
    await pass(HOUR);
    expect(on.texts().filter((text) => text.includes('is parked'))).toHaveLength(1);
  });

  it('parks what somebody set who was removed since, and says nothing to them', async () => {
    await open({ rules: { direct: 'closed' } });
    await on.store.approve({
      codeOrId: 'test_1',
      looksLike: 'sender',
      asOwner: false,
      told: { owner: '', member: '' },
      now: START,
    } as never);
    await call('schedule_task', once(5));
    await on.store.refuse({ id: 'test_1' });
    const before = on.texts().length;
    await pass(5 * MINUTE);
    expect(on.texts()).toHaveLength(before);
    expect((await on.jobs.list('test_1'))[0]).toMatchObject({ state: 'parked', why: 'access' });
  });

  it('is passed over where somebody stops it', async () => {
    await open();
    await call('schedule_task', once(5));
    on.answer(() => new Promise(() => {}));
    await clock.advance(5 * MINUTE);
    await look(on.jobClock, began, new AbortController().signal);
    await expect.poll(() => on.asked.length).toBe(3);
    await on.say('/stop');
    await on.settled();
    on.answer(() => 'done');
    await pass(HOUR);
    expect(await command('/schedule history 1')).toMatch(/12:05 \(UTC\): skipped$/);
    expect(on.texts()).not.toContain('done');
  });

  it('is no more said where /reset forgot it, and the task stays', async () => {
    await open();
    await call('schedule_task', every('0 * * * *'));
    await command('/reset');
    expect(await on.jobs.list('test_1')).toHaveLength(1);
    await pass(HOUR);
    expect(on.texts().at(-1)).toBe('done');
  });

  it('loses no slot between the claim and the event, however the process ends', async () => {
    await open();
    await call('schedule_task', once(5));
    on.answer(() => new Promise(() => {}));
    await clock.advance(5 * MINUTE);
    await look(on.jobClock, began, new AbortController().signal);
    await expect.poll(() => on.asked.length).toBe(3);
    on = await on.die();
    on.answer(() => 'after the crash');
    await on.settled();
    await pass(MINUTE);
    expect(on.texts()).toEqual(['after the crash']);
    expect(await command('/schedule history 1')).toMatch(/^Task 1, newest first:\n- [^\n]*done$/);
  });
});

describe('the clock', () => {
  it('fires each slot once with two processes', async () => {
    await open();
    await call('schedule_task', every('* * * * *'));
    const other = await on.beside('other');
    other.answer(() => 'from the other');
    const signal = new AbortController().signal;
    const before = on.texts().length;
    for (let n = 0; n < 3; n++) {
      await clock.advance(MINUTE);
      await Promise.all([look(on.jobClock, began, signal), look(other.jobClock, began, signal)]);
      await Promise.all([on.settled(), other.settled()]);
    }
    expect(on.texts().length - before + other.texts().length).toBe(3);
    await other.end();
  });

  it('tells how a run ended a second later, though nothing else is due', async () => {
    await open();
    await call('schedule_task', once(1));
    const stop = startJobs(on.jobClock, clock.now());
    await clock.advance(MINUTE);
    await on.settled();
    await clock.advance(1_000);
    await on.settled();
    expect(await command('/schedule history 1')).toContain('12:01 (UTC): done');
    await stop();
  });

  it('waits with one timer, looks once a minute at most, and at once for what is new', async () => {
    await open();
    await call('schedule_task', once(90 * 24 * 60));
    const ahead = clock.sleeping().length;
    const stop = startJobs(on.jobClock, START);
    await clock.advance(0);
    expect(clock.sleeping()).toHaveLength(ahead + 1);
    expect(clock.sleeping()).toContain(MINUTE);
    on.answer(() => 'now');
    await on.jobs.add({
      ...{ chatId: 'test_1', room: 'test_1', personaId: 'default', prompt: 'soon', kind: 'once' as const },
      ...{ value: new Date(clock.now() + 1_000).toISOString(), followUp: false, senderId: 'test_1' },
      ...{ tainted: false, turnId: 't' },
    });
    await clock.asleep(1_000);
    await clock.advance(1_000);
    await expect.poll(() => on.texts().at(-1)).toBe('now');
    await clock.advance(0);
    await stop();
    expect(clock.sleeping()).toHaveLength(ahead);
  });

  it('that jumps ahead and back fires no slot twice, and forgets none that is to come', async () => {
    await open();
    await call('schedule_task', every('0 * * * *'));
    const before = on.texts().length;
    const fired = () => on.texts().length - before;
    await pass(HOUR);
    expect(fired()).toBe(1);
    // A year ahead: the last slot of that year, once.
    await pass(365 * 24 * HOUR);
    expect(fired()).toBe(2);
    clock = back(START + HOUR + MINUTE);
    on.jobClock.clock = clock;
    await look(on.jobClock, began, new AbortController().signal);
    expect((await on.jobs.list('test_1'))[0]?.nextAt).toBe(START + 2 * HOUR);
    await pass(0);
    expect(fired()).toBe(2);
    // Behind a slot that has fired: it is not due again.
    clock = back(START + HOUR - MINUTE);
    on.jobClock.clock = clock;
    await pass(2 * MINUTE);
    expect(fired()).toBe(2);
    await pass(HOUR);
    expect(fired()).toBe(3);
  });

  it('makes up for what was missed once, or not at all', async () => {
    await open();
    await call('schedule_task', every('0 * * * *'));
    await clock.advance(5 * HOUR + MINUTE);
    began = clock.now();
    await pass(0);
    expect(lastAsked()).toContain('was due at 2026-01-15 17:00 (UTC)');
    expect(lastAsked()).toContain('It could not be done then: it is now 2026-01-15 17:01 (UTC).');
    const before = on.texts().length;
    await pass(0);
    expect(on.texts()).toHaveLength(before);
    on.jobClock.rules = { ...on.jobClock.rules, missed: 'skip' };
    await clock.advance(5 * HOUR);
    began = clock.now();
    await pass(0);
    expect(on.texts()).toHaveLength(before);
    expect(await command('/schedule history 1')).toMatch(/22:00 \(UTC\): skipped\n/);
    await pass(HOUR);
    expect(on.texts().at(-1)).toBe('done');
  });

  it('takes the sleep of a machine for an absence', async () => {
    await open();
    await call('schedule_task', once(10));
    on.jobClock.rules = { ...on.jobClock.rules, missed: 'skip' };
    let ahead = 0;
    const own = { ...clock, now: () => clock.now() + ahead };
    const stop = startJobs({ ...on.jobClock, clock: own }, START);
    await clock.advance(0);
    ahead = HOUR;
    const before = on.texts().length;
    await clock.advance(MINUTE);
    await expect.poll(async () => (await on.jobs.list('test_1')).length).toBe(0);
    await stop();
    await on.settled();
    expect(on.texts()).toHaveLength(before);
  });

  it('leaves the others alone when one cannot be begun', async () => {
    await open();
    await call('schedule_task', once(5, { prompt: 'bad' }));
    await call('schedule_task', once(5, { prompt: 'good' }));
    const { store } = on.jobClock;
    on.jobClock.store = {
      ...store,
      fireJob: async (firing) => {
        if (firing.seen.id === (await store.jobs({ chatId: 'test_1', n: 1 }))[0]?.id)
          throw new Error('as told');
        return store.fireJob(firing);
      },
    };
    await pass(5 * MINUTE);
    expect(lastAsked()).toContain('good');
    on.jobClock.store = store;
    await pass(MINUTE);
    expect(lastAsked()).toContain('bad');
  });

  function back(to: number): ManualClock {
    const earlier = manualClock(to);
    return { ...earlier, sleep: clock.sleep, after: clock.after };
  }
});
