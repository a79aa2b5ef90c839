/** Files of a persona with the real process: written, found, read and sent, where the configuration allows it. */
import { access, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { type ChatBody, lastUserText } from '../fakes/model.js';
import type { ModelScript } from '../fakes/model-script.js';
import { ANNA } from '../fakes/telegram-chats.js';
import { type Stage, stage } from '../harness/telegram.js';
import { SMALL_PNG } from './pictures.js';

const OWN = `data/work/telegram_${ANNA.id}/default`;
let on: Stage;
afterEach(() => on?.close());

/** Calls the tool that it is told to, with these arguments, and then says what came of it. */
function obedient(body: ChatBody): ModelScript {
  const last = body.messages.at(-1);
  if (last?.role === 'tool') return { text: `result: ${last.content}` };
  const [, name = '', given = '{}'] = /^(\w+) (\{.*\})$/s.exec(lastUserText(body)) ?? [];
  return name === '' ? { text: 'echo' } : { calls: [{ name, arguments: JSON.parse(given) }] };
}

async function ask(name: string, given: object): Promise<string> {
  const before = on.sentTo(ANNA.id).length;
  on.telegram.say({ text: `${name} ${JSON.stringify(given)}` });
  return (await on.replies(ANNA.id, before + 1))[before] ?? '';
}

it('are written, found, read and sent', async () => {
  const allow = ['files', 'send'];
  on = await stage({ config: { tools: { chats: { [`telegram_${ANNA.id}`]: { allow } } } } });
  on.model.reply(obedient);
  await on.start();
  expect(await ask('write_file', { path: 'notes/a.md', content: 'one\ntwo\n' })).toContain('was written');
  expect(await readFile(join(on.home.folder, OWN, 'notes/a.md'), 'utf8')).toBe('one\ntwo\n');
  expect(await ask('edit_file', { path: 'notes/a.md', old_string: 'two', new_string: 'three' })).toContain(
    'changed',
  );
  expect(await ask('glob', { pattern: '**/*.md' })).toContain('\nnotes/a.md');
  expect(await ask('grep', { pattern: 'thr.e' })).toContain('\nnotes/a.md:2: three');
  expect(await ask('read_file', { path: '../../../../config.yaml' })).toContain('Permission denied');
  await mkdir(join(on.home.folder, OWN), { recursive: true });
  await writeFile(join(on.home.folder, OWN, 'chart.png'), SMALL_PNG);
  const before = on.telegram.sent.length;
  on.telegram.say({
    text: `send_message ${JSON.stringify({ attachment_path: 'chart.png', text: 'the chart' })}`,
  });
  await on.replies(ANNA.id, before + 3);
  const sent = on.telegram.sent.slice(before);
  expect(sent.map(({ as, text }) => as ?? text).sort()).toEqual([
    'photo',
    expect.stringMatching(/on its way/),
    'the chart',
  ]);
  expect(sent.find(({ as }) => as === 'photo')?.document).toMatchObject({
    name: 'chart.png',
    bytes: SMALL_PNG,
  });
});

it('are nobody’s where nothing was allowed', async () => {
  on = await stage();
  on.model.reply(obedient);
  await on.start();
  expect(await ask('write_file', { path: 'a.md', content: 'x' })).toMatch(/no tool named write_file/);
  expect(await ask('shell', { command: 'true' })).toMatch(/no tool named shell/);
  await expect(access(join(on.home.folder, 'data/work'))).rejects.toThrow();
});
