import { describe, expect, it } from 'vitest';
import { withinBudget } from '../../../src/conversation/lore/budget.js';
import { constantsIn, createScanner, withoutCode } from '../../../src/conversation/lore/scan.js';
import { AT_ONCE, bookOf, joined, scanned, VALUES } from './books.js';

const one = (fields: object) => bookOf([{ keys: ['moon'], content: 'M', ...fields }]);

describe('an entry joins', () => {
  it('by one of its keys in the last messages', async () => {
    const book = one({ keys: ['sun', 'Moon'] });
    expect(await joined([book], ['the MOON is up'])).toEqual(['M']);
    expect(await joined([book], ['moon', 'and', 'then'])).toEqual([]);
    expect(await joined([book], ['moon', 'then'])).toEqual(['M']);
    expect(await joined([book], ['moon', 'a', 'b', 'c'], { scanDepth: 4 })).toEqual(['M']);
    expect(await joined([book], ['moon'], { scanDepth: 0 })).toEqual([]);
  });

  it('as deep as its book, or itself, says', async () => {
    const messages = ['moon', 'a', 'b', 'c'];
    const keys = ['moon'];
    const entries = [
      { keys, content: 'M' },
      { keys, content: 'N', extensions: { scan_depth: 1 } },
    ];
    expect(await joined([bookOf(entries, { scan_depth: 4 })], messages)).toEqual(['M']);
    const own = { keys, content: 'O', scanDepth: 4 };
    expect(await joined([bookOf([...entries, own])], messages)).toEqual(['O']);
  });

  it('by the name before a message', async () => {
    expect(await joined([one({ keys: ['ann: hello'] })], ['hello'])).toEqual(['M']);
  });

  it.each([
    ['cat', 'concatenate', true, false],
    ['cat', 'concatenate', false, true],
    ['cat', 'a cat.', true, true],
    ['cat', '"cat"', true, true],
    ['кот', 'скоты', true, false],
    ['кот', 'мой кот', true, true],
    ['sœur', 'ma sœur!', true, true],
    ['龙', '巨龙来了', true, true],
    ['แมว', 'ฉันเห็นแมวดำ', true, true],
    ['C++', 'I like C++ much', true, true],
    ['old oak', 'the old oak stands', true, true],
    ['old oak', 'the bold oak stands', true, false],
    ['𝒳', 'a𝒳', true, false],
    ['e\u0301t\u00e9', 'l’\u00e9te\u0301', false, true],
    ['ÉTÉ', 'été', false, true],
  ])('%s in %s, whole words: %s → %s', async (key, text, isWhole, expected) => {
    const book = one({ keys: [key], extensions: { match_whole_words: isWhole } });
    expect(await joined([book], [text])).toEqual(expected ? ['M'] : []);
  });

  it('in its own case where it says so', async () => {
    const book = one({ keys: ['Rose'], case_sensitive: true });
    expect(await joined([book], ['a rose'])).toEqual([]);
    expect(await joined([book], ['Rose came'])).toEqual(['M']);
  });

  it('by keys with macros', async () => {
    const book = one({ keys: ['{{char}} and <user>'] });
    expect(await joined([book], ['luna and ann'])).toEqual(['M']);
    expect(await joined([book], ['luna and bob'])).toEqual([]);
  });

  it.each([
    [0, 'moon', []],
    [0, 'moon a', ['M']],
    [1, 'moon a', ['M']],
    [1, 'moon a b', []],
    [2, 'moon', ['M']],
    [2, 'moon b', []],
    [3, 'moon a', []],
    [3, 'moon b a', ['M']],
    [0, 'a b', []],
  ])('with secondary keys a and b and logic %i: %s', async (selectiveLogic, text, expected) => {
    const secondary = { secondary_keys: [' a', ' b'].map((key) => key.trim()), selective: true };
    const whole = { match_whole_words: true, selectiveLogic };
    const book = one({ ...secondary, extensions: whole });
    expect(await joined([book], [text.replace('moon', 'moon x')])).toEqual(expected);
    expect(await joined([one({ ...secondary, selective: false, extensions: whole })], [text])).toEqual(
      text.includes('moon') ? ['M'] : [],
    );
  });

  it('with patterns, of entries and between slashes', async () => {
    expect(await joined([one({ keys: ['/mo{2}n\\b/i'] })], ['Moon!'])).toEqual(['M']);
    expect(await joined([one({ keys: ['/moon/'] })], ['Moon'])).toEqual([]);
    expect(await joined([one({ keys: ['^ann: mo+n'], use_regex: true })], ['Moon'])).toEqual(['M']);
    expect(await joined([one({ keys: ['/\\x01Ann: moon/'] })], ['moon'])).toEqual(['M']);
    expect(await joined([one({ keys: ['a/b/c'] })], ['see a/b/c'])).toEqual(['M']);
    expect(await joined([one({ keys: ['/usr/bin/'] })], ['in /usr/bin/'])).toEqual(['M']);
  });

  it('when drawn, and once', async () => {
    const book = one({ keys: ['moon', 'sun'], extensions: { probability: 50 } });
    expect(await joined([book], ['moon sun moon'], { chance: 0.4 })).toEqual(['M']);
    expect(await joined([book], ['moon'], { chance: 0.6 })).toEqual([]);
  });

  it('never when it is off, dead or empty of keys', async () => {
    const off = [{ enabled: false }, { disable: true }, { content: '@@dont_activate\nM' }, { keys: [] }];
    for (const fields of off) expect(await joined([one(fields)], ['moon'])).toEqual([]);
  });

  it('as its decorators say', async () => {
    const with_ = (line: string) => one({ content: `${line}\nM` });
    expect(await joined([with_('@@activate_only_after 3')], ['moon'], { answers: 2 })).toEqual([]);
    expect(await joined([with_('@@activate_only_after 3')], ['moon'], { answers: 3 })).toEqual(['M']);
    expect(await joined([with_('@@activate_only_every 2')], ['moon'], { answers: 3 })).toEqual([]);
    expect(await joined([with_('@@activate_only_every 2')], ['moon'], { answers: 4 })).toEqual(['M']);
    expect(await joined([with_('@@additional_keys star')], ['moon'])).toEqual([]);
    expect(await joined([with_('@@additional_keys star')], ['moon, star'])).toEqual(['M']);
    expect(await joined([with_('@@exclude_keys star')], ['moon, star'])).toEqual([]);
    expect(await joined([with_('@@is_greeting 2')], ['moon'], { greeting: 1 })).toEqual([]);
    expect(await joined([with_('@@is_greeting 2')], ['moon'], { greeting: 2 })).toEqual(['M']);
    const old = ['moon', 'a', 'b', 'c'];
    expect(await joined([with_('@@keep_activate_after_match')], old)).toEqual(['M']);
    expect(await joined([with_('@@dont_activate_after_match')], [...old, 'moon'], { fresh: 2 })).toEqual([]);
    expect(await joined([with_('@@dont_activate_after_match')], ['a', 'moon'], { fresh: 2 })).toEqual(['M']);
  });
});

