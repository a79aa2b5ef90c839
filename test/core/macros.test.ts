import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createZone } from '../../src/core/dates.js';
import { expand, expandAll, type MacroValues, seededRandom } from '../../src/core/macros.js';

const VALUES: MacroValues = {
  char: 'Luna',
  user: 'Ann',
  random: () => 0,
  now: Date.parse('2026-11-27T14:05:00Z'),
  zone: createZone('UTC'),
  idleMs: 3 * 3_600_000 + 1,
  key: 'here',
};
const with_ = (text: string, other: Partial<MacroValues> = {}) => expand(text, { ...VALUES, ...other });

describe('a macro', () => {
  it.each([
    ['{{char}} and {{user}}, <BOT>, <USER>, <char>, <user>', 'Luna and Ann, Luna, Ann, Luna, Ann'],
    ['{{CHAR}} {{User}} <Bot> <uSeR>', 'Luna Ann Luna Ann'],
    ['<user_message> </user> < user> <username>', '<user_message> </user> < user> <username>'],
    ['{{{char}}} {{{{user}}}}', '{Luna} {{Ann}}'],
    ['[{{original}}]', '[]'],
    ['{{// a: note {{user}}}}{{comment:x}}{{comment: a}} b', ' b'],
    ['a{{hidden_key:moon}}b', 'ab'],
    ['{{reverse:abc}} {{reverse:{{user}}}} {{reverse:a\\,b👋}}', 'cba nnA 👋b,a'],
    ['a{{newline}}b', 'a\nb'],
    ['a\n\n{{trim}}\r\n\nb {{trim}} c', 'ab  c'],
    ['{{time}} {{date}} {{weekday}}', '14:05 2026-11-27 Friday'],
    ['{{idle_duration}}', '3 hours'],
    ['{{random:A,B}} {{RANDOM::A::B}} {{random: A , B }} {{random::A,B}}', 'A A A A'],
    ['{{random:a\\, b,c}} {{random::a, b::c}}', 'a, b a, b'],
    ['{{random:{{user}},x}} {{random:<user>,x}}', 'Ann Ann'],
    ['{{roll:d6}} {{roll:6}} {{roll:2d6}} {{roll 2d6+1}} {{roll:D6}}', '1 1 2 3 1'],
    ['{{roll:0}} {{roll:x}} {{roll:1000d6}} {{roll}}', '{{roll:0}} {{roll:x}} {{roll:1000d6}} {{roll}}'],
  ])('%s reads %s', (text, expected) => {
    expect(with_(text)).toBe(expected);
  });

  it.each([
    '{{getvar::x}} {{lastMessage}} {{constructor}} {{__proto__}} {{}} {{random}}',
    'never {{closed',
    'never opened }} here',
    '{{user {{nothing}} }}',
  ])('that is unknown stays: %s', (text) => {
    expect(with_(text)).toBe(text);
  });

  it('expands what stands in an unknown one', () => {
    expect(with_('{{getvar::{{user}}}} {{ {{char}}')).toBe('{{getvar::Ann}} {{ Luna');
  });

  it('draws the last choice with the highest number', () => {
    const random = () => 0.999_999;
    expect(with_('{{random:A,B}} {{random::A::B::C}} {{roll:d6}}', { random })).toBe('B C 6');
  });

  it('reads neither macros nor commas in a value', () => {
    const user = 'Smith, {{char}} <user> ::';
    expect(with_('{{user}}|{{random:{{user}},x}}|{{random::<user>::x}}', { user })).toBe(
      `${user}|${user}|${user}`,
    );
    const last = () => 0.99;
    expect(with_('{{random:{{user}},{{char}}}}', { user, random: last })).toBe('Luna');
  });

  it('picks the same for the same key, and others for others', () => {
    const text = '{{pick:A,B,C,D,E,F,G,H}} {{pick::1::2::3::4}}';
    const random = () => expect.unreachable('drawn');
    expect(with_(text, { random })).toBe(with_(text, { random }));
    const keys = Array.from({ length: 40 }, (_, n) => with_(text, { key: `chat ${n}` }));
    expect(new Set(keys).size).toBeGreaterThan(10);
  });

  it('tells hidden keys, for a scan', () => {
    expect(expandAll('a {{hidden_key:moon, {{user}}}} b', VALUES)).toEqual({
      text: 'a  b',
      hidden: ['moon, Ann'],
    });
  });

  it('tells how long nobody has written', () => {
    const idle = (idleMs: number | null) => with_('{{idle_duration}}', { idleMs });
    expect([idle(null), idle(5_000), idle(60_000), idle(5 * 86_400_000)]).toEqual([
      'just now',
      'just now',
      '1 minute',
      '5 days',
    ]);
  });

  it('goes on after ten that were never closed', () => {
    expect(with_(`${'{{ '.repeat(30)}{{user}}`)).toBe(`${'{{ '.repeat(30)}Ann`);
  });

  it.each([
    '{{',
    '}}',
    '{{{{ }}',
    '{{random:',
    '{{user}}',
    '{{trim}}\n',
    '\n{{trim}}',
    '{{reverse:a}}',
    '{{x {{x}} }}',
  ])('takes a text of 200,000 characters made of %s', (unit) => {
    const text = `${'a'.repeat(20_000)}${unit.repeat(180_000 / unit.length)}`;
    const began = performance.now();
    with_(text);
    expect(performance.now() - began).toBeLessThan(1_000);
  });

  it('leaves text without macros as it is, and stays within what it was given', () => {
    const parts = ['{{', '}}', 'random', ':', '::', ',', 'user', '<user>', 'x', '\\', '\n', 'trim', '{'];
    const text = fc.array(fc.constantFrom(...parts), { maxLength: 40 }).map((all) => all.join(''));
    fc.assert(
      fc.property(text, (given) => {
        const once = with_(given, { user: '☺', char: '☻' });
        if (!/\{\{|<user>/.test(given)) expect(once).toBe(given);
        expect(once.length).toBeLessThanOrEqual(given.length);
        // All characters of the result are of the text, or a value.
        for (const sign of once.replaceAll(/[☺☻]/g, '')) expect(given).toContain(sign);
      }),
    );
  });

  it('never reads a value again', () => {
    fc.assert(
      fc.property(fc.string(), (user) => {
        expect(with_('<{{user}}>', { user })).toBe(`<${user}>`);
        expect(with_('{{getvar::{{user}}}}', { user })).toBe(`{{getvar::${user}}}`);
      }),
    );
  });
});

it('random numbers of a seed are the same each time, and between 0 and 1', () => {
  const [one, two, other] = [seededRandom('a'), seededRandom('a'), seededRandom('b')];
  const numbers = Array.from({ length: 100 }, one);
  expect(Array.from({ length: 100 }, two)).toEqual(numbers);
  expect(Array.from({ length: 100 }, other)).not.toEqual(numbers);
  expect(numbers.every((n) => n >= 0 && n < 1)).toBe(true);
  expect(new Set(numbers).size).toBe(100);
});
