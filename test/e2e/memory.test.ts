/** Memory in the user's hands, with the real process: shown, explained, forgotten, taken back, sent. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { type ChatBody, lastUserText } from '../fakes/model.js';
import type { ModelScript } from '../fakes/model-script.js';
import { ANNA, group, type Person } from '../fakes/telegram-chats.js';
import { eventually, makeHome, run } from '../harness/gateway.js';
import { type Stage, stage } from '../harness/telegram.js';

const BEN: Person = { id: 100002, first_name: 'Ben' };
const GROUP = group(-1001234567890, 'Garden');
const HERE = `groups/telegram_${ANNA.id}`;
const MEMORY = `${HERE}/default/MEMORY.md`;

let on: Stage;
afterEach(() => on?.close());

/** Says it, and resolves with the answer to it. */
async function ask(text: string, chat: { id: number; from?: Person } = { id: ANNA.id }): Promise<string> {
  const before = on.sentTo(chat.id).length;
  const { from } = chat;
  on.telegram.say({ text, ...(chat.id === GROUP.id ? { chat: GROUP } : {}), ...(from ? { from } : {}) });
  return (await on.replies(chat.id, before + 1))[before] ?? '';
}

/** A model that does what `remember: TIER CONTENT`, `note: LINE` and `say: TEXT` tell it, and echoes the rest. */
function obedient(body: ChatBody): ModelScript {
  if (body.messages.at(-1)?.role === 'tool') return { text: 'done' };
  const said = lastUserText(body);
  const tier = /^remember: ([123]) ([\s\S]+)/.exec(said);
  if (tier) {
    const [, number, content = ''] = tier;
    return { calls: [{ name: 'write_tiered_memory', arguments: { tier: Number(number), content } }] };
  }
  const note = /^note: (.+)/.exec(said)?.[1];
  if (note) return { calls: [{ name: 'write_memory', arguments: { scope: 'chat_daily', content: note } }] };
  return { text: /^say: (.+)/.exec(said)?.[1] ?? `echo: ${said}` };
}

async function begin(config: Record<string, Record<string, unknown>> = {}) {
  on = await stage({ config });
  on.model.reply(obedient);
  return on.start();
}

/** Every file of the gateway in which a word stands, in any letters. */
async function filesWith(word: string): Promise<string[]> {
  const names = await readdir(on.home.folder, { recursive: true, withFileTypes: true });
  const found: string[] = [];
  for (const entry of names.filter((each) => each.isFile())) {
    const path = join(entry.parentPath, entry.name);
    const bytes = await readFile(path).catch(() => Buffer.alloc(0));
    if (bytes.toString('latin1').toLowerCase().includes(word)) found.push(path);
  }
  return found;
}

describe('what is remembered', () => {
  it('is shown, and explained with its source; what a person wrote counts as written by hand', async () => {
    await begin();
    expect(await ask('/memory')).toBe('I remember nothing here yet.');
    await ask('remember: 1 - Likes blue roses\n- Lives in Graz');
    await ask('note: planted a shed');
    const file = (await on.home.read(MEMORY)) ?? '';
    await on.home.write(MEMORY, file.replace('- Lives in Graz', '- Lives in Graz\n- Has a tortoise'));
    await ask('say: Blue roses, as always, and the tortoise eats them.');
    const shown = await ask('/memory');
    for (const line of ['Tier 1', 'Likes blue roses', 'Has a tortoise', 'planted a shed', '/memory export'])
      expect(shown).toContain(line);
    const why = (await ask('/memory why')).split('\n');
    const of = (words: string) => why.findIndex((line) => line.includes(words));
    expect(why[of('Likes blue roses')]).toMatch(
      /default\/MEMORY\.md, tier 1; from Anna Berg, [\d-]+ [\d:]+: remember: 1 - Likes blue roses - Lives in Graz/,
    );
    expect(why[of('Has a tortoise')]).toContain('written by hand');
    expect(why[of('planted a shed')]).toMatch(/memory\/[\d-]+\.md; from Anna Berg/);
    expect(of('Likes blue roses —')).toBeLessThan(of('Lives in Graz —'));
    expect(why.at(-1)).toMatch(/^Messages here: .* in my window/);
    expect(await ask('/memory why blue roses')).toMatch(/It is in my window/);
  });

  it('with 200,000 characters is shown cut, with the marker', async () => {
    await begin();
    await ask('hello');
    await on.home.write(MEMORY, `# Memory\n\n## Tier 1 — Long term\n\n${'word by word\n'.repeat(16_000)}`);
    on.telegram.say({ text: '/memory' });
    await eventually(() => on.sentTo(ANNA.id).at(-1)?.includes('/memory export'), 'all of it is shown');
    const texts = on.sentTo(ANNA.id).slice(1);
    expect(texts.join('')).toContain('<<truncated due to memory-max-chars=12000>>');
    expect(texts.join('').length).toBeLessThan(12_500);
    for (const text of texts) expect(text.length).toBeLessThanOrEqual(4_096);
  });
});

