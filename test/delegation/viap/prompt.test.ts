/** What an agent is told: the protocol and its task, without secrets. */
import { describe, expect, it } from 'vitest';
import { looksSecret } from '../../../src/core/command-env.js';
import { viapInstructions } from '../../../src/delegation/request.js';
import { readViapTask } from '../../../src/delegation/viap/task.js';
import { TASK_ID, TASK_TEXT, taskOf } from './fixtures.js';

const jsonIn = (request: string) => JSON.parse(/```json\n([\s\S]*)\n```/.exec(request)?.[1] ?? '');

describe('the instructions of a task', () => {
  it('hold the task as it was given', () => {
    const read = readViapTask(TASK_TEXT);
    if (!read.ok) throw new Error(read.reason);
    const { system, request } = viapInstructions(read.task);
    expect(jsonIn(request)).toEqual(JSON.parse(TASK_TEXT));
    for (const rule of [
      ...['"/Users/veso/Documents/evolver-1.10.0"', 'VIAP_ARGS', 'constraints.do_not', 'about 20 minutes'],
      ...['requires explicit owner instruction', 'exactly one JSON object', `"task_id": "${TASK_ID}"`],
    ]) {
      expect(system).toContain(rule);
    }
  });

  it('leave out what looks secret, wherever it stands', () => {
    const env = { GITHUB_TOKEN: 'ghp_0123456789', PLAIN: 'yes', PW: 'x' };
    const { system, request } = viapInstructions(
      taskOf({ inputs: { env, more: 1 }, notes: 'it is ghp_0123456789' }),
    );
    expect(jsonIn(request)).toMatchObject({
      inputs: { env: { GITHUB_TOKEN: '[set for your commands, and not shown here]', PLAIN: 'yes' }, more: 1 },
      notes: 'it is [redacted]',
    });
    expect(system + request).not.toContain('ghp_');
  });

  it('hold a task that is nested as deeply as one may be', () => {
    let notes: unknown = 'it is ghp_0123456789';
    for (let n = 0; n < 3_000; n++) notes = { notes };
    const { request } = viapInstructions(
      taskOf({ inputs: { env: { GITHUB_TOKEN: 'ghp_0123456789' } }, notes }),
    );
    expect(request).toContain('"it is [redacted]"');
  });

  it('say nothing of what there is not', () => {
    const { system, request } = viapInstructions(taskOf());
    expect(system).not.toMatch(/VIAP_ARGS|inputs\.env|null\)/);
    expect(jsonIn(request)).not.toHaveProperty('inputs');
  });
});

describe('a value of the environment', () => {
  it.each([
    ['OPENAI_API_KEY', 'x'],
    ['db_pass', 'x'],
    ['URL', 'postgres://me:pw@host/db'],
    ['X', 'a1b2c3d4e5f6a7b8c9'],
    ['X', '-----BEGIN PRIVATE KEY-----'],
  ])('looks secret: %s=%s', (name, value) => expect(looksSecret(name, value)).toBe(true));

  it.each([
    ['OPENCLAW_WORKSPACE', '/Users/veso/verso'],
    ['MEMORY_DIR', '/Users/veso/evolver-1.10.0/memory'],
    ['OPENCLAW_WORKSPACE', '/tmp/coterie-files-EoL35q/data/workspace'],
    ['RUN', '2026-02-10_evolver_workspace_001'],
    ['COUNT', '12345678901234567890'],
    ['URL', 'https://example.com/a'],
    ['COMPASS', 'north'],
  ])('does not: %s=%s', (name, value) => expect(looksSecret(name, value)).toBe(false));
});
