import { expect, it } from 'vitest';
import { type Sample, whatGrows } from './flat.js';

/** Ten samples of a gateway that only keeps what is said. */
function samples(changed: (sample: Sample, n: number) => void = () => {}): Sample[] {
  return Array.from({ length: 10 }, (_, n) => {
    const sample: Sample = {
      ...{ messages: n * 1_000, memoryMb: [150 + (n % 3) * 30, 100], handles: [40 + (n % 2), 38] },
      rows: { message: n * 2_000, room: 30, node: 2 },
      kilobytes: { database: 8_000 + n * 900, 'working.log': 90 },
    };
    changed(sample, n);
    return sample;
  });
}

it('takes what keeps the conversation, and memory that comes and goes', () => {
  expect(whatGrows(samples())).toEqual([]);
});

it('finds memory, handles, rows and files that grow, each by its own bound', () => {
  const set =
    (what: 'rows' | 'kilobytes', name: string, value: (n: number) => number) =>
    (sample: Sample, n: number) => {
      sample[what][name] = value(n);
    };
  const setSecond =
    (what: 'memoryMb' | 'handles', value: (n: number) => number) => (sample: Sample, n: number) => {
      sample[what][1] = value(n);
    };
  const wrong: [string, (sample: Sample, n: number) => void][] = [
    ['memory of gateway 2: 180 MB, then 240', setSecond('memoryMb', (n) => 100 + n * 20)],
    ['open files of gateway 2', setSecond('handles', (n) => 40 + n * 4)],
    ['rows of room', set('rows', 'room', (n) => n * 100)],
    ['rows of message', set('rows', 'message', (n) => n * n * 500)],
    ['kilobytes of working.log', set('kilobytes', 'working.log', (n) => n * 200)],
    ['kilobytes of database', set('kilobytes', 'database', (n) => n * n * 900)],
  ];
  for (const [words, change] of wrong) {
    const [found = '', ...others] = whatGrows(samples(change));
    expect(others, words).toEqual([]);
    expect(found, words).toContain(words);
  }
});

it('says so where there are too few samples to tell', () => {
  expect(whatGrows(samples().slice(0, 8))).toEqual(['there are too few samples']);
});
