/** What `coterie replay` shows is without what the journal leaves out. */
import { expect, test } from 'vitest';
import { createRedactor } from '../../src/operating/redact.js';
import { redacted } from '../../src/replay/shown.js';
import { journalledSpawn, NAME } from '../../src/tools/sessions-spawn.js';

const by = {
  clean: createRedactor(['sk-secret-of-the-configuration']),
  argumentsOf: (name: string, given: string) => (['', NAME].includes(name) ? journalledSpawn(given) : given),
};
const TASK = {
  viap_version: '3',
  goal: 'go',
  inputs: { env: { MAIL_PASSWORD: 'hunter22', N: '7 dwarves' }, args: [1] },
};

test('secrets of the configuration, wherever they stand', () => {
  const secret = 'it is sk-secret-of-the-configuration';
  const shown = redacted(
    { turn: { steps: [{ content: secret, at: 1 }], [secret]: null }, buffer: Buffer.from('x') },
    by,
  );
  expect(JSON.stringify(shown)).not.toContain('sk-secret');
  expect(shown).toMatchObject({ turn: { steps: [{ content: 'it is [redacted]', at: 1 }] } });
});

test.each([
  ['an object', JSON.stringify({ agentId: 'utility', task: TASK })],
  ['a text', JSON.stringify({ agentId: 'utility', task: JSON.stringify(TASK) })],
  ['half of one', JSON.stringify({ agentId: 'utility', task: TASK }).slice(0, -4)],
  ['half of one in a text', JSON.stringify({ agentId: 'utility', task: JSON.stringify(TASK) }).slice(0, -4)],
])('the environment of a task that is given: %s', (_what, given) => {
  const call = { id: 'c', name: NAME, arguments: given };
  const told = {
    steps: [
      { kind: 'answer', calls: [call] },
      { kind: 'approved', callId: 'c', arguments: given },
    ],
  };
  const shown = JSON.stringify(redacted(told, by));
  expect(shown).not.toMatch(/hunter22|dwarves/);
  expect(shown).toContain('MAIL_PASSWORD');
  expect(shown).toContain('goal');
});

test('other calls stay as they are', () => {
  const call = { name: 'shell', arguments: '{"command":"env"}' };
  expect(redacted([call, { arguments: '{"command":"env"}' }], by)).toEqual([
    call,
    { arguments: '{"command":"env"}' },
  ]);
});
