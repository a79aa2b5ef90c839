/** The nightly consolidation of memory, over the real store and real files with a scripted model. */
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { objection } from '../../src/conversation/consolidation/consolidate.js';
import type { InboundMessage } from '../../src/core/message.js';
import type { ModelRequest } from '../../src/core/model.js';
import { type Store, settingOf } from '../../src/core/store.js';
import { type ManualClock, manualClock } from '../fakes/clock.js';
import { type Answer, type Workbench, type WorkbenchOptions, workbench } from '../harness/conversation.js';

const DAY = 24 * 3_600_000;
const START = Date.UTC(2026, 10, 22, 18, 0);
const MEMORY = `# Memory

## Tier 1 — Long term

- Lives in Graz
- Plays the cello

## Tier 2 — Mid term

- Looks for a flat in Vienna

## Tier 3 — Short term

- Tired from packing
- Asked about trains to Vienna (2026-10-01)
`;
const AFTER = {
  1: '- Lives in Vienna (2026-11-22); until then in Graz\n- Plays the cello',
  2: '- Has found a flat in Vienna (2026-11-22)',
  3: '- Tired from packing (2026-11-22)',
};

const opened: Workbench[] = [];
afterEach(async () => {
  await opened.splice(0)[0]?.close();
});

interface Night {
  on: Workbench;
  clock: ManualClock;
  /** The requests that put a memory in order, since the start. */
  asked(): ModelRequest[];
  night(): Promise<void>;
  memory(chat?: string): Promise<string>;
}

async function bench(options: WorkbenchOptions = {}): Promise<Night> {
  const clock = manualClock(START);
  const on = await workbench({
    ...{ memoryTools: true, clock },
    ...options,
    settings: {
      announce: 'off',
      consolidation: { tokens: 100_000, memoryChars: 12_000 },
      ...options.settings,
    },
  });
  opened.push(on);
  return nightOf(on, clock);
}

function nightOf(on: Workbench, clock: ManualClock): Night {
  return {
    ...{ on, clock },
    asked: () => on.asked.filter(isNight),
    night: () => on.conversation.consolidate(new AbortController().signal),
    memory: (chat = 'test_1') => readFile(join(on.folder, 'groups', chat, 'default/MEMORY.md'), 'utf8'),
  };
}

const wordsOf = (request: ModelRequest) => request.messages.map(({ content }) => content).join('\n');
const isNight = (request: ModelRequest) => /^Memory consolidation, /m.test(wordsOf(request));

async function remember(on: Workbench, chat = 'test_1', text = MEMORY): Promise<void> {
  await mkdir(join(on.folder, 'groups', chat, 'default'), { recursive: true });
  await writeFile(join(on.folder, 'groups', chat, 'default/MEMORY.md'), text);
}

/** Answers nights with writes of these tiers, and then as told; everything else with `fine`. */
function script(
  on: Workbench,
  tiers: Partial<Record<1 | 2 | 3, string>>,
  end: () => Answer | Promise<Answer> = () => 'done',
) {
  on.answer((request) => {
    if (!isNight(request)) return 'fine';
    if (request.messages.at(-1)?.role === 'tool') return end();
    const calls = Object.entries(tiers).map(([tier, content]) => ({
      name: 'write_tiered_memory',
      arguments: { tier: Number(tier), content },
    }));
    return calls.length === 0 ? end() : { calls };
  });
}

async function talk({ on }: Night, more: Partial<InboundMessage> = {}): Promise<void> {
  await on.say('I have moved to Vienna today', more);
  await on.settled();
}
const chatWith = (address: string): Partial<InboundMessage> => ({
  chat: { address, kind: 'direct', title: address },
  sender: { address, name: address, administrator: false },
});

