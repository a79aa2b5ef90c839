import { describe, expect, it } from 'vitest';
import { LORE_LIMITS, readLorebook } from '../../src/core/lorebook.js';

const read = (value: unknown) => readLorebook(value, 'file')?.book;
const entry = (fields: object) => read({ entries: [fields] })?.entries[0];

describe('a lorebook', () => {
  it('is read in the form of the specification', () => {
    const fields = {
      ...{ keys: ['moon', 7], secondary_keys: ['night'], selective: true, content: 'Shines.\r\nSlowly.' },
      ...{
        insertion_order: '20',
        priority: 3,
        case_sensitive: true,
        use_regex: false,
        position: 'before_char',
      },
      extensions: { selectiveLogic: 3, probability: 40, match_whole_words: true, exclude_recursion: true },
    };
    const data = {
      name: 'Sky',
      scan_depth: 4,
      token_budget: '300',
      recursive_scanning: true,
      entries: [fields],
    };
    const book = read({ spec: 'lorebook_v3', data });
    expect(book).toMatchObject({ name: 'Sky', scanDepth: 4, tokenBudget: 300, recursive: true });
    expect(book?.entries[0]).toMatchObject({
      ...{ keys: ['moon', '7'], secondaryKeys: ['night'], logic: 'all', content: 'Shines.\nSlowly.' },
      ...{
        order: 20,
        priority: 3,
        caseSensitive: true,
        wholeWords: true,
        probability: 40,
        position: 'before',
      },
      ...{ constant: false, enabled: true, excludeRecursion: true, preventRecursion: false },
    });
    expect(read(data)).toEqual(book);
  });

  it('is read in the form of SillyTavern, where it is recursive', () => {
    const fields = {
      ...{ uid: 0, key: ['moon'], keysecondary: ['sun'], comment: 'Moon', content: 'x', selective: true },
      ...{ selectiveLogic: 2, order: 5, position: 4, depth: 3, disable: true, scanDepth: 6, probability: 10 },
      ...{ useProbability: false, caseSensitive: null, matchWholeWords: null, preventRecursion: true },
    };
    const book = read({ entries: { '0': fields } });
    expect(book).toMatchObject({ name: 'file', scanDepth: null, tokenBudget: null, recursive: true });
    expect(book?.entries[0]).toMatchObject({
      ...{ name: 'Moon', keys: ['moon'], secondaryKeys: ['sun'], logic: 'not any', order: 5, enabled: false },
      ...{ position: 'depth', depth: 3, scanDepth: 6, probability: 100, preventRecursion: true },
    });
  });

  it.each([null, 7, 'x', [], {}, { entries: null }, { entries: 'x' }, { spec: 'lorebook_v3' }])(
    'is not found in %j',
    (value) => expect(read(value)).toBeUndefined(),
  );

  it('is read where much is missing or of another kind', () => {
    const book = read({
      name: null,
      entries: [null, 'x', [], {}, { keys: 'a, b', content: null, extensions: null }],
    });
    expect(book?.entries).toHaveLength(2);
    expect(book?.entries[1]).toMatchObject({ keys: ['a', 'b'], content: '', position: 'after', order: 100 });
  });

  it.each([
    ['before_char', undefined, 'before'],
    ['after_char', 0, 'before'],
    ['after_char', 4, 'depth'],
    ['before_char', 1, 'after'],
    ['somewhere', undefined, 'after'],
    [undefined, 7, 'after'],
  ])('has its entries where the extensions say: %s, %s', (position, inside, expected) => {
    expect(entry({ position, extensions: { position: inside } })?.position).toBe(expected);
  });

  it('has its decorators cut out, with substitutes for unknown ones', () => {
    const content = [
      '@@depth 2',
      '@@unknown 7',
      '@@@scan_depth 9',
      '@@activate_only_after 3',
      '@@@scan_depth 1',
      '@@additional_keys a, b',
      '@@exclude_keys c',
      '@@is_greeting 2',
      '@@constructor x',
      'Text.',
      '@@activate',
    ];
    expect(entry({ content: content.join('\r\n') })).toMatchObject({
      ...{ content: 'Text.\n@@activate', position: 'depth', depth: 2, scanDepth: 9 },
      decorators: {
        ...{ activate: false, onlyAfter: 3, additionalKeys: ['a', 'b'], excludeKeys: ['c'], greeting: 2 },
      },
    });
    expect(
      entry({ content: '@@activate\n@@position before_desc\n@@dont_activate_after_match' }),
    ).toMatchObject({
      ...{ content: '', position: 'before', decorators: { activate: true, dontAfterMatch: true } },
    });
  });

  it('is cut at its limits, and says at which', () => {
    const { entries, keys, keyChars, contentChars } = LORE_LIMITS;
    const many = Array.from({ length: entries + 1 }, () => ({ keys: ['x'], content: 'y' }));
    many[0] = { keys: [...Array(keys + 5).keys()].map(String), content: 'z'.repeat(contentChars + 1) };
    many[1] = { keys: ['x'.repeat(keyChars + 1), 'short'], content: '' };
    const { book, leftOut, over } = readLorebook({ entries: many }, 'file') ?? {};
    expect(book?.entries).toHaveLength(entries);
    expect(book?.entries[0]?.keys).toHaveLength(keys);
    expect(book?.entries[0]?.content).toContain('<<truncated due to lore-entry-max-chars=200000>>');
    expect(book?.entries[1]?.keys).toEqual(['short']);
    expect(leftOut).toEqual(['the end of long lore entries']);
    expect(over).toHaveLength(3);
  });

  it('says what it cannot do', () => {
    const { leftOut } = readLorebook({ entries: [{ extensions: { sticky: 2 }, group: 'g' }, {}] }, '') ?? {};
    expect(leftOut).toEqual(['timed lore', 'groups of lore entries']);
  });
});