describe('other entries', () => {
  const chain = (more: object = {}, of: object[] = []) =>
    bookOf(
      [
        { keys: ['moon'], content: 'The tide.', comment: 'Moon' },
        { keys: ['tide'], content: 'The harbour.' },
        { keys: ['harbour'], content: 'The moon.' },
        ...of,
      ],
      { recursive_scanning: true, ...more },
    );

  it('are brought by the text of one, and told by which', async () => {
    const { matches } = await scanned([chain()], ['moon']);
    expect(matches.map(({ text, rank, key, from }) => [text, rank, key, from])).toEqual([
      ['The tide.', 'named', 'moon', undefined],
      ['The harbour.', 'brought', 'tide', 'Moon'],
      ['The moon.', 'brought', 'harbour', 'tide'],
    ]);
    expect(await joined([chain({ recursive_scanning: false })], ['moon'])).toEqual(['The tide.']);
  });

  it('are brought by constant ones and by hidden keys', async () => {
    const book = bookOf(
      [
        { constant: true, content: 'A {{hidden_key:secret}}' },
        { keys: ['secret'], content: 'S' },
      ],
      { recursive_scanning: true },
    );
    const constants = constantsIn(
      createScanner(AT_ONCE, () => 0),
      [book],
      VALUES,
    );
    expect(constants.map(({ text }) => text)).toEqual(['A']);
    expect(await joined([book], ['hello'], { constants })).toEqual(['S']);
  });

  it('are brought by patterns, ten rounds deep', async () => {
    const entries = Array.from({ length: 15 }, (_, n) => ({
      ...{ keys: [`/word${n}\\b/`], content: `word${n + 1} ` },
    }));
    const book = bookOf(entries, { recursive_scanning: true });
    expect(await joined([book], ['word0'])).toHaveLength(11);
  });

  it('stay out where an entry or its book does not allow it', async () => {
    const tide = { keys: ['tide'], content: 'T' };
    const none = chain({}, [{ ...tide, extensions: { exclude_recursion: true } }]);
    expect(await joined([none], ['moon'])).not.toContain('T');
    const silent = bookOf(
      [{ keys: ['moon'], content: 'tide', extensions: { prevent_recursion: true } }, tide],
      {
        recursive_scanning: true,
      },
    );
    expect(await joined([silent], ['moon'])).toEqual(['tide']);
    expect(await joined([chain(), bookOf([tide])], ['moon'])).not.toContain('T');
    expect(await joined([chain(), bookOf([tide], { recursive_scanning: true })], ['moon'])).toContain('T');
  });

  it('may come only that way', async () => {
    const late = { keys: ['tide'], content: 'L', extensions: { delay_until_recursion: true } };
    expect(await joined([bookOf([late], { recursive_scanning: true })], ['tide'])).toEqual([]);
    expect(await joined([chain({}, [late])], ['moon'])).toContain('L');
  });
});

