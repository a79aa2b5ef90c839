/** Who speaks where nobody was named: personas with talkativeness, with drawn dice. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { type Workbench, workbench } from '../harness/conversation.js';

let on: Workbench;
afterEach(() => on.close());

const group = { chat: { address: '-5', kind: 'group' as const, title: 'Garden' }, mentionsBot: true };
const MIRA = { address: '2', name: 'Mira', administrator: true };

/** `dice`: one after the other, again from the start. */
async function open(talkativeness: Record<string, number | null>, dice: number[]): Promise<void> {
  let n = 0;
  on = await workbench({ random: () => dice[n++ % dice.length] ?? 0, rules: { owners: ['test_2'] } });
  for (const [id, share] of Object.entries(talkativeness)) {
    const folder = join(on.folder, 'groups/test_-5', id);
    await mkdir(folder, { recursive: true });
    const matter = share === null ? '' : `talkativeness: ${share}\n`;
    await writeFile(join(folder, 'PERSONA.md'), `---\nname: ${id}\n${matter}---\n\nI am ${id}.\n`);
  }
  for (const id of Object.keys(talkativeness)) await say(`/persona invite ${id}`);
  await say('/persona switch luna');
}

async function say(text: string): Promise<string[]> {
  const before = on.asked.length;
  await on.say(text, { ...group, sender: MIRA });
  await on.settled();
  return on.asked.slice(before).map(({ messages }) => {
    const [system] = messages;
    return /I am (\w+)\./.exec(system?.content ?? '')?.[1] ?? '';
  });
}

it('each is drafted with its share, in drawn order', async () => {
  await open({ luna: 0.5, max: 0.5, nova: 0 }, [0.1]);
  expect((await say('what do you think?')).sort()).toEqual(['luna', 'max']);
});

it('nobody is drafted: the active one answers', async () => {
  await open({ luna: 0.2, max: 0.2 }, [0.9]);
  expect(await say('what do you think?')).toEqual(['luna']);
});

it('without the key only the active one answers, and a name goes before all shares', async () => {
  await open({ luna: null, max: null }, [0.1]);
  expect(await say('what do you think?')).toEqual(['luna']);
  expect(await say('max, what do you think?')).toEqual(['max']);
});
