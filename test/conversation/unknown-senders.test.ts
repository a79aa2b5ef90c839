/** Those who may not talk, however many they are: what they are answered, what is kept of them, what the log says. */
import { afterEach, describe, expect, it } from 'vitest';
import { type ManualClock, manualClock } from '../fakes/clock.js';
import { type Workbench, type WorkbenchOptions, workbench } from '../harness/conversation.js';
import { keptLog } from '../models/helpers.js';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

let on: Workbench;
let clock: ManualClock;
let log: ReturnType<typeof keptLog>;
afterEach(() => on.close());

async function open(options: WorkbenchOptions): Promise<void> {
  clock = manualClock();
  log = keptLog();
  let codes = 0;
  const newPairingCode = () => `CODE${String(++codes).padStart(4, '0')}`;
  on = await workbench({ clock, log, newPairingCode, ...options });
}

const stranger = (n: number, name = `Stranger ${n}`) => ({
  chat: { address: String(n), kind: 'direct' as const, title: name },
  sender: { address: String(n), name, administrator: false },
});
const group = (n: number, title = `Club ${n}`) => ({
  chat: { address: `-${n}`, kind: 'group' as const, title },
  mentionsBot: true,
});
const lines = (about: string) => log.lines.filter((line) => line.includes(about));
const codesGiven = () => on.texts().filter((text) => text.startsWith('I do not know you yet')).length;

describe('a flood of unknown people', () => {
  it('gets three codes, and the log counts the others, a line a minute', async () => {
    await open({ rules: { direct: 'pairing' } });
    for (let n = 1; n <= 200; n++) {
      await on.say('let me in', stranger(n));
      await on.say('hello?', stranger(n));
    }
    await on.settled();
    expect(codesGiven()).toBe(3);
    expect(lines('unknown sender wants to talk')).toHaveLength(3);
    expect(lines('turned away')).toEqual([expect.stringMatching(/turned away without a code: 1;/)]);
    await clock.advance(MINUTE);
    expect(lines('turned away')).toHaveLength(2);
    expect(lines('turned away')[1]).toMatch(/turned away without a code: 197;/);
    expect(log.lines.join()).not.toContain('test_77');
    await clock.advance(10 * MINUTE);
    expect(lines('turned away'), 'nothing more has come').toHaveLength(2);
    for (let minute = 0; minute < 5; minute++) {
      for (let n = 300; n < 320; n++) await on.say('let me in', stranger(n));
      await clock.advance(MINUTE);
    }
    expect(lines('turned away').length).toBeLessThanOrEqual(2 + 6);
    expect(await on.store.waiting(clock.now())).toHaveLength(3);
    expect(await on.store.chat('test_77')).toBeNull();
  });

  it('is counted up to its end, also when the gateway stops', async () => {
    await open({ rules: { direct: 'pairing' } });
    for (let n = 1; n <= 6; n++) await on.say('let me in', stranger(n));
    await on.settled();
    await on.conversation.stop(0);
    expect(lines('turned away').at(-1)).toMatch(/: 2;/);
    expect(clock.sleeping()).not.toContain(MINUTE);
  });

  it('costs nothing of what concerns owners: their chats are not read for it', async () => {
    let read = 0;
    const around: WorkbenchOptions['around'] = (store) => ({
      ...store,
      owners: (listed) => {
        read += 1;
        return store.owners(listed);
      },
    });
    await open({ rules: { direct: 'pairing', owners: ['test_boss'] }, around });
    for (let n = 1; n <= 50; n++) await on.say('let me in', stranger(n));
    await on.settled();
    expect(read).toBe(3);
  });

  it('gets ten codes an hour, however fast its requests are refused', async () => {
    await open({ rules: { direct: 'pairing' } });
    for (let n = 1; n <= 30; n++) {
      await on.say('let me in', stranger(n));
      for (const { code } of await on.store.waiting(clock.now())) {
        await on.store.refuse({ code, now: clock.now(), quietUntil: clock.now() + 7 * DAY });
      }
    }
    await on.settled();
    expect(codesGiven()).toBe(10);
    await clock.advance(HOUR);
    await on.say('let me in', stranger(99));
    await on.settled();
    expect(codesGiven()).toBe(11);
  });

  it('of names that write over others is announced, listed and logged without that', async () => {
    await open({ rules: { direct: 'pairing', owners: ['test_1'] } });
    await on.say('hello', stranger(1));
    await on.settled();
    await on.say('hi', stranger(2, `Ann\u202e\u001b[2J\n${'x'.repeat(5_000)}`));
    await on.settled();
    const [waits] = await on.store.waiting(clock.now());
    expect(waits?.name).toMatch(/^Ann \[2J x{40,}…$/);
    const said = [
      ...on.texts().filter((text) => text.includes('wants to talk')),
      ...lines('unknown sender wants'),
    ];
    expect(said).toHaveLength(2);
    for (const each of said) {
      expect(each).toContain('Ann [2J xxx');
      expect(each.length).toBeLessThan(300);
    }
  });
});

describe('a flood of people where nobody new may talk', () => {
  it('is named for a start, then counted, a line a minute, each once', async () => {
    await open({ rules: { direct: 'closed' } });
    for (let n = 1; n <= 1_200; n++) await on.say('hi', stranger(n));
    for (let n = 1_100; n <= 1_200; n++) await on.say('hi again', stranger(n));
    await on.settled();
    expect(lines('discarded')).toHaveLength(10);
    expect(lines('discarded')[0]).toContain('test_1');
    await clock.advance(MINUTE);
    expect(lines('discarded')).toHaveLength(11);
    expect(lines('discarded')[10]).toMatch(/^discarded messages of 1000 or more unapproved senders/);
    expect(lines('discarded')[10]?.length).toBeLessThan(400);
    await clock.advance(30 * MINUTE);
    await on.say('hi', stranger(4_000));
    expect(lines('discarded').at(-1), 'a quiet time later').toContain('test_4000');
  });
});

describe('groups that are not listed', () => {
  it('wait for a week after they mentioned us last, and are logged again after that', async () => {
    await open({ rules: { groups: 'listed' } });
    await on.say('@bot', group(5));
    await on.say('@bot', group(5));
    expect(lines('to allow it: coterie pair approve test_-5')).toHaveLength(1);
    await clock.advance(6 * DAY);
    await on.say('@bot', group(5));
    await clock.advance(6 * DAY);
    expect(await on.store.waiting(clock.now())).toMatchObject([{ id: 'test_-5', name: 'Club 5' }]);
    expect(lines('coterie pair approve test_-5')).toHaveLength(1);
    await clock.advance(DAY + HOUR);
    expect(await on.store.waiting(clock.now())).toEqual([]);
    await on.say('@bot', group(5));
    expect(lines('coterie pair approve test_-5')).toHaveLength(2);
  });

  it('are fifty at most, and a flood of them is a few lines', async () => {
    await open({ rules: { groups: 'listed' } });
    for (let n = 1; n <= 120; n++) await on.say('@bot', group(n, `Club\u001b[31m\n${'x'.repeat(2_000)}`));
    const waiting = await on.store.waiting(clock.now());
    expect(waiting).toHaveLength(50);
    for (const { name } of waiting) expect(name).toMatch(/^Club \[31m x{40,}…$/);
    expect(lines('not listed')).toHaveLength(10);
    await clock.advance(MINUTE);
    expect(lines('not listed')).toHaveLength(11);
    expect(lines('not listed')[10]).toContain('mentioned in 110 other groups');
    expect(log.lines.join().length).toBeLessThan(5_000);
  });
});
