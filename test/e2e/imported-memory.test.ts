/** What was imported is remembered: a persona's search finds archives and days that came from other programs. */
import { afterEach, expect, test } from 'vitest';
import { ANNA } from '../fakes/telegram-chats.js';
import { run } from '../harness/gateway.js';
import { type Stage, stage } from '../harness/telegram.js';

const BOB = { id: 4711, first_name: 'Bob' };
let on: Stage;
afterEach(() => on.close());

test('archives and days of MicroClaw, in both of its layouts', async () => {
  on = await stage();
  const chat = `from/runtime/groups/${ANNA.id}`;
  await on.home.write(`${chat}/conversations/20260210-183000.md`, '## user\n\nThe capercaillie sang.\n');
  await on.home.write(`${chat}/memory/2026-02-11.md`, 'Anna bought a theodolite\n');
  await on.home.write(`groups/telegram_${ANNA.id}/memory/2026-02-12.md`, 'mine\n');
  await on.home.write(`${chat}/memory/2026-02-12.md`, 'Anna sold her harpsichord\n');
  await on.home.write(`from/runtime/groups/telegram/${ANNA.id}/AGENTS.md`, 'She collects astrolabes\n');
  const importing = run(on.home, ['import', 'from']);
  expect(await importing.exited).toBe(0);
  await on.start();
  const queries = ['capercaillie', 'theodolite', 'harpsichord', 'astrolabes'];
  on.model.reply(({ messages }) =>
    messages.some(({ role }) => role === 'tool')
      ? 'I remember.'
      : { calls: queries.map((query) => ({ name: 'search_memory', arguments: { query } })) },
  );
  on.telegram.say({ text: 'do you remember?' });
  await on.replies(ANNA.id, 1);
  const results = on.model.requests
    .at(-1)
    ?.body.messages.flatMap(({ role, content }) => (role === 'tool' ? [String(content)] : []));
  expect(results).toEqual([
    expect.stringMatching(/^- 2026-02-10 18:30, user: The capercaillie sang\./),
    expect.stringContaining('Anna bought a theodolite (memory/2026-02-11.md)'),
    expect.stringContaining('Anna sold her harpsichord (memory/2026-02-12.imported.md)'),
    expect.stringContaining('She collects astrolabes'),
  ]);
});

test('notes and days of an OpenClaw workspace, for an owner in a control chat alone', async () => {
  const chat = `telegram_${ANNA.id}`;
  on = await stage({ config: { access: { direct: 'open', owners: [chat], control_chats: [chat] } } });
  await on.home.write('data/workspace/memory/2026-02-10.md', 'mine\n');
  await on.home.write('from/MEMORY.md', '# Notes\n\nThe boat is called Petrel.\n');
  await on.home.write('from/memory/2026-02-10.md', 'Bought a theodolite\n');
  await on.home.write('from/memory/projects/attic.md', 'The harpsichord needs strings\n');
  const importing = run(on.home, ['import', 'from']);
  expect(await importing.exited).toBe(0);
  await on.start();
  const queries = ['Petrel', 'theodolite', 'harpsichord'];
  on.model.reply(({ messages }) =>
    messages.at(-1)?.role === 'tool'
      ? 'I remember.'
      : { calls: queries.map((query) => ({ name: 'search_memory', arguments: { query } })) },
  );
  const resultsAfter = async (text: string, from: typeof BOB | undefined, chatId: number) => {
    on.telegram.say({ ...(from && { from }), text });
    await on.replies(chatId, 1);
    const { messages = [] } = on.model.requests.at(-1)?.body ?? {};
    return messages.flatMap(({ role, content }) => (role === 'tool' ? [String(content)] : []));
  };
  expect(await resultsAfter('do you remember?', undefined, ANNA.id)).toEqual([
    expect.stringContaining('The boat is called Petrel. (workspace/MEMORY.md)'),
    expect.stringContaining('Bought a theodolite (workspace/memory/2026-02-10.imported.md)'),
    expect.stringContaining('The harpsichord needs strings (workspace/memory/projects/attic.md)'),
  ]);
  const ofBob = await resultsAfter('and for me?', BOB, BOB.id);
  expect(ofBob).toHaveLength(3);
  for (const result of ofBob) expect(result).toMatch(/^Nothing was found/);
});
