import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  anything,
  decimal,
  flag,
  list,
  matching,
  naming,
  nested,
  oneOf,
  record,
  text,
  whole,
} from '../../src/channels/kit/payload.js';

const person = record({ id: whole }, { name: text, bot: flag, tags: list(text) });

describe('a record', () => {
  it('has its needed fields, and of the others those of the expected form', () => {
    expect(person({ id: 1, name: 'Ann', bot: 'no', tags: ['a', 2, null, 'b'], more: 1 })).toEqual({
      id: 1,
      name: 'Ann',
      tags: ['a', 'b'],
    });
  });

  it('is nothing without a needed field, or where it is no object', () => {
    for (const value of [
      { name: 'Ann' },
      { id: null },
      { id: 1.5 },
      { id: '1' },
      [],
      null,
      'x',
      7,
      undefined,
    ])
      expect(person(value)).toBeUndefined();
  });

  it('reads what a class gives its objects, as decoded protocol buffers have it', () => {
    class Decoded {
      get id() {
        return 3;
      }
    }
    expect(person(new Decoded())).toEqual({ id: 3 });
  });

  it('is read whatever a stranger sends, and holds nothing that is not in its form', () => {
    fc.assert(
      fc.property(fc.anything(), (value) => {
        const found = person(value);
        if (found !== undefined)
          expect(['id', 'name', 'bot', 'tags']).toEqual(expect.arrayContaining(Object.keys(found)));
      }),
    );
    expect(person(JSON.parse('{"id": 1, "__proto__": {"name": "Eve"}, "constructor": 2}'))).toEqual({
      id: 1,
    });
  });
});

it('numbers are whole, or at least finite', () => {
  expect([1, -2, 1.5, Number.NaN, 2 ** 60, '1'].map(whole)).toEqual([1, -2, ...Array(4).fill(undefined)]);
  expect([1.5, Number.POSITIVE_INFINITY, Number.NaN].map(decimal)).toEqual([1.5, undefined, undefined]);
});

it('words match a form, or are one of several', () => {
  expect(['12', 'a1', 12].map(matching(/^\d+$/))).toEqual(['12', undefined, undefined]);
  expect(['group', 'Group', null].map(oneOf('private', 'group'))).toEqual(['group', undefined, undefined]);
});

it('what is nested may have any form, and an unknown list anything', () => {
  expect([{}, [], null, 'x'].map(nested)).toEqual([{}, [], undefined, undefined]);
  expect(list(anything)([1, null, undefined])).toEqual([1, null]);
});

it('the names of the fields that hold something are told, whatever the payload says of them itself', () => {
  const message = naming(record({}, { text, holds: list(text) }));
  expect(message({ text: 'hi', holds: ['nothing'], gift: {}, poll: [], left: null })).toEqual({
    text: 'hi',
    holds: ['holds', 'gift', 'poll'],
  });
});
