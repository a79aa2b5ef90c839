/** The task of VIAP v3: what is required, what is taken as far as it can be used, and what is no task. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readViapTask } from '../../../src/delegation/viap/task.js';
import { LEAST_TASK, TASK_ID, TASK_TEXT, taskOf } from './fixtures.js';

const reasonOf = (given: unknown) => {
  const read = readViapTask(given);
  return read.ok ? null : read.reason;
};
const text = JSON.stringify(LEAST_TASK);

describe('a task', () => {
  it('is read as the seed writes it, whatever its risk says', () => {
    const read = readViapTask(TASK_TEXT);
    expect(read).toEqual({
      ok: true,
      task: {
        ...{ taskId: TASK_ID, title: 'One-line title', goal: 'Success criteria / acceptance definition' },
        cwd: '/Users/veso/Documents/evolver-1.10.0',
        env: { OPENCLAW_WORKSPACE: '/Users/veso/verso', MEMORY_DIR: '/Users/veso/verso/memory' },
        ...{ args: ['--review'], timeBudgetMin: 20 },
        raw: JSON.parse(TASK_TEXT),
      },
    });
    expect(readViapTask(JSON.parse(TASK_TEXT))).toEqual(read);
  });

  it.each([
    ['bare', text],
    ['in prose', `Please do this: ${text} Thank you {really}!`],
    ['in a fence', `Here:\n\`\`\`json\n${JSON.stringify(LEAST_TASK, null, 2)}\n\`\`\`\n`],
    ['in an object', `{"task": ${text}}`],
    ['behind a stray brace', `{"oops\n${text}`],
  ])('stands %s', (_, given) => {
    expect(readViapTask(given)).toMatchObject({ ok: true, task: { taskId: 't:1/2', raw: LEAST_TASK } });
  });

  it('needs six fields, and hears at once which are missing', () => {
    expect(reasonOf({ type: 'VIAP_V3_TASK' })).toBe(
      'This is no complete VIAP_V3_TASK: it needs viap_version "3", task_id (a text), title (a text), goal (a text), ' +
        'instructions (a list of texts, at least one).',
    );
    expect(reasonOf('{"viap_version":"3","task_id":"a","title":"b","goal":"c","instructions":["d"]}')).toBe(
      'This is no complete VIAP_V3_TASK: it needs type "VIAP_V3_TASK".',
    );
    for (const field of Object.keys(LEAST_TASK)) {
      for (const wrong of [undefined, null, '', ' ', 7, {}, [], ['']]) {
        expect(reasonOf({ ...LEAST_TASK, [field]: wrong })).toContain(`needs ${field}`);
      }
    }
    expect(reasonOf({ ...LEAST_TASK, instructions: ['a', { step: 'b' }] })).toContain('instructions');
    expect(reasonOf({ ...LEAST_TASK, viap_version: '2' })).toContain('viap_version "3"');
    expect(reasonOf({ ...LEAST_TASK, viap_version: 3 })).toBeNull();
  });

  it('is one: two, or a whole and a broken one, are refused', () => {
    expect(reasonOf(`${text}\n${text}`)).toContain('There are 2 tasks in it');
    expect(reasonOf(`[${text}, ${text}, ${text}]`)).toContain('There are 3 tasks in it');
    expect(reasonOf(`${text}\n${text.slice(0, -9)}`)).toContain('no valid JSON, or is cut off');
    expect(reasonOf(text.slice(0, -2))).toContain('no valid JSON, or is cut off');
  });

  it.each(['', 'done!', '{', '[]', 'null', '{"a":1} {"b":2}'])('is not in %j', (given) => {
    expect(reasonOf(given)).toBe(
      'There is no task in it: give exactly one VIAP_V3_TASK, as a JSON object or as a text that holds one.',
    );
  });

  it.each([[undefined], [null], [3], [[]], [true]])('is not %j', (given) => {
    expect(reasonOf(given)).toContain('There is no task in it');
  });

  it('is refused when it has a megabyte, as an object and as a text', () => {
    const large = { ...LEAST_TASK, goal: 'x'.repeat(1_000_000) };
    expect(reasonOf(large)).toContain('The task is too large: at most 200000 characters.');
    expect(reasonOf(JSON.stringify(large))).toContain('too large');
    let deep: unknown = 1;
    for (let n = 0; n < 90_000; n++) deep = [deep];
    expect(reasonOf({ ...LEAST_TASK, notes: deep })).toContain('too large');
  });

  it('has an id of any kind', () => {
    for (const task_id of ['a:b/c', '../../x', '2026-02-10T19:34:00-0800', '任务 1', 'a\nb']) {
      expect(taskOf({ task_id }).taskId).toBe(task_id);
    }
  });

  it('is never refused for what is only recommended', () => {
    const recommended = fc.record(
      {
        context: fc.anything(),
        inputs: fc.oneof(fc.anything(), fc.record({ env: fc.anything(), args: fc.anything() })),
        constraints: fc.oneof(
          fc.anything(),
          fc.record({ do_not: fc.anything(), time_budget_min: fc.anything() }),
        ),
        output: fc.anything(),
        surprise: fc.anything(),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(recommended, (more) => {
        const asJson = JSON.parse(
          JSON.stringify(more, (_, value) => (typeof value === 'bigint' ? 1 : value)),
        );
        const { env, timeBudgetMin } = taskOf(asJson);
        expect(Object.values(env).every((value) => typeof value === 'string')).toBe(true);
        expect(timeBudgetMin ?? 1).toBeGreaterThan(0);
      }),
    );
  });

  it('takes of it what can be used', () => {
    const { cwd, env, args, timeBudgetMin } = taskOf({
      context: { cwd: 7, notes: ['x'], workspace_root: '/w' },
      inputs: {
        env: { A: 1, B: true, C: 'c', 'D E': 'x', F: null, G: 'a\0b', H: { toString: '' } },
        args: ['-x', 3],
        files: 'no',
      },
      constraints: { do_not: 'nothing', risk: 'sehr hoch', time_budget_min: 0.5 },
      output: [],
    });
    expect(cwd).toBeNull();
    expect(env).toEqual({ A: '1', B: 'true', C: 'c' });
    expect(args).toEqual(['-x']);
    expect(timeBudgetMin).toBe(0.5);
    for (const time_budget_min of [0, -1, '20', null]) {
      expect(taskOf({ constraints: { time_budget_min } }).timeBudgetMin).toBeNull();
    }
  });
});
