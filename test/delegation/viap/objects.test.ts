/** JSON objects in what a model wrote: found wherever they stand, in time that grows with the text alone. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { objectsIn, typedIn } from '../../../src/delegation/viap/objects.js';

const values = (text: string) => objectsIn(text).map(({ value }) => value);
const anObject = fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 4 }), { minKeys: 1 });
/** Nothing in it can be an object of its own, or join with one. */
const prose = fc.string().map((text) => text.replaceAll(/[{}[\]":,]/g, ' '));

describe('objects in a text', () => {
  it('are found between any words, as they were written', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(prose, anObject)), prose, fc.boolean(), (parts, end, isPretty) => {
        const text =
          parts.map(([words, object]) => words + JSON.stringify(object, null, isPretty ? 2 : 0)).join('') +
          end;
        expect(values(text)).toEqual(parts.map(([, object]) => JSON.parse(JSON.stringify(object))));
        for (const { from, to, value } of objectsIn(text)) {
          expect(JSON.parse(text.slice(from, to))).toEqual(value);
        }
      }),
    );
  });

  it('are found behind what was begun and not ended, and behind stray signs', () => {
    const object = { type: 'x', text: 'a { b } "c" \\ ```' };
    const written = JSON.stringify(object);
    for (const before of [
      '{',
      '{{{ ',
      '{"',
      '{"a": ',
      '{"a": [1, {"b": ',
      '} ] ',
      '"',
      "it's {curly} ",
      '{"a": "b',
      '[{"c": {',
    ]) {
      expect(typedIn(`${before}\n${written} }`, 'x').map(({ value }) => value)).toEqual([object]);
    }
  });

  it('are none where they stand in a text of another, though that is within one that breaks off', () => {
    const inner = { type: 'x', text: '{} and {"type":"x"}' };
    expect(values(`{"a": ${JSON.stringify(inner)}, oops`)).toEqual([inner]);
  });

  it('never fail, whatever stands there', () => {
    const pieces = fc.constantFrom(
      '{',
      '}',
      '[',
      ']',
      '"',
      '\\',
      ':',
      ',',
      '1',
      'a',
      ' ',
      '\n',
      '{"a":',
      '"a"',
    );
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 60 }), (signs) => {
        for (const { value, from, to } of objectsIn(signs.join(''))) {
          expect(JSON.parse(signs.join('').slice(from, to))).toEqual(value);
        }
      }),
      { numRuns: 2_000 },
    );
  });

  it('that hold one of a type are looked into, however deep only within reason', () => {
    const inner = { type: 'x', n: 1 };
    expect(typedIn(JSON.stringify({ report: [inner] }), 'x').map(({ value }) => value)).toEqual([inner]);
    const deep = `${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}`;
    expect(typedIn(deep, 'x')).toEqual([]);
  });

  // Megabytes take less than a second; what is not linear would take minutes.
  it.each([
    ['opening braces', '{'],
    ['closing braces', '}'],
    ['objects that never end', '{"a":'],
    ['lists that never end', '{"a":['],
    ['quotes in braces', '{"'],
    ['quotes and signs that escape', '{"\\"'],
    ['signs that escape', '\\'],
    ['braces in strings', '{"a":"{", '],
    ['empty objects', '{}'],
    ['objects in a list', '{"a":[{},{},'],
    ['braces with spaces', '{ \n'],
    ['both ways to read it', '{"{":{"{": '],
  ])('two megabytes of %s are read in time', (_, piece) => {
    const text = piece.repeat(Math.floor(2_000_000 / piece.length));
    const started = performance.now();
    objectsIn(text);
    expect(performance.now() - started).toBeLessThan(20_000);
  });
});