describe('a night', () => {
  it('keeps the mark of what was written after words from outside had been read', async () => {
    const at = await bench();
    const { on } = at;
    const owner = { chatId: 'test_1', personaId: 'default' };
    await remember(on);
    await talk(at);
    const cause = { kind: 'turn', personaId: 'default', turnId: null, tainted: true } as const;
    const seen = { text: await on.memory.readTier(owner, 3) };
    await on.memory.writeTier(owner, 3, '- Tired from packing, and told so', seen, { cause });
    script(on, AFTER);
    await at.night();
    const versions = await on.store.versions({ ...owner, most: 3 });
    expect(versions.map(({ cause }) => [cause.kind, cause.tainted])).toEqual(
      Array.from({ length: 3 }, () => ['night', true]),
    );
  });

  it('puts the memory of a persona that talked in order, all at once, with the memory tools alone', async () => {
    const at = await bench();
    const { on } = at;
    await remember(on);
    await talk(at);
    await on.memory.appendDaily('test_1', '2026-11-22', 'moved to Vienna', {
      cause: { kind: 'turn', personaId: 'default', turnId: 't' },
    });
    const standing: string[] = [];
    script(on, AFTER, async () => {
      standing.push(await at.memory());
      return 'done';
    });
    await at.night();
    const [first] = at.asked();
    expect(first?.tools.map(({ name }) => name)).toEqual([
      ...['read_tiered_memory', 'write_tiered_memory', 'read_memory'],
    ]);
    const words = wordsOf(first as ModelRequest);
    expect(words).toContain('- Lives in Graz\n- Plays the cello');
    expect(words).toContain('--- 2026-11-22 ---\nmoved to Vienna');
    // Nothing of it stood in the file before all of it did.
    expect(standing).toEqual([MEMORY]);
    for (const [tier, text] of Object.entries(AFTER))
      expect(await on.memory.readTier({ chatId: 'test_1', personaId: 'default' }, Number(tier) as 1)).toBe(
        text,
      );
    expect(on.texts()).toEqual(['fine']);
  });

  it('is one change, which /memory shows and /memory undo takes back', async () => {
    const at = await bench();
    await remember(at.on);
    await talk(at);
    script(at.on, AFTER);
    await at.night();
    await at.on.say('/memory');
    await at.on.settled();
    expect(at.on.texts().at(-1)).toContain('Consolidated at night, 2026-11-22 18:00: tier 1, 2, 3.');
    await at.on.say('/memory undo');
    await at.on.settled();
    expect(await at.memory()).toBe(MEMORY);
  });

  it('comes once for each persona, and only where something was said since', async () => {
    const at = await bench();
    await remember(at.on);
    await talk(at);
    script(at.on, { 3: '' });
    await at.night();
    await at.night();
    expect(at.asked().length).toBe(2);
    await at.clock.advance(DAY);
    await at.night();
    expect(at.asked().length).toBe(2);
    await talk(at);
    await at.clock.advance(DAY / 2);
    script(at.on, {});
    await at.night();
    expect(at.asked().length).toBe(3);
  });

  it('that was missed is made up for once', async () => {
    const at = await bench();
    await remember(at.on);
    script(at.on, {});
    await talk(at);
    await at.clock.advance(DAY);
    await talk(at, chatWith('2'));
    await remember(at.on, 'test_2');
    await at.clock.advance(DAY - 1);
    // The first night of all looks back one day; later ones as far as the last.
    await at.night();
    expect(at.asked().length).toBe(1);
    await talk(at);
    await at.clock.advance(3 * DAY);
    await at.night();
    expect(at.asked().length).toBe(2);
    await at.clock.advance(DAY);
    await at.night();
    expect(at.asked().length).toBe(2);
  });

  it('is not, unless it is asked for', async () => {
    const at = await bench({ settings: { consolidation: null } });
    await remember(at.on);
    await talk(at);
    await at.night();
    expect(at.asked()).toEqual([]);
  });

  it('is not asked for where nothing is remembered, or the persona is gone', async () => {
    const at = await bench();
    script(at.on, AFTER);
    await talk(at);
    await at.on.say('/persona new Luna');
    await at.on.settled();
    await talk(at);
    await at.on.memory.writeTier({ chatId: 'test_1', personaId: 'luna' }, 1, '- x', undefined, {
      cause: { kind: 'turn', personaId: 'luna', turnId: null },
    });
    await at.on.say('/persona delete Luna');
    await at.on.settled();
    await at.night();
    expect(at.asked()).toEqual([]);
  });

  it('uses no more tokens than it may, and begins with the others the next night', async () => {
    const at = await bench({ settings: { consolidation: { tokens: 2_500, memoryChars: 12_000 } } });
    for (const chat of ['1', '2']) {
      await remember(at.on, `test_${chat}`);
      await talk(at, chatWith(chat));
    }
    at.on.answer((request) =>
      isNight(request) ? { text: 'done', usage: { inputTokens: 1_900, outputTokens: 10 } } : 'fine',
    );
    const usedIn2 = async () =>
      (await at.on.store.usage({ chatId: 'test_2', personId: null, since: 0, now: Date.UTC(2100, 0) }))
        .personas[0]?.usage;
    const before = await usedIn2();
    await at.night();
    expect(at.asked().length).toBe(1);
    await at.clock.advance(DAY);
    await talk(at, chatWith('1'));
    await at.night();
    expect(at.asked().length).toBe(2);
    expect(await usedIn2()).toEqual({
      inputTokens: (before?.inputTokens ?? 0) + 1_900,
      outputTokens: (before?.outputTokens ?? 0) + 10,
    });
  });

  it('counts what was used before an end of the process', async () => {
    const at = await bench({ settings: { consolidation: { tokens: 1_200, memoryChars: 12_000 } } });
    await remember(at.on);
    await talk(at);
    const ended = new AbortController();
    at.on.answer((request) => {
      if (!isNight(request)) return 'fine';
      ended.abort();
      return 'done';
    });
    await at.on.conversation.consolidate(ended.signal);
    expect(at.asked().length).toBe(1);
    const next = nightOf(await at.on.die(), at.clock);
    opened.splice(opened.indexOf(at.on), 1, next.on);
    await next.night();
    expect(next.asked()).toEqual([]);
  });

  it('changes nothing when the model fails, and tries again the next night', async () => {
    const at = await bench();
    await remember(at.on);
    await talk(at);
    script(at.on, AFTER, () => ({ fault: 'model_unreachable' }));
    await at.night();
    expect(await at.memory()).toBe(MEMORY);
    await at.clock.advance(DAY);
    script(at.on, AFTER);
    await at.night();
    expect(await at.memory()).toContain('Lives in Vienna');
  });

  it('passes over a memory that cannot be read, and comes to the others', async () => {
    const at = await bench();
    for (const chat of ['1', '2']) await talk(at, chatWith(chat));
    const file = join(at.on.folder, 'groups/test_1/default/MEMORY.md');
    await rm(file);
    await mkdir(file);
    await remember(at.on, 'test_2');
    script(at.on, AFTER);
    await at.night();
    expect(await at.memory('test_2')).toContain('Lives in Vienna');
  });

  it('refuses a result that loses too much, and one that is longer than a prompt shows', async () => {
    const at = await bench({ settings: { consolidation: { tokens: 100_000, memoryChars: 1_000 } } });
    await remember(at.on);
    await talk(at);
    script(at.on, { 1: '- is nice', 2: '' });
    await at.night();
    expect(await at.memory()).toBe(MEMORY);
    await at.clock.advance(DAY);
    await talk(at);
    script(at.on, { 2: `- Looks for a flat in Vienna ${'and more '.repeat(200)}` });
    await at.night();
    expect(at.asked().length).toBe(4);
    expect(await at.memory()).toBe(MEMORY);
  });

  it('does not write over what was changed meanwhile, in whatever tier', async () => {
    const at = await bench();
    await remember(at.on);
    await talk(at);
    const edited = MEMORY.replace('- Tired from packing', '- Rested');
    script(at.on, { 1: AFTER[1] }, async () => {
      await remember(at.on, 'test_1', edited);
      return 'done';
    });
    await at.night();
    expect(await at.memory()).toBe(edited);
  });

  it('is ended by /memory forget, and brings nothing back', async () => {
    const at = await bench();
    await remember(at.on);
    await at.on.memory.appendDaily('test_1', '2026-11-22', 'the word is swordfish', {
      cause: { kind: 'turn', personaId: 'default', turnId: 't' },
    });
    await talk(at);
    await at.on.say('/memory forget swordfish');
    await at.on.settled();
    let release: (text: string) => void = () => {};
    script(
      at.on,
      { 1: `${AFTER[1]}\n- The word is swordfish` },
      () =>
        new Promise((resolve) => {
          release = resolve;
        }),
    );
    const night = at.night();
    await expect.poll(() => at.asked().length).toBe(2);
    const forgotten = at.on.say('yes').then(() => at.on.settled());
    await new Promise((resolve) => setImmediate(resolve));
    release('done');
    await forgotten;
    await night;
    expect(await at.memory()).toBe(MEMORY);
  });

  it('gives way at once to a turn that needs room', async () => {
    const at = await bench({ contextTokens: 9_000, settings: { maxOutputTokens: 1_000 } });
    await remember(at.on);
    let cutOff = false;
    at.on.answer((request, signal) => {
      if (!isNight(request)) return 'fine';
      return new Promise((resolve) =>
        signal.addEventListener('abort', () => {
          cutOff = true;
          resolve('cut off');
        }),
      );
    });
    await talk(at);
    const night = at.night();
    await expect.poll(() => at.asked().length).toBe(1);
    for (let n = 0; n < 8; n++) {
      await at.on.say(`long-${n} ${'and so on '.repeat(900)}`);
      for (let step = 0; step < 200 && at.on.texts().length < n + 2; step++) await at.clock.advance(1);
    }
    expect(at.on.texts().length).toBe(9);
    expect(cutOff).toBe(true);
    await night;
    expect(await at.memory()).toBe(MEMORY);
  });

  it('is not repeated after an end of the process between the write and our note of it', async () => {
    const ending = { now: false };
    const around = (store: Store): Store => ({
      ...store,
      async setValues(scope, values) {
        if (ending.now && values?.has('memory.nights')) throw new Error('the process ends here');
        await store.setValues(scope, values);
      },
    });
    const at = await bench({ around });
    await remember(at.on);
    await talk(at);
    script(at.on, AFTER);
    ending.now = true;
    await expect(at.night()).rejects.toThrow('the process ends here');
    expect(await at.memory()).toContain('Lives in Vienna');
    ending.now = false;
    const next = nightOf(await at.on.die(), at.clock);
    opened.splice(opened.indexOf(at.on), 1, next.on);
    script(next.on, { 1: '- Lives in Vienna, Graz, wherever; plays the cello (2026-11-22)' });
    await next.night();
    expect(next.asked()).toEqual([]);
    expect(await next.memory()).toContain(AFTER[1]);
  });
});

