/** Single keys of a YAML text are set, and everything else of it stays: comments, order, spaces, other keys. */
import { describe, expect, it } from 'vitest';
import { parse, parseDocument, stringify } from 'yaml';
import { readYaml } from '../../src/operating/yaml.js';
import { editYaml, type KeyChange } from '../../src/operating/yaml-edit.js';
import { generator } from '../harness/random.js';

const SEED = Number(process.env.COTERIE_SEED ?? Date.now() % 1_000_000);

const set = (source: string, path: string, value: KeyChange['value']) =>
  editYaml(source, [{ path: path.split('.'), value }]);

describe('a key that is set', () => {
  it('is replaced in its line, beside its comment', () => {
    const source = '# mine\nmodel:   # the model\n    name: "old"   # why\n    api_key: ${KEY}\nother: 1\n';
    expect(set(source, 'model.name', 'new')).toBe(source.replace('"old"', 'new'));
  });

  it.each([
    ['an empty file', '', 'model:\n  name: x\n'],
    ['a file of comments', '# only this\n', '# only this\nmodel:\n  name: x\n'],
    ['a file without a last line end', 'a: 1', 'a: 1\nmodel:\n  name: x\n'],
    ['a section without keys', 'model:\nb: 2\n', 'model:\n  name: x\nb: 2\n'],
    [
      'a section without keys, with a comment',
      'model: # see docs\nb: 2\n',
      'model: # see docs\n  name: x\nb: 2\n',
    ],
    [
      'a section with other keys',
      'model:\n    a: 1 # one\n\nb: 2\n',
      'model:\n    a: 1 # one\n    name: x\n\nb: 2\n',
    ],
    ['a key without a value', 'model:\n  name:   # none\n', 'model:\n  name: x   # none\n'],
    ['lines of Windows', 'a: 1\r\nmodel:\r\n  b: 2\r\n', 'a: 1\r\nmodel:\r\n  b: 2\r\n  name: x\r\n'],
    [
      'a block of text before it',
      'model:\n  a: |\n    one\n    two\nb: 2\n',
      'model:\n  a: |\n    one\n    two\n  name: x\nb: 2\n',
    ],
    ['brackets', 'model: { a: 1 } # c\n', 'model: { a: 1, name: x } # c\n'],
    ['a section of another name', 'b: &b { a: 1 }\nmodel: *b\n', null],
  ])('comes into %s', (_, source, expected) => {
    if (expected === null) expect(() => set(source, 'model.name', 'x')).toThrow('by hand');
    else expect(set(source, 'model.name', 'x')).toBe(expected);
  });

  it.each([
    'plain',
    '123456:AAF-x_y',
    'true',
    '12',
    '0x10',
    'null',
    '~',
    '',
    ' a ',
    'a: b',
    '# no',
    '- a',
    "it's",
    '"q"',
    'http://127.0.0.1:11434/v1',
    '${NAME}',
    '$${x',
    '*a',
    '&a',
    '!a',
    '@a',
    '`',
    '%',
    'ä ö',
    'a\nb',
    '[x]',
    '{x}',
    'a:',
  ])('has the value %j afterwards, with `${` escaped', (value) => {
    const written = value.split('${').join('$${');
    expect(parse(set('model:\n  name: old # c\n', 'model.name', value)).model.name).toBe(written);
    expect(parse(set('a: 1\n', 'model.name', value)).model.name).toBe(written);
    expect(parse(set('model: {name: old}\n', 'model.name', value)).model.name).toBe(written);
  });

  it.each(['${NAME}', '${file:/etc/hostname}', '$${NAME}', '$$${NAME}', 'a${', '${${NAME}}', '$'])(
    'is read as %j, and neither the environment nor a file is',
    (value) => {
      for (const source of ['', 'model:\n  name: old\n', 'model: { name: old }\n']) {
        const { data, variables, secretFiles, faults } = readYaml(set(source, 'model.name', value), '/', {
          NAME: 'secret',
        });
        expect(data).toEqual({ model: { name: value } });
        expect([...variables, ...secretFiles, ...faults]).toEqual([]);
      }
    },
  );

  it('is removed with its line, and nothing else', () => {
    expect(set('model:\n  api_key: x # mine\n  name: y\n', 'model.api_key', null)).toBe(
      'model:\n  name: y\n',
    );
    expect(set('a: 1\n', 'model.api_key', null)).toBe('a: 1\n');
  });

  it('is not set in what is no YAML, or no section', () => {
    expect(() => set('a: [1\n', 'model.name', 'x')).toThrow('no valid YAML');
    expect(() => set('model: text\n', 'model.name', 'x')).toThrow('by hand');
    expect(() => set('model: [1]\n', 'model.name', 'x')).toThrow('by hand');
  });

  it(`leaves the rest of any document as it is (seed ${SEED})`, () => {
    const random = generator(SEED);
    for (let n = 0; n < 400; n++) {
      const source = documentOf(random);
      const path = pick(random, PATHS);
      const value = pick(random, ['x', 'http://a:1/v1', '${X}', 'a # b', true]);
      const edited = editYaml(source, [{ path, value }]);
      expect(commentsOf(edited), source).toEqual(commentsOf(source));
      const at = parseDocument(edited).getIn(path);
      expect(at, edited).toBe(typeof value === 'string' ? value.split('${').join('$${') : value);
      const strip = (text: string) => {
        const document = parseDocument(text);
        for (let length = path.length; length > 0; length--) {
          const part = path.slice(0, length);
          const inner = document.getIn(part);
          const isBare =
            inner === null ||
            typeof inner !== 'object' ||
            (inner as { items?: unknown[] }).items?.length === 0;
          if (document.hasIn(part) && (length === path.length || isBare)) document.deleteIn(part);
        }
        return Object.entries(document.toJS() ?? {});
      };
      expect(strip(edited), edited).toEqual(strip(source));
      const lost = source
        .split('\n')
        .filter((line) => !edited.split('\n').includes(line) && !/^ +(block|text)$/.test(line));
      expect(lost.length, `${source}\n---\n${edited}`).toBeLessThanOrEqual(1);
    }
  });
});

