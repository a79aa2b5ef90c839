/** Who speaks after whom, as laws: whatever is said, everybody whom a person called speaks, and it ends. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  interruptRound,
  nextSpeaker,
  openRound,
  roundAfterReply,
} from '../../src/conversation/rooms/group-round.js';
import { type Called, calledTogether, turnedTo } from '../../src/conversation/rooms/names.js';
import type { GroupRound, StoredMessage } from '../../src/core/transcript.js';

const PERSONAS = ['luna', 'max', 'nova', 'ada'];
const ids = (personas: string[] = PERSONAS) => fc.uniqueArray(fc.constantFrom(...personas));
const everybody = () => true;
const author = { kind: 'person', id: 'test_ann', name: 'Ann', administrator: false };
const message = (id: number) => ({ id, author }) as StoredMessage;

/** Lets an exchange run; whoever speaks turns to whom the list says. */
function run(first: GroupRound, turns: string[][], caps: { rounds: number; replies: number }) {
  const replies: { speaker: string; batch: number[]; round: number }[] = [];
  let exchange: GroupRound | null = first;
  let id = 100;
  while (exchange !== null) {
    const floor = nextSpeaker(exchange, everybody);
    if (floor === null) break;
    replies.push({ speaker: floor.speaker, batch: floor.batch, round: floor.exchange.round });
    const to = (turns[replies.length - 1] ?? PERSONAS).filter((each) => each !== floor.speaker);
    const after: GroupRound | null = roundAfterReply(floor.exchange, to, caps);
    id += 1;
    exchange = after && { ...after, said: [...after.said, { id, by: floor.speaker }] };
  }
  return replies;
}

describe('an exchange', () => {
  const anything = fc.record({
    to: ids().filter((each) => each.length > 0),
    turns: fc.array(ids(), { maxLength: 40 }),
    rounds: fc.integer({ min: 1, max: 4 }),
    replies: fc.integer({ min: 4, max: 12 }),
  });

  it('ends within its caps, and everybody whom a person called has spoken, in order', () => {
    fc.assert(
      fc.property(anything, ({ to, turns, ...caps }) => {
        const replies = run(openRound(to, [message(1)], null), turns, caps);
        expect(replies.length).toBeLessThanOrEqual(caps.replies);
        expect(replies.slice(0, to.length).map(({ speaker }) => speaker)).toEqual(to);
        expect(Math.max(...replies.map(({ round }) => round))).toBeLessThanOrEqual(caps.rounds);
      }),
    );
  });

  it('lets nobody speak twice in a round, or to what it has answered', () => {
    fc.assert(
      fc.property(anything, ({ to, turns, ...caps }) => {
        const replies = run(openRound(to, [message(1)], null), turns, caps);
        const inRound = replies.map(({ speaker, round }) => `${round} ${speaker}`);
        expect(new Set(inRound).size).toBe(inRound.length);
        for (const speaker of PERSONAS) {
          const answered = replies.filter((reply) => reply.speaker === speaker).flatMap(({ batch }) => batch);
          expect(new Set(answered).size).toBe(answered.length);
        }
      }),
    );
  });

  it('keeps those whom a person has called when another word comes, and nobody else', () => {
    fc.assert(
      fc.property(ids(), ids(), fc.integer({ min: 1, max: 3 }), ids(), (due, next, round, to) => {
        const said = [{ id: 1, by: null }];
        const before = { said, due, next, round, replies: 1, party: due };
        const after = openRound(to, [message(2)], before);
        expect(after.due).toEqual([...new Set([...(round === 1 ? due : []), ...to])]);
        expect(after).toMatchObject({ next: [], round: 1, replies: 0 });
        expect(interruptRound(before)?.due ?? []).toEqual(round === 1 ? due : []);
      }),
    );
  });

  it('passes over whoever may not speak any more', () => {
    const exchange = openRound(['luna', 'max'], [message(1)], null);
    expect(nextSpeaker(exchange, (id) => id !== 'luna')?.speaker).toBe('max');
    expect(nextSpeaker(exchange, () => false)).toBeNull();
  });
});

describe('whom words turn to', () => {
  const called: Called[] = [
    { id: 'luna', names: ['luna', 'moon'] },
    { id: 'max', names: ['max'] },
    { id: '小月', names: ['小月'] },
    { id: 'default', names: ['default'] },
  ];

  it.each([
    ['@Max, what do you say?', ['max']],
    ['Max, what do you say?', ['max']],
    ['Max: no.', ['max']],
    ['I think so. Max, you too?', ['max']],
    ['What do you think, Moon?', ['luna']],
    ['**Luna**, hello', ['luna']],
    ['小月，你好', ['小月']],
    ['I agree with Luna and Max.', []],
    ['As Luna said, it is late.', []],
    ['The maximum, luna-like', []],
    ['default: none', ['default']],
    ['the default, as always', []],
  ])('a persona’s: %s', (text, expected) => {
    expect(turnedTo(text, called)).toEqual(expected);
  });

  it.each([
    ['@luna and max, hello', ['luna', 'max']],
    ['Max & @luna: hello', ['max', 'luna']],
    ['@luna tell max', ['luna']],
    ['@luna，小月 你好', ['luna', '小月']],
    ['luna and max', []],
  ])('a person’s, in one breath: %s', (text, expected) => {
    expect(calledTogether(text, called)).toEqual(expected);
  });

  it('is found soon in long texts', () => {
    const long = 'max and luna, '.repeat(20_000);
    const started = performance.now();
    turnedTo(long, called);
    calledTogether(`@max ${long}`, called);
    expect(performance.now() - started).toBeLessThan(2_000);
  });
});