describe('a night that ends the process each time it is begun', () => {
  it('rests for a day after five ends', async () => {
    let dies = true;
    const around = (store: Store): Store => ({
      ...store,
      async setValues(scope, values) {
        const [[key = '', value = ''] = []] = values ?? [];
        // The process had ended by then.
        if (dies && key.startsWith('begun night') && value === null) return;
        await store.setValues(scope, values);
      },
    });
    const at = await bench({ around });
    await remember(at.on);
    await talk(at);
    script(at.on, {}, () => ({ fault: 'model_unreachable' }));
    for (let n = 0; n < 5; n++) await at.night();
    const asked = at.asked().length;
    expect(asked).toBeGreaterThanOrEqual(5);
    await at.night();
    expect(at.asked()).toHaveLength(asked);
    dies = false;
    await at.clock.advance(DAY + 1);
    await talk(at);
    script(at.on, AFTER);
    await at.night();
    expect(await at.memory()).toContain('Lives in Vienna');
    expect(await settingOf(at.on.store, 'begun night test_1\ndefault')).toBeNull();
  });
});

describe('the guard', () => {
  const MAY = { memoryChars: 12_000, mayChangeTier1: true };
  const before = {
    1: Array.from({ length: 30 }, (_, n) => `- fact number${n} about thing${n}`).join('\n'),
    2: '- a project called blue shed',
    3: '- tired today',
  };

  it('lets lines be dated, moved, merged and aged', () => {
    expect(objection(before, { 1: `${before[1]}\n${before[2]} (2026-11-22)`, 2: '', 3: '' }, MAY)).toBeNull();
    expect(
      objection(
        { 1: '- Lives in Graz\n- Lives in Vienna', 2: '', 3: '' },
        { 1: '- Lives in Vienna', 2: '', 3: '' },
        MAY,
      ),
    ).toBeNull();
  });

  it('objects to an emptied memory, a halved one, and one that outgrows the budget', () => {
    expect(objection(before, { 1: '', 2: '', 3: '' }, MAY)).toMatch(/loses/);
    expect(objection({ 1: '- likes tea', 2: '', 3: '' }, { 1: '', 2: '', 3: '' }, MAY)).toMatch(/loses/);
    const half = before[1].split('\n').slice(0, 12).join('\n');
    expect(objection(before, { ...before, 1: half }, MAY)).toMatch(/loses/);
    expect(objection(before, { ...before, 3: 'x '.repeat(6_000) }, MAY)).toMatch(/longer/);
  });

  it('objects to any change of tier 1 where only people change it', () => {
    const kept = { ...MAY, mayChangeTier1: false };
    expect(objection(before, { ...before, 1: `${before[1]}\n- more` }, kept)).toMatch(/tier 1.*tier1_by/);
    expect(objection(before, { ...before, 3: '- more' }, kept)).toBeNull();
  });

  it('lets a memory shrink that was too long before', () => {
    const long = { ...before, 3: 'x'.repeat(20_000) };
    expect(objection(long, { ...before, 3: 'x'.repeat(15_000) }, MAY)).toBeNull();
  });
});
