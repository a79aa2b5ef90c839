/** `send_message` on the route: what a persona says beside its answer leaves through the outbox, once, where it belongs. */
import { mkdir, mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import type { SideMessage } from '../../src/core/tool.js';
import { sendMessage } from '../../src/tools/sending.js';
import { archivesIn } from '../groups/support.js';
import { type Workbench, type WorkbenchOptions, workbench } from '../harness/conversation.js';
import { foldersIn } from '../harness/folders.js';

let on: Workbench;
afterEach(() => on.close());

async function open(more: WorkbenchOptions = {}): Promise<void> {
  const folder = more.folder ?? (await mkdtemp(join(tmpdir(), 'coterie-aside-')));
  const tool = sendMessage({
    groupsDir: join(folder, 'groups'),
    folders: foldersIn(join(folder, 'data')),
    archives: archivesIn(join(folder, 'groups')),
    post: (ask: SideMessage) => on.sayAside(ask),
  });
  on = await workbench({ ...more, folder, tools: [tool] });
}

const call = (given: object) => ({ calls: [{ name: 'send_message', arguments: given }] });
/** The tool first, then the answer. */
const toolThen = (given: object, text: string) => (request: { messages: { role: string }[] }) =>
  request.messages.at(-1)?.role === 'tool' ? text : call(given);

it('is sent before the answer, in the same thread', async () => {
  await open();
  on.answer(toolThen({ text: 'one moment' }, 'here it is'));
  await on.say('search, please', {
    ...{ chat: { address: '-5', kind: 'group', title: 'Garden' }, threadId: '45', mentionsBot: true },
  });
  await on.settled();
  expect(on.sent.map(({ to, part }) => [to.threadId, part.text])).toEqual([
    ['45', 'one moment'],
    ['45', 'here it is'],
  ]);
});

it('sends a file of the chat', async () => {
  await open();
  await mkdir(join(on.folder, 'groups/test_1/memory'), { recursive: true });
  await writeFile(join(on.folder, 'groups/test_1/memory/2026-01-31.md'), 'a day');
  on.answer(toolThen({ text: 'the log', attachment_path: 'memory/2026-01-31.md' }, 'sent'));
  await on.say('the log, please');
  await on.settled();
  expect(on.texts()).toEqual(['the log', '', 'sent']);
  expect(on.sent[1]?.part.file).toMatchObject({ name: '2026-01-31.md' });
});

it('is not said twice when the process ends behind it', async () => {
  await open();
  let asked = 0;
  on.answer((request) => {
    asked++;
    if (request.messages.at(-1)?.role !== 'tool') return call({ text: 'one moment' });
    return new Promise(() => {});
  });
  await on.say('search, please');
  await expect.poll(() => asked).toBe(2);
  await expect.poll(() => on.texts()).toEqual(['one moment']);
  on = await on.die();
  await on.settled();
  expect(on.texts()).toEqual(['fine']);
});

it('is dropped with the rest by a reset, where it was not sent yet', async () => {
  await open();
  on.results.push({ kind: 'unreachable', reason: 'away', taken: 'no', retryAfterMs: 60_000 });
  let asked = 0;
  on.answer((request) => {
    asked++;
    return request.messages.at(-1)?.role === 'tool' ? new Promise(() => {}) : call({ text: 'one moment' });
  });
  await on.say('search, please');
  await expect.poll(() => asked).toBe(2);
  await expect.poll(() => on.results).toEqual([]);
  await on.say('/reset');
  await expect.poll(async () => (await on.store.counts()).running).toBe(0);
  // What waits is the answer of /reset alone: the message before it does not hold it up.
  const next = await on.store.nextDelivery('test_1', 'test', Date.now());
  expect(next?.body.text ?? on.texts().at(-1)).toContain('Conversation cleared.');
});

it('goes to another chat only from a control chat, and says so when there is none', async () => {
  await open({ rules: { controlChats: ['test_1'], owners: ['test_1'] } });
  on.answer(toolThen({ text: 'hello', chat_id: 'test_nobody' }, 'tried'));
  await on.say('tell them');
  await on.settled();
  const result = on.asked.at(-1)?.messages.at(-1);
  expect(result?.content).toContain('nobody has ever written');
  expect(on.texts()).toEqual(['tried']);
});
