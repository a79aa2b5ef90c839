/** Plans in steps as Markdown. */
import { expect, it } from 'vitest';
import { planText } from '../../src/core/task.js';

const step = (status: string, title = 'Look', id = 's1') =>
  planText({ goal: 'g', steps: [{ id, title, status }] });

it('a plan that is text stays as it is', () => {
  expect(planText('- [ ] as it is')).toBe('- [ ] as it is');
});

it.each([
  ['pending', '- [ ] Look <!-- s1 -->'],
  ['completed', '- [x] Look <!-- s1 -->'],
  ['blocked', '- [ ] Look (blocked) <!-- s1 -->'],
])('a step that is %s', (status, line) => {
  expect(step(status)).toBe(`# g\n\n${line}\n`);
});

it('what stands in a step makes no further lines, and ends no comment', () => {
  expect(step('pending', 'a\n- [x] b')).toBe('# g\n\n- [ ] a - [x] b <!-- s1 -->\n');
  expect(step('pending', 'a', 'x --> y\n<!-- z')).toMatch(/^# g\n\n- \[ \] a <!-- [^<>\n]* -->\n$/);
  expect(planText({ goal: 'one\ntwo', steps: [] })).toBe('# one two\n\n');
});
