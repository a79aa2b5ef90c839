/** `/memory`, `/archive`, and what `/reset` and `/persona delete` do to windows and archives; over stand-ins. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { phraseOf } from '../../src/core/phrase.js';
import type { Step } from '../../src/core/transcript.js';
import { CHAT, messageOf, standIn, versionOf } from './memory-stand-in.js';

const ACCOUNT = 'Messages here: 12 in my window, 40 read by a memory flush, 1 archived with a pending flush.';
const cleared = 'Conversation cleared. Principles and per-persona memory are unchanged.';

describe('/memory', () => {
  it('says in one sentence that it is empty, and how it is used wrongly', async () => {
    const on = standIn();
    expect((await on.run('/memory')).text).toBe('I remember nothing here yet.');
    for (const wrong of ['nonsense', 'forget', 'yes', 'constructor', '__proto__'])
      expect((await on.run(`/memory ${wrong}`)).text).toMatch(/^Usage:\n\/memory — /);
    expect(on.done).toEqual([]);
  });

  it('shows tiers and daily log as they stand, and says how to get all', async () => {
    const on = standIn();
    on.tiers.set('default', { 1: '- likes **roses**', 2: '', 3: '```js\nopen' });
    on.files.set('memory/2026-11-22.md', 'planted a rose\n');
    const { text } = await on.run('/memory SHOW');
    expect(text).toContain('## Tier 1 — Long term\n\n- likes **roses**');
    expect(text).toContain('--- 2026-11-22 ---\nplanted a rose');
    // The open fence does not swallow what follows.
    expect(text).toContain('```js\nopen\n```\n\n**Daily log of this chat**');
    expect(text).toMatch(/\/memory export$/);
  });

  it('cuts 200,000 characters with the marker of the prompt', async () => {
    const on = standIn();
    on.tiers.set('default', { 1: 'abcdefgh\n'.repeat(22_300), 2: '', 3: 'the end' });
    const { text } = await on.run('/memory');
    expect(text).toContain('<<truncated due to memory-max-chars=12000>>');
    expect(text).not.toContain('the end');
    expect(text.length).toBeLessThan(12_200);
  });

  it('does not call unreadable memory empty', async () => {
    const on = standIn();
    on.now.unreadable = true;
    await expect(on.run('/memory')).rejects.toThrow('MEMORY.md is a folder');
  });

  it('changes something only where it changes something', async () => {
    const { services } = standIn();
    const memory = services.commands.find(({ name }) => name === 'memory');
    const changing = ['forget x', 'yes x', 'undo', 'export', 'FORGET x', ' undo '];
    for (const argument of changing) expect(memory?.changes(argument)).toBe(true);
    for (const argument of ['', 'show', 'why', 'why forget it', 'nonsense'])
      expect(memory?.changes(argument)).toBe(false);
  });
});

describe('/memory why', () => {
  const given = {
    memory:
      '# Memory\n\n## Tier 1 — Long term\n\n- Likes blue roses\n- Lives in Graz\n\n## Tier 2 — Mid term\n\nBuilds a shed',
    dailyLog: '--- 2026-11-21 ---\nwatered the roses\nslept late',
    recalled:
      '- 2026-03-04 10:15, Anna: my sister brought blue roses\n- the shed needs a door (archive/2026-01-01T0900-default.md)',
    summary: '## Facts\n- Anna plants roses\n- Her birthday is in May',
  };
  const searched = (query: string, content: string, failed = false): Step[] => [
    {
      kind: 'answer',
      text: '',
      calls: [{ id: query, name: 'search_memory', arguments: JSON.stringify({ query }) }],
    },
    { kind: 'call', callId: query },
    { kind: 'result', callId: query, content, failed },
  ];

  it('says of a line that an owner has written it on the page', async () => {
    const on = standIn();
    on.now.given = { ...given, recalled: '', summary: '' };
    on.messages.push(messageOf(9, 'Roses.', { author: { kind: 'persona', id: 'default' }, turnId: 't9' }));
    const cause = { kind: 'owner', personaId: 'default', turnId: 'e1' } as const;
    on.versions.push(versionOf({ id: 'v1', tier: 1, after: '- Likes blue roses', cause }));
    expect((await on.run('/memory why')).text).toContain(
      '- `Likes blue roses` — `default/MEMORY.md`, tier 1; noted 2026-11-21 08:00, by an owner on the page',
    );
  });

  it('names the given lines, those first that share words with the answer, with file, tier and source', async () => {
    const on = standIn();
    on.now.given = given;
    on.messages.push(
      messageOf(9, 'Blue roses suit your shed.', {
        author: { kind: 'persona', id: 'default' },
        turnId: 't9',
      }),
      messageOf(10, 'another thing entirely'),
    );
    on.steps.set('t9', [
      ...searched('shed door', '- 2025-08-09 18:00, Ben: the shed is green'),
      ...searched('broken', 'A search failed for the shed.', true),
      ...searched('nothing', 'Nothing was found. Other words may find more.'),
    ]);
    on.turns.set('t1', [messageOf(3, 'hello you'), messageOf(4, 'I like\nblue roses `very` much')]);
    on.versions.push(
      versionOf({
        id: 'v3',
        tier: 2,
        after: 'Builds a shed',
        cause: { kind: 'flush', personaId: 'default', turnId: null },
      }),
      versionOf({
        id: 'v2',
        before: '- Likes blue roses',
        after: '- Likes blue roses\n- Lives in Graz',
        cause: { kind: 'turn', personaId: 'default', turnId: 'lost' },
      }),
      versionOf({ id: 'v1', after: '- Likes blue roses' }),
      versionOf({
        id: 'v0',
        personaId: 'luna',
        tier: null,
        file: 'memory/2026-11-21.md',
        after: 'slept late',
        cause: { kind: 'turn', personaId: 'luna', turnId: 't1' },
      }),
    );
    const { text } = await on.run('/memory why');
    expect(text.split('\n')).toEqual([
      'My last answer used 5 remembered lines, 2 recalled lines, 2 lines of my summary and 1 line that a search found.',
      '',
      'Lines that share words with the answer:',
      '',
      '- `Likes blue roses` — `default/MEMORY.md`, tier 1; from Anna, 2026-11-20 09:04: ``I like blue roses `very` much`` (shared: blue, roses)',
      '- `2026-03-04 10:15, Anna: my sister brought blue roses` — recalled for your message (shared: blue, roses)',
      '- `Builds a shed` — `default/MEMORY.md`, tier 2; noted 2026-11-21 08:00, during a memory flush (shared: shed)',
      '- `watered the roses` — `memory/2026-11-21.md`; probably written by hand (shared: roses)',
      '- `the shed needs a door (archive/2026-01-01T0900-default.md)` — recalled for your message (shared: shed)',
      '- `Anna plants roses` — from my summary of older messages (shared: roses)',
      '- `2025-08-09 18:00, Ben: the shed is green` — found by my search for `shed door` (shared: shed)',
      '',
      'Other lines:',
      '',
      '- `Lives in Graz` — `default/MEMORY.md`, tier 1; noted 2026-11-21 08:00; the conversation is no longer kept',
      '- `slept late` — `memory/2026-11-21.md`; from Anna, 2026-11-20 09:03: `hello you`',
      '- `Her birthday is in May` — from my summary of older messages',
      '',
      ACCOUNT,
    ]);
  });

  it('quotes nothing of a conversation that was reset, nor of another chat', async () => {
    const on = standIn();
    on.now.given = given;
    on.now.resetAt = 4;
    on.turns.set('t1', [messageOf(4, 'SECRET of old')]);
    on.turns.set('t2', [messageOf(9, 'SECRET of elsewhere', { room: 'test_control/5' })]);
    on.versions.push(
      versionOf({ after: '- Likes blue roses' }),
      versionOf({
        tier: 2,
        after: 'Builds a shed',
        cause: { kind: 'turn', personaId: 'default', turnId: 't2' },
      }),
    );
    const { text } = await on.run('/memory why');
    expect(text).not.toContain('SECRET');
    expect(text).toContain('in a conversation that was reset since');
    expect(text).toContain('from another chat');
  });

  it('keeps its length, and finds the source of a line that the budget cut', async () => {
    const on = standIn();
    const lines = Array.from({ length: 300 }, (_, n) => `- line ${n} ${'x'.repeat(500)}`);
    on.now.given = {
      memory: `# Memory\n\n## Tier 1\n\n${lines.join('\n')}\n- and hal\n\n<<truncated due to memory-max-chars=12000>>`,
      dailyLog: '',
      recalled: '',
      summary: '',
    };
    on.messages.push(messageOf(9, 'hal here', { author: { kind: 'persona', id: 'default' } }));
    on.turns.set('t1', [messageOf(4, 'half of it')]);
    on.versions.push(versionOf({ after: '- and half of a line' }));
    const { text } = await on.run('/memory why');
    expect(text).toContain('My last answer used 301 remembered lines.');
    expect(text).toContain('- `and hal` — `default/MEMORY.md`, tier 1; from Anna');
    expect(text).toContain('And 286 more.');
    expect(text.length).toBeLessThan(6_000);
  });

  it('tells an answer without memory from no answer at all', async () => {
    const on = standIn();
    expect((await on.run('/memory why')).text).toBe(
      `I have not answered here yet, so there is nothing to explain.\n\n${ACCOUNT}`,
    );
    on.now.given = { memory: '', dailyLog: '', recalled: '', summary: '' };
    expect((await on.run('/memory why')).text).toBe(`My last answer used no memory.\n\n${ACCOUNT}`);
  });

  it('names what was only recalled, and nothing of another answer’s searches', async () => {
    const on = standIn();
    on.now.given = {
      memory: '',
      dailyLog: '',
      recalled: '- 2026-03-04 10:15, you: the key is blue',
      summary: '',
    };
    on.messages.push(
      messageOf(9, 'It is blue.', { author: { kind: 'persona', id: 'default' }, turnId: 't2' }),
    );
    on.steps.set('t1', searched('key', '- 2025-08-09 18:00, Ben: an old find'));
    const { text } = await on.run('/memory why');
    expect(text).toContain('My last answer used 1 recalled line.');
    expect(text).toContain(
      '- `2026-03-04 10:15, you: the key is blue` — recalled for your message (shared: blue)',
    );
    expect(text).not.toContain('an old find');
  });

  it('says of messages with certain words where they went', async () => {
    const on = standIn();
    expect((await on.run('/memory why blue roses')).text).toMatch(/^I can’t find a message/);
    const of = (id: number, fate: (typeof on.traces)[number]['fate']) =>
      on.traces.push({ message: messageOf(id, `blue roses ${id}`), personaId: 'default', fate });
    of(1, { kind: 'window', flushed: true });
    of(2, { kind: 'archived', file: 'x.md' });
    of(3, { kind: 'reset' });
    const { text } = await on.run('/memory why "blue roses"');
    const [window, archived, reset] = text.split('\n');
    expect(window).toMatch(/^- Anna, 2026-11-20 09:01: `blue roses 1` It is in my window/);
    expect(archived).toMatch(
      /word for word in `groups\/test_1\/archive\/x.md`\. Its memory flush is pending/,
    );
    expect(reset).toBe('- A message of 2026-11-20 09:03: forgotten by /reset, or never shown to me.');
    on.traces.length = 0;
    for (const fate of ['waiting', 'flushed', 'overheard'] as const) of(4, { kind: fate });
    expect((await on.run('/memory why roses')).text).toMatch(/waiting.*left my window.*not said to me/s);
  });
});

describe('/memory forget', () => {
  const withSwordfish = () => {
    const on = standIn();
    on.tiers.set('default', { 1: '- The word is Swordfish\n- Likes tea', 2: '', 3: '' });
    on.tiers.set('luna', { 1: '', 2: 'swordfish  again', 3: '' });
    on.files.set('memory/2026-11-22.md', 'said swordfish\nslept');
    on.files.set('archive/a.md', 'Anna: swordfish it is');
    on.messages.push(messageOf(1, 'the word is swordfish'), messageOf(2, 'ok'));
    on.now.others = ['summary with swordfish'];
    return on;
  };
  const everything = (on: ReturnType<typeof standIn>) =>
    JSON.stringify([[...on.tiers], [...on.files], on.messages, on.now.others]).toLowerCase();

  it('shows what would go, changes nothing, and asks', async () => {
    const on = withSwordfish();
    const before = everything(on);
    const { text, effects } = await on.run('/memory forget swordfish');
    expect(text).toContain(
      'This would be removed permanently: 3 whole lines of memory and daily log, the words in 1 message, the words in 1 archive, and the matching parts of 1 other note',
    );
    expect(text).toContain('- `default/MEMORY.md`: `The word is Swordfish`');
    expect(text).toContain('- `luna/MEMORY.md`: `swordfish again`');
    expect(text).toContain('- `memory/2026-11-22.md`: `said swordfish`');
    expect(text).toContain('Answer `yes` within two minutes');
    expect(everything(on)).toBe(before);
    expect(effects).toEqual([
      {
        ...{ kind: 'ask', room: CHAT, senderId: 'test_anna', askedBy: '77' },
        ifYes: { name: 'memory', argument: 'yes swordfish' },
        until: on.clock.now() + 120_000,
      },
    ]);
  });

  it('after a yes removes it everywhere, work in flight first, and does not repeat the text', async () => {
    const on = withSwordfish();
    const { text } = await on.run('/memory yes swordfish');
    expect(text).toMatch(/^Forgotten:/);
    expect(text).toContain('Removed: 3 whole lines');
    expect(text.toLowerCase()).not.toContain('swordfish');
    expect(everything(on)).not.toContain('swordfish');
    expect(on.tiers.get('default')?.[1]).toBe('- Likes tea');
    expect(on.messages[0]?.text).toBe('the word is [forgotten]');
    const ended = ['interrupt', `halt all of ${CHAT}`];
    expect(on.done).toEqual([...ended, 'erase', 'eraseWords', ...ended, 'endErasing']);
    expect(JSON.stringify(on.logged).toLowerCase()).not.toContain('swordfish');
  });

  it('removes what a turn in flight had written back meanwhile, and says so when that does not end', async () => {
    const on = withSwordfish();
    let times = 0;
    on.now.onInterrupt = () => {
      if (++times === 2) on.files.set('memory/2026-11-22.md', 'swordfish again');
    };
    expect((await on.run('/memory yes swordfish')).text).toMatch(/^Forgotten:/);
    expect(everything(on)).not.toContain('swordfish');
    on.now.onInterrupt = () => on.files.set('memory/2026-11-22.md', 'swordfish again');
    on.now.onInterrupt();
    expect((await on.run('/memory yes swordfish')).text).toMatch(/it was written again/);
  });

  it('run again after a crash finishes what is left; when nothing is, it says it is forgotten', async () => {
    const on = withSwordfish();
    await on.services.memory.erase(CHAT, phraseOf('swordfish'));
    expect((await on.run('/memory yes swordfish', { tries: 2 })).text).toMatch(/^Forgotten:/);
    expect(everything(on)).not.toContain('swordfish');
    expect((await on.run('/memory yes swordfish', { tries: 2 })).text).toMatch(/^Forgotten:/);
    // The store had put its mark into the command itself before the process ended.
    on.done.length = 0;
    const marked = ['yes [forgotten]', 'y[forgotten] [forgotten]', 'forget "[forgotten]"'];
    for (const argument of marked)
      expect((await on.run(`/memory ${argument}`, { tries: 2 })).text).toMatch(/^Forgotten:/);
    expect(on.done).toEqual(marked.map(() => 'endErasing, as after a crash'));
  });

  it('says that a text stands nowhere, and asks nothing', async () => {
    const on = withSwordfish();
    expect(await on.run('/memory forget marlin')).toEqual({
      text: 'I can’t find that in my memory or in anything I keep of this chat.',
    });
    expect(on.done).toEqual([]);
    expect((await on.run('/memory yes marlin')).text).toMatch(/^I can’t find that/);
    expect(on.done).not.toContain('erase');
  });

  it('refuses one character, in whatever form, and its own mark', async () => {
    const on = withSwordfish();
    for (const text of ['e', ' 🌹 ', '"e"', '“”', "' '"]) {
      expect((await on.run(`/memory forget ${text}`)).text).toMatch(/at least two characters/);
      expect((await on.run(`/memory yes ${text}`)).text).toMatch(/at least two characters/);
    }
    expect((await on.run('/memory forget [forgotten]')).text).toMatch(/replaces words that were forgotten/);
    expect((await on.run('/memory forget a [forgotten] b')).text).toMatch(
      /replaces words that were forgotten/,
    );
    expect(on.done).toEqual([]);
  });

  it('takes signs, quotes and line ends for what they are', async () => {
    const on = standIn();
    on.tiers.set('default', { 1: 'costs 5$ (a+b)*\nsays "hi there" daily\nkeep me .*', 2: '', 3: '' });
    expect((await on.run('/memory forget 5$ (a+b)*')).text).toContain('1 whole line');
    expect((await on.run('/memory forget "hi\nthere"')).text).toContain('1 whole line');
    expect((await on.run('/memory forget .*.*')).text).toMatch(/can’t find that/);
    await on.run('/memory yes "hi\nthere"');
    await on.run('/memory yes 5$ (a+b)*');
    expect(on.tiers.get('default')?.[1]).toBe('keep me .*');
  });

  it('shows at most 15 lines, each within its bounds', async () => {
    const on = standIn();
    on.tiers.set('default', { 1: `rose ${'x'.repeat(3_000)}\n`.repeat(60), 2: '', 3: '' });
    const { text } = await on.run('/memory forget rose');
    expect(text).toContain('- and 45 more lines');
    expect(text.length).toBeLessThan(4_096);
  });

  it('leaves nothing of any text, whatever it is', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.string({ minLength: 2, unit: 'binary' }).filter((text) => Array.from(text.trim()).length > 2),
        async (secret) => {
          if (/["'“”„«»]/.test(secret)) return;
          const on = standIn();
          const line = secret.replace(/\s+/gu, ' ').trim();
          on.tiers.set('default', { 1: `tea\n${line}`, 2: '', 3: '' });
          on.messages.push(messageOf(1, `so: ${line}!`));
          const { text } = await on.run(`/memory yes ${secret}`);
          expect(text).toMatch(/^Forgotten:/);
          expect(on.messages[0]?.text).toContain('[forgotten]');
        },
      ),
      { numRuns: 15 },
    );
  });
});

describe('/memory undo', () => {
  const twice = () => {
    const on = standIn();
    on.tiers.set('default', { 1: '- tea\n- roses', 2: '', 3: '' });
    on.turns.set('t1', [messageOf(4, 'I like roses')]);
    on.versions.push(
      versionOf({ id: 'new', before: '- tea', after: '- tea\n- roses' }),
      versionOf({ id: 'old', before: '', after: '- tea' }),
    );
    return on;
  };

  it('takes back the last change and says which; once more, the one before', async () => {
    const on = twice();
    const first = await on.run('/memory undo');
    expect(first).toEqual({
      text: 'Undone: the change of tier 1 of `default/MEMORY.md` (from Anna, 2026-11-20 09:04: `I like roses`).\n\nRemoved:\n\n- `roses`',
      effects: [{ kind: 'undone', versionId: 'new' }],
    });
    expect(on.tiers.get('default')?.[1]).toBe('- tea');
    on.versions.shift();
    const second = await on.run('/memory undo');
    expect(second.effects).toEqual([{ kind: 'undone', versionId: 'old' }]);
    expect(on.tiers.get('default')?.[1]).toBe('');
    on.versions.shift();
    expect(await on.run('/memory undo')).toEqual({
      text: 'There is no change of my memory to undo.',
      effects: [],
    });
  });

  it('refuses after a person’s edit, changes nothing, and shows what the change was', async () => {
    const on = twice();
    on.tiers.set('default', { 1: '- tea\n- red roses', 2: '', 3: '' });
    const { text, effects } = await on.run('/memory undo');
    expect(text).toMatch(/^Nothing was undone: .* edited by hand since/);
    expect(text).toContain('It had added:\n\n- `roses`');
    expect(effects).toEqual([]);
    expect(on.tiers.get('default')?.[1]).toBe('- tea\n- red roses');
  });

  it('goes past a change that never came to be; after a crash, the same sign means it is done', async () => {
    const on = twice();
    on.tiers.set('default', { 1: '- tea', 2: '', 3: '' });
    expect((await on.run('/memory undo', { tries: 2 })).effects).toEqual([
      { kind: 'undone', versionId: 'new' },
    ]);
    expect(on.tiers.get('default')?.[1]).toBe('- tea');
    expect((await on.run('/memory undo')).effects).toEqual([
      { kind: 'undone', versionId: 'new' },
      { kind: 'undone', versionId: 'old' },
    ]);
    expect(on.tiers.get('default')?.[1]).toBe('');
  });
});

describe('/memory undo TURN, which a plain undo becomes', () => {
  const saved = () => {
    const on = standIn();
    on.tiers.set('default', { 1: '- tea\n- roses\n- shed', 2: 'a plan', 3: '' });
    on.versions.push(
      versionOf({ id: 'third', before: '- tea\n- roses', after: '- tea\n- roses\n- shed' }),
      versionOf({ id: 'second', tier: 2, before: '', after: 'a plan' }),
      versionOf({ id: 'first', before: '- tea', after: '- tea\n- roses' }),
      versionOf({ id: 'older', after: '- tea', cause: { kind: 'turn', personaId: 'default', turnId: 't0' } }),
    );
    return on;
  };

  it('takes back all that this turn changed, and nothing else', async () => {
    const on = saved();
    const { text, effects } = await on.run('/memory undo t1');
    expect(text).toBe(
      'Undone: the change of tier 1 of `default/MEMORY.md`, tier 2 of `default/MEMORY.md`.\n\n' +
        'Removed:\n\n- `roses`\n- `shed`\n\nRemoved:\n\n- `a plan`',
    );
    expect(effects).toEqual(['third', 'second', 'first'].map((versionId) => ({ kind: 'undone', versionId })));
    expect(on.tiers.get('default')).toEqual({ 1: '- tea', 2: '', 3: '' });
  });

  it('leaves what was changed again since, and says so', async () => {
    const on = saved();
    on.tiers.set('default', { 1: '- tea\n- roses\n- shed\n- cats', 2: 'a plan', 3: '' });
    const { text, effects } = await on.run('/memory undo t1');
    expect(text).toMatch(/^Nothing was undone: .* was changed again since, and undoing would lose that\./);
    expect(effects).toBeUndefined();
    expect(on.tiers.get('default')?.[1]).toBe('- tea\n- roses\n- shed\n- cats');
  });

  it('says when nothing is left of it', async () => {
    expect(await saved().run('/memory undo t7')).toEqual({ text: 'There is nothing left to undo.' });
  });
});

describe('a night', () => {
  const night = { kind: 'night', personaId: 'default', turnId: 'night-2026-11-22-default' } as const;
  const consolidated = () => {
    const on = standIn();
    on.tiers.set('default', { 1: '- tea (2026-11-01)', 2: '- a plan', 3: '' });
    on.versions.push(
      versionOf({ id: 'n3', tier: 3, before: '- a plan', after: '', cause: night }),
      versionOf({ id: 'n2', tier: 2, before: '', after: '- a plan', cause: night }),
      versionOf({ id: 'n1', tier: 1, before: '- tea', after: '- tea (2026-11-01)', cause: night }),
      versionOf({ id: 'old', after: '- tea' }),
    );
    return on;
  };

  it('is listed by /memory, and is one change for /memory undo', async () => {
    const on = consolidated();
    expect((await on.run('/memory')).text).toContain(
      'Consolidated at night, 2026-11-21 08:00: tier 1, 2, 3. To undo that: /memory undo',
    );
    const { text, effects } = await on.run('/memory undo');
    expect(text).toContain('noted 2026-11-21 08:00, during the nightly consolidation');
    expect(effects).toEqual(['n3', 'n2', 'n1'].map((versionId) => ({ kind: 'undone', versionId })));
    expect(on.tiers.get('default')).toEqual({ 1: '- tea', 2: '', 3: '- a plan' });
  });

  it('is not offered to be taken back where something newer would be', async () => {
    const on = consolidated();
    on.versions.unshift(versionOf({ id: 'new', tier: 2, before: '- a plan', after: '- another' }));
    expect((await on.run('/memory')).text).toMatch(/Consolidated at night, .*tier 1, 2, 3\.\n/);
    on.versions.splice(0);
    expect((await on.run('/memory')).text).not.toContain('at night');
  });
});

describe('/memory export', () => {
  it('sends the files that hold something, named by their place', async () => {
    const on = standIn();
    on.tiers.set('default', { 1: 'tea', 2: '', 3: '' });
    on.files.set('memory/2026-11-22.md', 'x').set('memory/2026-11-21.md', ' \n').set('archive/a.md', 'y');
    expect(await on.run('/memory export')).toEqual({
      text: 'Here are 3 files.',
      files: [
        { path: '/groups/test_1/default/MEMORY.md', name: 'default-MEMORY.md' },
        { path: '/groups/test_1/memory/2026-11-22.md', name: 'memory-2026-11-22.md' },
        { path: '/groups/test_1/archive/a.md', name: 'archive-a.md' },
      ],
    });
  });

  it('sends at most 30 and says how many stay; none is a sentence', async () => {
    const on = standIn();
    expect((await on.run('/memory export')).text).toBe(
      'There are no files to send yet: I remember nothing here.',
    );
    for (let n = 0; n < 33; n++) on.files.set(`archive/${n}.md`, 'x');
    const { text, files } = await on.run('/memory export');
    expect(text).toBe('Here are 30 files. 3 older files stay in the folder `groups/test_1/`.');
    expect(files).toHaveLength(30);
  });
});

describe('/archive', () => {
  it('says where the copy is and how long, or that there is nothing to copy', async () => {
    const on = standIn();
    expect((await on.run('/archive')).text).toBe('There is no conversation here to archive yet.');
    on.now.copied = { file: 'x.md', messages: 1 };
    expect((await on.run('/archive')).text).toBe(
      'Copied 1 message to `groups/test_1/archive/x.md`. The conversation goes on.',
    );
    on.now.copied = { file: 'x.md', messages: 1, isOld: true };
    expect((await on.run('/archive')).text).toBe(
      'Nothing was said since the last copy, `groups/test_1/archive/x.md`.',
    );
    on.now.copied = 'too many';
    expect((await on.run('/archive')).text).toMatch(/too often within the last hour/);
  });
});

describe('/reset and /persona delete', () => {
  const archived = (file: string, threadId: string | null, reset = false) => ({
    ...{ file, threadId, reset, personaId: 'default', flushed: true },
  });

  it('ends a flush first and marks the archives of that thread', async () => {
    const on = standIn();
    on.archives.push(archived('a.md', null), archived('b.md', '7'), archived('c.md', null, true));
    expect(await on.run('/reset')).toEqual({
      text: cleared,
      effects: [{ kind: 'reset', room: CHAT, personaId: 'default', upTo: 5 }],
    });
    expect(on.done).toEqual([`halt ${CHAT} default`, 'mark a.md reset']);
    on.done.length = 0;
    await on.run('/reset', { room: `${CHAT}/7` });
    expect(on.done).toEqual([`halt ${CHAT}/7 default`, 'mark b.md reset']);
  });

  it('resets all the same where a file cannot be marked, and tells the operator which', async () => {
    const on = standIn();
    on.archives.push(archived('a.md', null));
    on.now.markFails = true;
    expect((await on.run('/reset')).text).toBe(cleared);
    expect(on.logged).toMatchObject([{ fields: { path: 'groups/test_1/archive/a.md' } }]);
  });

  it('a persona’s windows are archived before its file goes; where they cannot be, it stays', async () => {
    const on = standIn();
    expect((await on.run('/persona delete luna')).text).toMatch(/^Deleted persona luna/);
    expect(on.done).toEqual(['close luna', 'remove luna']);
    on.done.length = 0;
    expect((await on.run('/persona delete default')).text).toBe('no default');
    expect((await on.run('/persona delete nobody')).text).toBe('no nobody');
    on.now.closeFails = true;
    await expect(on.run('/persona delete luna')).rejects.toThrow('no space');
    expect(on.done).toEqual([]);
  });
});
