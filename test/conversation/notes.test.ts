/** `/note`, `/scene` and `/me`: in chat.yaml, and in the next prompt. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type Workbench, workbench } from '../harness/conversation.js';

let on: Workbench;
beforeEach(async () => {
  on = await workbench();
});
afterEach(() => on.close());

const group = { chat: { address: '-5', kind: 'group' as const, title: 'Garden' }, mentionsBot: true };
const ANN = { address: '1', name: 'Ann', administrator: false };
const MIRA = { address: '2', name: 'Mira', administrator: true };

async function said(...given: Parameters<Workbench['say']>): Promise<string> {
  const before = on.texts().length;
  await on.say(...given);
  await on.settled();
  return on.texts().slice(before).join('\n');
}
const prompt = () => JSON.stringify(on.asked.at(-1));
const file = (chat: string) => readFile(join(on.folder, 'groups', chat, 'chat.yaml'), 'utf8');

it('a note and a scene stand in the next prompt, are shown, and go', async () => {
  expect(await said('/note')).toContain('There is no note here');
  expect(await said('/note keep it short')).toContain('The note is set');
  expect(await said('/scene a boat at night')).toContain('The scene is set');
  await said('hello');
  expect(prompt()).toContain('keep it short');
  expect(prompt()).toContain('a boat at night');
  expect(await said('/scene')).toContain('a boat at night');
  expect(await said('/note off')).toContain('The note is gone');
  await said('hello again');
  expect(prompt()).not.toContain('keep it short');
  expect(await said(`/scene ${'x'.repeat(2_001)}`)).toContain('at most 2000 characters');
});

it('somebody says who they are: the prompt has the name and the description', async () => {
  expect(await said('/me Captain: owns the boat')).toContain('**Captain**');
  await said('hello');
  expect(prompt()).toContain('owns the boat');
  expect(prompt()).toContain('sender=\\"Captain\\"');
  expect(await said('/iam')).toContain('owns the boat');
  expect(await said('/me off')).toContain('your own name');
  await said('hello again');
  expect(prompt()).not.toContain('owns the boat');
  for (const wrong of [': x', `${'n'.repeat(61)}: x`, `N: ${'d'.repeat(1_001)}`]) {
    expect(await said(`/me ${wrong}`)).toMatch(/Usage|at most/);
  }
});

it('in a group each is somebody else, and only owners and administrators set the scene', async () => {
  await said('hi', { ...group, sender: MIRA });
  expect(await said('/me Mira: x', { ...group, sender: ANN })).toContain('already');
  expect(await said('/me Captain', { ...group, sender: ANN })).toContain('**Captain**');
  expect(await said('/me Captaïn', { ...group, sender: MIRA })).toMatch(/already|Captaïn/);
  expect(await said('/scene a boat', { ...group, sender: ANN })).toContain('Only owners and administrators');
  expect(await said('/scene a boat', { ...group, sender: MIRA })).toContain('The scene is set');
});

it('of a thread they stand below it, and comments of the file stay', async () => {
  await said('/note of the chat');
  await said('/note of the thread', { threadId: '7' });
  await said('hello', { threadId: '7' });
  expect(prompt()).toContain('of the thread');
  expect(prompt()).not.toContain('of the chat');
  await said('hello');
  expect(prompt()).toContain('of the chat');
  const [chat = ''] = on.sent.map(({ to }) => to.address);
  expect(await file(`test_${chat}`)).toContain('threads:');
});