describe('the budget', () => {
  const text = (sign: string) => sign.repeat(400);
  const budget = (tokens: number) => ({ tokens, used: new Map() });
  const names = (matches: { text: string }[]) => matches.map(({ text }) => text[0]).join('');

  it('keeps constant ones first, then those named, each by priority and order, in the order of the book', async () => {
    const book = bookOf(
      [
        { constant: true, content: text('a'), insertion_order: 9 },
        { keys: ['x'], content: text('b'), insertion_order: 1 },
        { keys: ['x'], content: `y${text('c')}`, insertion_order: 3 },
        { keys: ['x'], content: text('d'), insertion_order: 2, priority: 5 },
        { keys: ['yc'], content: text('e'), insertion_order: 100 },
      ],
      { recursive_scanning: true },
    );
    const constants = constantsIn(
      createScanner(AT_ONCE, () => 0),
      [book],
      VALUES,
    );
    const { matches } = await scanned([book], ['x'], { constants });
    const all = [...constants, ...matches];
    expect(names(withinBudget(all, budget(1_000)).kept)).toBe('bdyae');
    expect(names(withinBudget(all, budget(320)).kept)).toBe('dya');
    expect(names(withinBudget(all, budget(320)).left)).toBe('be');
    expect(names(withinBudget(all, budget(210)).kept)).toBe('da');
    expect(withinBudget(all, budget(90)).kept).toEqual([]);
  });

  it('is also that of the book', async () => {
    const entries = [
      { keys: ['x'], content: text('a') },
      { keys: ['x'], content: text('b') },
    ];
    const { matches } = await scanned([bookOf(entries, { token_budget: 150 }), bookOf(entries)], ['x']);
    const { kept, left } = withinBudget(matches, budget(1_000));
    expect([names(kept), names(left)]).toEqual(['aab', 'b']);
  });

  it('counts text with its macros applied', async () => {
    const book = bookOf([{ keys: ['x'], content: '{{user}}' }]);
    const values = { ...VALUES, user: 'u'.repeat(400) };
    const { matches } = await scanned([book], ['x'], { values });
    expect(withinBudget(matches, budget(50)).left).toHaveLength(1);
  });

  it('orders by place: before, behind, at a depth', async () => {
    const at = (content: string, extensions: object) => ({ keys: ['x'], content, extensions });
    const book = bookOf([
      at('d', { position: 4, depth: 1 }),
      at('c', { position: 4, depth: 9 }),
      at('b', { position: 1 }),
      at('a', { position: 0 }),
    ]);
    const { matches } = await scanned([book], ['x']);
    expect(names(withinBudget(matches, budget(1_000)).kept)).toBe('abcd');
  });
});

it('a program in the text of an entry is cut out', () => {
  expect(withoutCode('a <%_ if (x) { %>b<% } %> c <% open')).toBe('a b c <% open');
  expect(withoutCode('plain')).toBe('plain');
});
