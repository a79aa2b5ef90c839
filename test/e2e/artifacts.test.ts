/** An answer with a block of artifacts, through the real process: nothing of the block is seen, the file arrives. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { group } from '../fakes/telegram-chats.js';
import { eventually } from '../harness/gateway.js';
import { type Stage, stage } from '../harness/telegram.js';

const GARDEN = group(-1001234567890, 'Garden');
let on: Stage;
afterEach(() => on?.close());

it('becomes words and a file, and nothing of it is shown while it is written', async () => {
  on = await stage({ config: { tools: { allow: ['artifacts', 'skills'] } } });
  const block = JSON.stringify({ artifact_deltas: [{ id: 'plan', title: 'Plan', content: '# Plan\n' }] });
  const text = `Here is the plan.\n\n\`\`\`json\n${block}\n\`\`\`\n`;
  on.model.reply({ text, chunkSize: 12, chunkDelayMs: 200 });
  await on.start();
  on.telegram.say({ text: `@${on.telegram.bot.username} a plan`, chat: GARDEN });
  const sent = () => on.telegram.sent.filter(({ chatId, gone }) => chatId === GARDEN.id && !gone);
  await eventually(() => sent().some(({ as }) => as === 'document'), 'the file has arrived');
  expect(sent().map(({ as, text: words }) => as ?? words)).toEqual(['Here is the plan.', 'document']);
  const { document } = sent()[1] ?? {};
  expect(document).toMatchObject({ name: 'plan.md', bytes: Buffer.from('# Plan\n') });
  const calls = JSON.stringify(on.telegram.calls);
  expect(calls).not.toContain('artifact_deltas');
  // It could be seen before it was whole.
  expect(on.telegram.callsOf('sendMessage')).toHaveLength(1);
  const [, task = ''] = /artifacts\/([\w-]+)\/plan\.md/.exec(await listed()) ?? [];
  expect(await readFile(join(on.home.folder, 'data/artifacts', task, 'plan.md'), 'utf8')).toBe('# Plan\n');
});

async function listed(): Promise<string> {
  const names = await readdir(join(on.home.folder, 'data/artifacts'), { recursive: true });
  return names.map((name) => `artifacts/${name}`).join('\n');
}