const PATHS = [
  ['model', 'name'],
  ['model', 'api_key'],
  ['channels', 'telegram', 'token'],
  ['channels', 'whatsapp', 'enabled'],
];

type Random = ReturnType<typeof generator>;

function pick<T>(random: Random, list: readonly T[]): T {
  return list[Math.floor(random() * list.length)] as T;
}

/** Sections in any order, with comments anywhere, empty lines, several indents and unknown keys. */
function documentOf(random: Random): string {
  const indent = pick(random, ['  ', '    ', ' ']);
  const noise = () => pick(random, ['', '', '', '\n', `# c${Math.floor(random() * 1e6)}\n`]);
  const tail = () => pick(random, ['', '', ` # t${Math.floor(random() * 1e6)}`]);
  const scalar = () =>
    pick(random, [
      '1',
      "'q: # r'",
      '"d"',
      'plain words',
      '${NAME}',
      '[a, b]',
      '{ k: v }',
      '|\n            block\n            text',
    ]);
  const key = (name: string, depth: number) =>
    `${noise()}${indent.repeat(depth)}${name}: ${withTail(scalar(), tail())}\n`;
  const some = (names: readonly string[], depth: number) =>
    names
      .filter(() => random() < 0.6)
      .map((name) => key(name, depth))
      .join('');
  const parts = [
    () => key('unknown', 0),
    () => `${noise()}model:${tail()}\n${some(['base_url', 'name', 'api_key', 'extra'], 1)}`,
    () => {
      const telegram = some(['api_root', 'token', 'mode'], 2);
      const whatsapp = some(['version', 'enabled'], 2);
      return `channels:${tail()}\n${indent}telegram:\n${telegram}${noise()}${indent}whatsapp:${tail()}\n${whatsapp}`;
    },
    () => `${noise()}list:\n${indent}- a${tail()}\n${indent}- b\n`,
  ];
  return (
    parts
      .filter(() => random() < 0.7)
      .sort(() => random() - 0.5)
      .map((part) => part())
      .join('') + noise()
  );
}

function withTail(value: string, tail: string): string {
  return value.startsWith('|') ? value : value + tail;
}

function commentsOf(text: string): string[] {
  return [...text.matchAll(/# [ct]\d+/g)].map(([comment]) => comment);
}

describe('a written document', () => {
  it('is read by the same rules as any other', () => {
    expect(parse(set(stringify({ a: [1, { b: 2 }] }), 'a2.b', 'c'))).toEqual({
      a: [1, { b: 2 }],
      a2: { b: 'c' },
    });
  });
});