describe('/memory forget', () => {
  it('asks, waits for a plain yes, and leaves no trace of the text on the disk or in a prompt', async () => {
    const gateway = await begin();
    await ask('remember: 1 - The word is Swordfish\n- Likes tea');
    await ask('remember: 2 swordfish project');
    await ask('note: talked of a swordfish');
    await ask('say: swordfish it is');
    expect(await ask('/archive')).toMatch(/^Copied \d+ messages to .*archive\/.*\.md/);
    const preview = await ask('/memory forget swordfish');
    expect(preview).toContain('3 whole lines of memory and daily log');
    expect(preview).toContain('1 archive');
    expect(preview).toContain('default/MEMORY.md: The word is Swordfish');
    expect(await on.home.read(MEMORY)).toContain('Swordfish');
    const requests = on.model.count();
    const answer = await ask('Yes!');
    expect(answer).toMatch(/^Forgotten:/);
    expect(answer.toLowerCase()).not.toContain('swordfish');
    expect(on.model.count()).toBe(requests);
    expect(await on.home.read(MEMORY)).toContain('Likes tea');
    await ask('what do you know?');
    const shown = JSON.stringify(on.model.requests.at(-1)?.body);
    expect(shown.toLowerCase()).not.toContain('swordfish');
    expect(shown).toContain('[forgotten]');
    expect(await filesWith('swordfish')).toEqual([]);
    expect(await gateway.stop()).toBe(0);
    expect(await filesWith('swordfish')).toEqual([]);
    expect(gateway.err().toLowerCase()).not.toContain('swordfish');
  });

  it('says when a text stands nowhere, asks nothing then, and keeps nothing of the question', async () => {
    await begin();
    await ask('hello');
    expect(await ask('/memory forget marlin')).toMatch(/^I can’t find that/);
    expect(await ask('/memory forget marlin')).toMatch(/^I can’t find that/);
    expect(await ask('yes')).toBe('echo: yes');
    // The write-ahead log holds the question until it is next brought into the database.
    const lasting = (await filesWith('marlin')).filter((file) => !file.endsWith('-wal'));
    expect(lasting).toEqual([]);
    expect(await ask('/memory forget x')).toMatch(/at least two characters/);
    expect(await ask('/memory nonsense')).toMatch(/^Usage/);
  });

  it('is undone by any other message, and a yes from somebody else is no yes', async () => {
    await begin();
    const name = on.telegram.bot.username;
    on.telegram.administrators.set(GROUP.id, [ANNA.id]);
    const anna = { id: GROUP.id, from: ANNA };
    const ben = { id: GROUP.id, from: BEN };
    const file = `groups/telegram_${GROUP.id}/default/MEMORY.md`;
    await ask(`@${name} hello`, anna);
    await on.home.write(file, '# Memory\n\n## Tier 1 — Long term\n\n- a swordfish\n');
    expect(await ask('/memory forget swordfish', ben)).toMatch(/^Only owners and administrators/);
    expect(await ask('/memory', ben)).toContain('a swordfish');
    await ask('/memory forget swordfish', anna);
    on.telegram.say({ chat: GROUP, from: BEN, text: 'yes' });
    on.telegram.say({ chat: GROUP, from: ANNA, text: 'no, wait' });
    on.telegram.say({ chat: GROUP, from: ANNA, text: 'yes' });
    await ask(`@${name} still there?`, anna);
    expect(await on.home.read(file)).toContain('swordfish');
    expect(JSON.stringify(on.model.requests.at(-1)?.body)).toContain('no, wait');
    await ask('/memory forget swordfish', anna);
    expect(await ask('YES', anna)).toMatch(/^Forgotten:/);
    expect(await on.home.read(file)).not.toContain('swordfish');
  });

  it('cuts off a turn that has the text in its prompt, which then answers without it', async () => {
    await begin();
    await ask('the word is swordfish');
    on.model.reply((body) =>
      JSON.stringify(body.messages).includes('swordfish') ? { stall: 'headers' as const } : { text: 'anew' },
    );
    const before = on.model.count();
    on.telegram.say({ text: 'and what was it?' });
    await on.model.received(before + 1);
    on.telegram.say({ text: '/memory yes swordfish' });
    const texts = await on.replies(ANNA.id, 3);
    expect(texts.filter((text) => text.startsWith('Forgotten:'))).toHaveLength(1);
    expect(texts.at(-1)).toBe('anew');
    expect(await filesWith('swordfish')).toEqual([]);
  });

  it('survives a kill between the yes and its end', async () => {
    const gateway = await begin();
    await ask('remember: 1 - a swordfish\n- tea');
    on.telegram.say({ text: '/memory yes swordfish' });
    await eventually(() => on.telegram.pending() === 0, 'the yes was taken in');
    await gateway.stop('SIGKILL');
    await on.start();
    await eventually(
      () => on.sentTo(ANNA.id).some((text) => text.startsWith('Forgotten:')),
      'it is forgotten',
    );
    expect(await on.home.read(MEMORY)).toContain('tea');
    expect(await filesWith('swordfish')).toEqual([]);
  });
});

