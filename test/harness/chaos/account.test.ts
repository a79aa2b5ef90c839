import { describe, expect, it } from 'vitest';
import { closeAccount, type Evidence, type FaultSpan, type GivenAnswer } from './account.js';
import { fallen } from './store-evidence.js';

const answer = (token: string, at: number, more: Partial<GivenAnswer> = {}): GivenAnswer => ({
  ...{ chat: 'c1', tokens: [token], at, cut: false, by: ['n1'] },
  ...more,
});
const kill: FaultSpan = { kind: 'kill', node: 'n1', from: 2_000, to: 2_010 };

/** Three messages, each answered once. */
function evidence(changed: Partial<Evidence> = {}): Evidence {
  return {
    said: ['c1m0', 'c1m1', 'c1m2'].map((token, n) => ({ chat: 'c1', token, at: n * 1_000 })),
    answers: [answer('c1m0', 100), answer('c1m1', 1_950), answer('c1m2', 2_500)],
    ...{ faults: [kill], fates: new Map(), effects: new Map([['c1m0', 1]]) },
    ...{ commands: { given: 1, answered: 1 }, model: { answered: 4, distinct: 3, counted: 3 } },
    left: {
      ...{ running: 0, open: 0, leasesHeld: ['jobs'], leases: ['jobs'] },
      ...{ living: ['n1', 'n2'], expected: ['n1', 'n2'] },
    },
    ...changed,
  };
}
const [first, second, third] = evidence().answers as [GivenAnswer, GivenAnswer, GivenAnswer];
const problemsOf = (changed: Partial<Evidence>) => closeAccount(evidence(changed)).problems;

describe('the account of a chaos run', () => {
  it('closes where each message is answered once, doubled by a fault, told or waiting', () => {
    const answers = [first, second, { ...second, at: 2_600 }];
    expect(closeAccount(evidence({ answers, fates: new Map([['c1m2', 'waiting']]) }))).toMatchObject({
      ...{ accepted: 3, once: 1, doubled: 1, waiting: 1, lost: 0, outOfOrder: 0, problems: [] },
      longestWaitMs: 950,
    });
    for (const fate of ['failed', 'stopped', 'forgotten'] as const) {
      const account = closeAccount(evidence({ answers: [first, second], fates: new Map([['c1m2', fate]]) }));
      expect(account).toMatchObject({ once: 2, told: { [fate]: 1 }, problems: [] });
    }
  });

  it('finds a message that is lost: in no answer and not in the store, or given up without a word', () => {
    expect(problemsOf({ answers: [first, second] })).toEqual(['lost: c1m2 in c1 (missing)']);
    const fates = new Map([['c1m2', 'untold' as const]]);
    expect(problemsOf({ answers: [first, second], fates })).toEqual(['lost: c1m2 in c1 (untold)']);
  });

  it('takes a second copy only of what its own sender sent within 80 ms of a fault, or what was cut', () => {
    const twice = (copy: Partial<GivenAnswer>) =>
      problemsOf({ answers: [first, { ...second, ...copy }, third, { ...second, at: 2_600 }] });
    expect(twice({})).toEqual([]);
    expect(twice({ at: 1_920 })).toEqual([]);
    expect(twice({ at: 2_090 })).toEqual([]);
    expect(twice({ by: [] })).toEqual([]);
    expect(twice({ by: ['n2'], cut: true })).toEqual([]);
    const unexplained = [expect.stringMatching(/^doubled without a fault: c1m1 in c1/)];
    expect(twice({ at: 1_919 })).toEqual(unexplained);
    expect(twice({ at: 2_091 })).toEqual(unexplained);
    expect(twice({ by: ['n2'] })).toEqual(unexplained);
    const answers = [first, second, third, { ...second, at: 2_600 }, { ...second, at: 2_700 }];
    expect(problemsOf({ answers }), 'a third copy, whose predecessor no fault cut off').toEqual(unexplained);
  });

  it('finds answers out of order, and such to what nobody said', () => {
    expect(problemsOf({ answers: [first, { ...third, at: 1_900 }, second] })).toEqual([
      'out of order: c1m1 in c1',
    ]);
    expect(problemsOf({ answers: [first, second, third, answer('c1m7', 3_000)] })).toEqual([
      'made up: c1m7 in c1',
    ]);
  });

  it('finds an effect that came twice, and commands without an answer', () => {
    expect(problemsOf({ effects: new Map([['c1m0', 2]]) })).toEqual([
      'effect: the tool for c1m0 was run 2 times',
    ]);
    expect(problemsOf({ commands: { given: 2, answered: 1 } })).toEqual([
      'commands: 2 were given and 1 answered',
    ]);
  });

  it('finds rows of usage that count too little or too much', () => {
    // One kill may have lost the row of one answer.
    expect(problemsOf({ model: { answered: 4, distinct: 3, counted: 2 } })).toEqual([]);
    expect(problemsOf({ model: { answered: 4, distinct: 3, counted: 1 } })).toHaveLength(1);
    expect(problemsOf({ faults: [], model: { answered: 4, distinct: 3, counted: 2 } })).toHaveLength(1);
    expect(problemsOf({ model: { answered: 4, distinct: 3, counted: 4 } })).toEqual([]);
    expect(problemsOf({ model: { answered: 4, distinct: 3, counted: 5 } })).toHaveLength(1);
  });

  it('finds what is left: a running turn, an entry of the outbox, a lease or a gateway too few', () => {
    const { left } = evidence();
    const wrong: [Partial<Evidence['left']>, string][] = [
      [{ running: 1 }, '1 turns still run'],
      [{ open: 2 }, '2 entries of the outbox are not settled'],
      [{ leasesHeld: [] }, 'leases held: , not jobs'],
      [{ living: ['n1'] }, 'gateways living: n1, not n1, n2'],
    ];
    for (const [changed, problem] of wrong)
      expect(problemsOf({ left: { ...left, ...changed } })).toEqual([problem]);
  });
});

describe('a mark of the store', () => {
  it('may rise, and falls only where a command has ended since the last look', () => {
    const before = new Map();
    const look = (mark: string, lowered: string) =>
      fallen('a place', [{ name: 'c1', mark, lowered }], before);
    expect(look('100', '1')).toEqual([]);
    expect(look('90', '2'), 'a command lowered it').toEqual([]);
    expect(look('1000', '2')).toEqual([]);
    expect(look('990', '2')).toEqual(['a place fell from 1000 to 990: c1']);
    expect(look('990', '2'), 'said once').toEqual([]);
    expect(fallen('a place', [{ name: 'c2', mark: '1', lowered: '0' }], before), 'another').toEqual([]);
  });
});
