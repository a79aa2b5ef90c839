/** `/lore` and `/memory why` after answers with lorebooks. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import type { Patterns } from '../../../src/conversation/lore/patterns.js';
import { type Workbench, type WorkbenchOptions, workbench } from '../../harness/conversation.js';

let bench: Workbench;
afterEach(() => bench.close());

const SKY = {
  ...{ name: 'Sky', recursive_scanning: true },
  entries: [
    { name: 'World', constant: true, content: 'It turns.' },
    { name: 'Moon', keys: ['moon'], content: 'It brings the tide.' },
    { name: 'Sea', keys: ['tide'], content: 'It is wide.' },
    { name: 'Long', keys: ['moon'], content: 'x'.repeat(2_000), insertion_order: 1 },
    { name: 'Sun', keys: ['sun'], content: 'It is hot.' },
  ],
};

async function open(book: object | null, options: WorkbenchOptions = {}) {
  bench = await workbench({ settings: { lore: { scanDepth: 2, budgetTokens: 200 } }, ...options });
  if (book === null) return;
  const path = join(bench.folder, 'groups/test_1/default/lorebook.yaml');
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, JSON.stringify(book));
}

async function said(text: string): Promise<string> {
  await bench.say(text);
  await bench.settled();
  return bench.texts().at(-1) ?? '';
}

describe('/lore', () => {
  it('tells the books, what stood in the last answer, by which key, and what did not fit', async () => {
    await open(SKY);
    expect(await said('/lore')).toContain('I have not answered with them yet.');
    await said('the moon');
    expect(await said('/lore')).toBe(
      [
        ...['Lorebooks here: `Sky`.', '', 'In my last answer stood:'],
        ...['- `World`, of `Sky`: always there', '- `Moon`, of `Sky`: by the key `moon`'],
        ...['- `Sea`, of `Sky`: by the key `tide` in the text of `Moon`', ''],
        ...['These matched and did not fit into the budget:', '- `Long`, of `Sky`: by the key `moon`'],
      ].join('\n'),
    );
    await said('a');
    await said('b');
    expect(await said('/lore')).not.toContain('`Moon`');
  });

  it('tells which patterns were given up', async () => {
    const patterns: Patterns = { run: async (_, tries) => tries.map(() => 'given up') };
    await open({ entries: [{ keys: ['/(a+)+$/'], content: 'x' }] }, { patterns });
    await said('aaa');
    expect(await said('/lore')).toContain('counted as not matching:\n- `/(a+)+$/`');
  });

  it('says where books go if there are none', async () => {
    await open(null);
    expect(await said('/lore')).toContain('There are no lorebooks here.');
  });

  it('switches a book off and on, in chat.yaml', async () => {
    await open(SKY);
    const file = () => readFile(join(bench.folder, 'groups/test_1/chat.yaml'), 'utf8');
    expect(await said('/lore off nothing')).toContain('There are: `Sky`.');
    expect(await said('/lore on sky')).toBe('`Sky` is on already.');
    expect(await said('/lore off "sky"')).toContain('`Sky` is off now');
    expect(await file()).toContain('lore_off:\n  - Sky\n');
    await said('the moon');
    expect(bench.asked.at(-1)?.messages.at(-1)?.content).not.toContain('<lore>');
    expect(bench.asked.at(-1)?.messages[0]?.content).not.toContain('It turns.');
    expect(await said('/lore')).toContain('Off: `Sky`.');
    expect(await said('/lore on Sky')).toContain('`Sky` is on now');
    expect(await file()).not.toContain('lore_off');
    await said('the moon');
    expect(bench.asked.at(-1)?.messages.at(-1)?.content).toContain('It brings the tide.');
    expect(await said('/lore sideways')).toContain('Usage:');
  });
});

it('/memory why names the entries', async () => {
  await open(SKY);
  await said('the moon');
  const why = await said('/memory why');
  expect(why).toContain('Lore that stood in it:');
  expect(why).toContain('- `Moon`, of `Sky`: by the key `moon`');
  expect(why).not.toContain('`Long`');
});