describe('/memory undo', () => {
  it('walks back change by change, and refuses after a person’s edit', async () => {
    await begin();
    expect(await ask('/memory undo')).toBe('There is no change of my memory to undo.');
    await ask('remember: 1 - tea');
    await ask('remember: 1 - tea\n- roses');
    const undone = await ask('/memory undo');
    expect(undone).toMatch(/^Undone: the change of tier 1 of default\/MEMORY\.md \(from Anna Berg, /);
    expect(undone).toContain('roses');
    expect(await on.home.read(MEMORY)).toContain('- tea\n');
    expect(await on.home.read(MEMORY)).not.toContain('roses');
    await ask('remember: 2 a shed');
    const file = (await on.home.read(MEMORY)) ?? '';
    await on.home.write(MEMORY, file.replace('a shed', 'a big shed'));
    expect(await ask('/memory undo')).toMatch(/^Nothing was undone.*edited by hand since/);
    expect(await on.home.read(MEMORY)).toContain('a big shed');
    await on.home.write(MEMORY, file);
    expect(await ask('/memory undo')).toContain('tier 2');
    expect(await ask('/memory undo')).toContain('tier 1');
    expect(await on.home.read(MEMORY)).toBe(
      '# Memory\n\n## Tier 1 — Long term\n\n## Tier 2 — Mid term\n\n## Tier 3 — Short term\n',
    );
    expect(await ask('/memory undo')).toBe('There is no change of my memory to undo.');
  });
});

describe('files of memory', () => {
  it('are sent one by one', async () => {
    await begin();
    expect(await ask('/memory export')).toMatch(/^There are no files to send/);
    await ask('remember: 1 tea');
    await ask('note: a line');
    await ask('/archive');
    expect(await ask('/memory export')).toBe('Here are 3 files.');
    const documents = () => on.telegram.sent.flatMap(({ document }) => (document ? [document] : []));
    await eventually(() => documents().length === 3, 'three files');
    expect(documents().map(({ name }) => name)).toEqual([
      'default-MEMORY.md',
      expect.stringMatching(/^memory-\d{4}-\d\d-\d\d\.md$/),
      expect.stringMatching(/^archive-.*-default\.md$/),
    ]);
    expect(documents()[0]?.bytes.toString('utf8')).toBe(await on.home.read(MEMORY));
  });

  it('in the terminal: it is said where they are', async () => {
    const home = await makeHome({ log: { format: 'json' } });
    try {
      const chat = run(home, ['chat']);
      chat.write('remember that I like tea\n/memory export\n');
      chat.endInput();
      expect(await chat.exited).toBe(0);
      expect(chat.out()).toMatch(/Here (is|are) \d files?\./);
      expect(chat.out()).toContain(join(home.folder, 'groups/terminal_local/default/MEMORY.md'));
    } finally {
      await home.remove();
    }
  });
});

describe('/reset', () => {
  it('marks the archives of what it forgets; another topic’s are left alone', async () => {
    await begin();
    const name = `@${on.telegram.bot.username}`;
    on.telegram.administrators.set(GROUP.id, [ANNA.id]);
    const folder = join(on.home.folder, `groups/telegram_${GROUP.id}/archive`);
    let answers = 0;
    for (const text of [`${name} in five`, '/archive', `${name} in six`, '/archive', '/reset']) {
      const topic = text === '/reset' || answers < 2 ? 5 : 6;
      on.telegram.say({ chat: GROUP, topic, text });
      await on.replies(GROUP.id, ++answers);
    }
    const files = await Promise.all(
      (await readdir(folder)).map((file) => readFile(join(folder, file), 'utf8')),
    );
    expect(files).toHaveLength(2);
    for (const text of files) expect(/^reset: true$/m.test(text)).toBe(text.includes('in five'));
  });
});
