/** The page's routes to memory, on real files and a real store. */

import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { getRequestListener } from '@hono/node-server';
import { afterEach, describe, expect, it } from 'vitest';
import { createApi } from '../../src/board/api.js';
import { addMemory } from '../../src/board/memory.js';
import type { MemoryChange, MemoryText } from '../../src/board/protocol.js';
import { BOARD_OWNER } from '../../src/core/board.js';
import { createMemory } from '../../src/groups/memory.js';
import { createPersonas } from '../../src/groups/personas.js';
import { type Workbench, workbench } from '../harness/conversation.js';
import { quietLog } from '../harness/quiet.js';

const endings: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});

const TODAY = '2026-01-15';
const CHAT = 'test_1';
const MEMORY = '# Memory\n\n## Tier 1\n\ntea\n\n## Tier 2\n\nmoss\n\n## Tier 3\n\nrain\n';

interface Opened {
  bench: Workbench;
  groups: string;
  file(name: string): Promise<string>;
  ask(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answered>;
  /** A file as the page reads it. */
  read(file: string, personaId?: string, chatId?: string): Promise<MemoryText>;
  /** Replaces words of it as the page does. */
  edit(shown: MemoryText, file: string, old: string, text: string): Promise<Answered>;
  changes(personaId?: string): Promise<MemoryChange[]>;
}

interface Answered {
  status: number;
  body: Record<string, unknown>;
  etag: string | null;
}

async function open(files: Record<string, string | Buffer> = {}): Promise<Opened> {
  const bench = await workbench();
  endings.push(() => bench.close());
  const groups = join(bench.folder, 'groups');
  for (const [name, content] of Object.entries(files)) {
    await mkdir(dirname(join(groups, name)), { recursive: true });
    await writeFile(join(groups, name), content);
  }
  let ids = 0;
  const api = createApi(quietLog);
  const enter = async (entry: Workbench['audited'][number]) => void bench.audited.push(entry);
  addMemory(api, {
    files: createMemory({
      ...{ groupsDir: groups, versions: bench.store, clock: { now: () => 1_000 }, log: quietLog },
      newId: () => `own-${++ids}`,
      exclusive: (_, work) => work(),
      budgets: bench.memory.budgets,
    }),
    history: bench.store,
    personas: createPersonas({ groupsDir: groups, log: quietLog, clock: { now: () => 1_000 } }),
    audit: { record: enter, note: enter },
    today: () => TODAY,
  });
  const server = createServer(getRequestListener(api.fetch, { overrideGlobalObjects: false }));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  endings.push(() => new Promise((resolve) => void server.close(() => resolve())));
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}/api/board/memory`;

  async function ask(method: string, path: string, body?: unknown, headers = {}): Promise<Answered> {
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    const all = { 'content-type': 'application/json', connection: 'close', ...headers };
    const response = await fetch(`${base}${path}`, { method, headers: all, ...sent });
    const read = (await response.json()) as Record<string, unknown>;
    return { status: response.status, body: read, etag: response.headers.get('etag') };
  }

  const at = (file: string, personaId = 'luna', chatId = CHAT) =>
    `/file?${new URLSearchParams({ chatId, personaId, file })}`;
  return {
    ...{ bench, groups, ask },
    file: (name) => readFile(join(groups, name), 'utf8'),
    read: async (file, ...of) => (await ask('GET', at(file, ...of))).body as unknown as MemoryText,
    edit: (shown, file, old, text) =>
      ask(
        'PUT',
        at(file),
        { at: shown.text.indexOf(old), gone: old.length, text },
        { 'if-match': `"${shown.tag}"` },
      ),
    changes: async (personaId = 'luna') =>
      (await ask('GET', `/history?chatId=${CHAT}&personaId=${personaId}`)).body.changes as MemoryChange[],
  };
}

describe('places of memory', () => {
  it('are those of the store and of folders, with names that are data', async () => {
    const { ask, bench } = await open({
      'telegram_-100/default/MEMORY.md': MEMORY,
      'test_1/luna/PERSONA.md': '---\nname: <img src=x onerror=alert(1)>\n---\n',
      'test_1/old/MEMORY.md': MEMORY,
      'test_1/memory/2026-01-14.md': '- rain\n',
      'test_1/memory/2026-01-13.md': '- sun\n',
      'test_1/memory/2026-01-12.md': '- snow\n',
    });
    await bench.say('hi', { chat: { address: '9', kind: 'direct', title: 'Ann' } });
    expect((await ask('GET', '')).body.chats).toEqual([
      { chatId: 'telegram_-100', title: 'telegram_-100' },
      { chatId: 'test_1', title: 'test_1' },
      { chatId: 'test_9', title: 'Ann' },
    ]);
    const { body } = await ask('GET', '/places?chatId=test_1');
    expect(body.personas).toEqual([
      { id: 'default', name: 'default', library: 'personas/default.md' },
      { id: 'luna', name: '<img src=x onerror=alert(1)>', library: 'personas/luna.md' },
      { id: 'old', name: 'old', library: null },
    ]);
    expect(body.days).toEqual([
      { file: '2026-01-15.md', isThere: false, isShown: false },
      { file: '2026-01-14.md', isThere: true, isShown: true },
      { file: '2026-01-13.md', isThere: true, isShown: true },
      { file: '2026-01-12.md', isThere: true, isShown: false },
    ]);
    await bench.settled();
  });

  it('outside of the folder, or of no file of memory, are refused', async () => {
    const { ask } = await open({ 'test_1/chat.yaml': 'title: x\n' });
    for (const file of ['../../etc/passwd', 'chat.yaml', 'luna/../chat.yaml', 'personas/../chat.yaml']) {
      const place = new URLSearchParams({ chatId: CHAT, personaId: 'luna', file });
      const { status, body } = await ask('GET', `/file?${place}`);
      expect([status, body.error]).toEqual([503, expect.stringContaining('is not a file of memory')]);
    }
    expect((await ask('GET', '/places?chatId=../x')).status).toBe(503);
    expect((await ask('GET', '/places')).status).toBe(400);
  });
});

describe('a file', () => {
  it('is read with its tag and budget, and written with an entry in the audit log before', async () => {
    const { read, edit, file, bench, changes } = await open({ 'test_1/luna/MEMORY.md': MEMORY });
    const shown = await read('luna/MEMORY.md');
    expect(shown).toMatchObject({ text: MEMORY, most: 12_000, isCrlf: false, faults: [] });
    const written = await edit(shown, 'luna/MEMORY.md', 'tea', 'coffee');
    expect([written.status, written.body.text]).toEqual([200, MEMORY.replace('tea', 'coffee')]);
    expect(written.etag).toBe(`"${written.body.tag}"`);
    expect(await file('test_1/luna/MEMORY.md')).toBe(MEMORY.replace('tea', 'coffee'));
    const entry = { kind: 'command', who: BOARD_OWNER, where: CHAT, word: BOARD_OWNER };
    expect(bench.audited).toEqual([{ ...entry, what: 'edited luna/MEMORY.md on the page' }]);
    expect(await changes()).toMatchObject([
      { kind: 'owner', file: 'luna/MEMORY.md', parts: [{ tier: 1, before: 'tea', after: 'coffee' }] },
    ]);
  });

  it('in two tabs: the second is shown what the first has written, and nothing is lost', async () => {
    const { read, edit, file, bench } = await open({ 'test_1/luna/MEMORY.md': MEMORY });
    const shown = await read('luna/MEMORY.md');
    await edit(shown, 'luna/MEMORY.md', 'tea', 'coffee');
    const second = await edit(shown, 'luna/MEMORY.md', 'tea', 'cocoa');
    expect(second.status).toBe(409);
    const onDisk = second.body.onDisk as MemoryText;
    expect(onDisk.text).toBe(MEMORY.replace('tea', 'coffee'));
    expect(second.etag).toBe(`"${onDisk.tag}"`);
    expect(bench.audited).toHaveLength(1);
    // "Keep mine" goes on from what is on disk.
    expect((await edit(onDisk, 'luna/MEMORY.md', 'coffee', 'cocoa')).status).toBe(200);
    expect(await file('test_1/luna/MEMORY.md')).toBe(MEMORY.replace('tea', 'cocoa'));
  });

  it('needs a tag, and an edit within its text', async () => {
    const { ask, read, edit } = await open({ 'test_1/luna/MEMORY.md': 'tea\n' });
    const shown = await read('luna/MEMORY.md');
    const place = '/file?chatId=test_1&personaId=luna&file=luna/MEMORY.md';
    expect((await ask('PUT', place, { at: 0, gone: 0, text: 'x' })).status).toBe(400);
    const of = (body: unknown) => ask('PUT', place, body, { 'if-match': `"${shown.tag}"` });
    expect((await of({ at: 99, gone: 1, text: 'x' })).status).toBe(409);
    expect((await of({ at: -1, gone: 0, text: 'x' })).status).toBe(400);
    expect((await edit(shown, 'luna/MEMORY.md', 'tea', 'x'.repeat(2_000_001))).status).toBe(413);
  });

  it('that cannot be read says why', async () => {
    const { ask } = await open({ 'test_1/luna/MEMORY.md/x': '' });
    const { status, body } = await ask('GET', '/file?chatId=test_1&personaId=luna&file=luna/MEMORY.md');
    expect([status, body.error]).toEqual([503, expect.stringContaining('a directory stands where a file')]);
  });

  it('of a persona tells the faults of its front matter', async () => {
    const { read } = await open({ 'test_1/luna/PERSONA.md': '---\ntemperature: hot\n---\nSings.\n' });
    const { faults, most } = await read('luna/PERSONA.md');
    expect([faults, most]).toEqual([[expect.stringContaining('"temperature" should be a number')], null]);
  });

  it('above all chats is the same in each', async () => {
    const { read, edit, file, changes } = await open({ 'AGENTS.md': 'Be kind.\n' });
    await edit(await read('AGENTS.md'), 'AGENTS.md', 'kind', 'brief');
    expect(await file('AGENTS.md')).toBe('Be brief.\n');
    expect((await read('AGENTS.md', 'x', 'test_2')).text).toBe('Be brief.\n');
    expect(await changes('default')).toMatchObject([{ file: 'AGENTS.md', kind: 'owner' }]);
  });
});

describe('the history', () => {
  const owner = { chatId: CHAT, personaId: 'luna' };
  const cause = { kind: 'turn', personaId: 'luna', turnId: 't1' } as const;

  it('undoes a change of a persona, and shows it as undone', async () => {
    const { ask, file, changes, bench } = await open({ 'test_1/luna/MEMORY.md': MEMORY });
    await bench.memory.writeTier(owner, 1, 'coffee', { text: 'tea' }, { cause });
    await bench.memory.appendDaily(CHAT, TODAY, 'it rained', { cause });
    const [line, tier] = await changes();
    expect([line?.file, tier?.kind]).toEqual([`memory/${TODAY}.md`, 'turn']);
    expect((await ask('POST', '/undo', { id: tier?.id })).body).toEqual({ outcome: 'done' });
    expect((await ask('POST', '/undo', { id: line?.id })).body).toEqual({ outcome: 'done' });
    expect(await file('test_1/luna/MEMORY.md')).toBe(MEMORY);
    expect((await changes()).map(({ isUndone }) => isUndone)).toEqual([true, true]);
    expect((await ask('POST', '/undo', { id: tier?.id })).status).toBe(404);
    expect(bench.audited.at(-1)).toMatchObject({ what: `undid a change of memory/${TODAY}.md on the page` });
  });

  it('says of a change that was overwritten since, and what is there now', async () => {
    const { ask, read, edit, changes, bench } = await open({ 'test_1/luna/MEMORY.md': MEMORY });
    await bench.memory.writeTier(owner, 1, 'coffee', { text: 'tea' }, { cause });
    await edit(await read('luna/MEMORY.md'), 'luna/MEMORY.md', 'coffee', 'cocoa');
    const [, first] = await changes();
    const { status, body } = await ask('POST', '/undo', { id: first?.id });
    expect([status, body.now]).toEqual([409, 'cocoa']);
  });

  it('takes an edit of several tiers as one change, and undoes all of it', async () => {
    const { ask, read, edit, changes, file } = await open({ 'test_1/luna/MEMORY.md': MEMORY });
    const shown = await read('luna/MEMORY.md');
    await edit(shown, 'luna/MEMORY.md', 'tea\n\n## Tier 2\n\nmoss', 'a\n\n## Tier 2\n\nb');
    const [change, ...others] = await changes();
    expect([change?.parts.length, others]).toEqual([2, []]);
    await ask('POST', '/undo', { id: change?.id });
    expect(await file('test_1/luna/MEMORY.md')).toBe(MEMORY);
  });

  it('comes in pages, of which none ends within a change', async () => {
    const { ask, bench } = await open();
    const keep = (n: number, kind: 'turn' | 'owner', tier: 1 | 2, turnId: string) =>
      bench.store.keepVersion({
        ...{ ...owner, id: `v${n}`, file: 'luna/MEMORY.md', tier, before: `${n}`, after: 'x', at: n },
        cause: { kind, personaId: 'luna', turnId },
      });
    for (let n = 0; n < 10; n++) await keep(n, 'turn', 1, `t${n}`);
    await keep(10, 'owner', 1, 'e');
    await keep(11, 'owner', 2, 'e');
    for (let n = 12; n < 41; n++) await keep(n, 'turn', 1, `t${n}`);
    const page = async (more = '') =>
      (await ask('GET', `/history?chatId=${CHAT}&personaId=luna${more}`)).body as {
        changes: MemoryChange[];
        before: number | null;
      };
    const first = await page();
    expect([first.changes.length, first.changes.at(-1)?.id]).toEqual([29, 'v12']);
    const second = await page(`&before=${first.before}`);
    expect(second.changes.map(({ parts }) => parts.length)).toEqual([2, ...Array<number>(10).fill(1)]);
    expect(second.before).toBeNull();
  });

  it('of an owner is nothing that people undo in a chat', async () => {
    const { bench, file } = await open({ 'test_1/default/MEMORY.md': MEMORY });
    await bench.store.keepVersion({
      ...{ chatId: 'test_1', personaId: 'default', id: 'o', file: 'default/MEMORY.md', tier: 1, at: 1 },
      ...{ before: '', after: 'tea', cause: { kind: 'owner', personaId: 'default', turnId: 'e1' } },
    });
    for (const words of ['/memory undo', '/memory undo e1']) {
      await bench.say(words);
      await bench.settled();
      expect(bench.texts().at(-1)).toMatch(/There is (?:no change|nothing left)/);
    }
    expect(await file('test_1/default/MEMORY.md')).toBe(MEMORY);
  });

  it('does not bring back words that were to be forgotten', async () => {
    const { read, edit, bench, changes, file, ask } = await open({
      'test_1/luna/MEMORY.md': MEMORY.replace('tea', 'tea\nswordfish'),
    });
    await edit(await read('luna/MEMORY.md'), 'luna/MEMORY.md', '\nswordfish', '\nswordfish pie');
    await edit(await read('luna/MEMORY.md'), 'luna/MEMORY.md', 'moss', 'fern');
    const [, withWords] = await changes();
    await bench.say('/memory forget swordfish');
    await bench.settled();
    await bench.say('yes');
    await bench.settled();
    expect(await file('test_1/luna/MEMORY.md')).not.toContain('swordfish');
    const left = await changes();
    expect(JSON.stringify(left)).not.toContain('swordfish');
    expect(left).toMatchObject([{ parts: [{ tier: 2, after: 'fern' }] }]);
    expect((await ask('POST', '/undo', { id: withWords?.id })).status).toBe(404);
    expect((await ask('POST', '/undo', { id: left[0]?.id })).body).toEqual({ outcome: 'done' });
    expect(await file('test_1/luna/MEMORY.md')).toBe(MEMORY);
  });
});

describe('a lorebook', () => {
  const files = {
    'test_1/luna/PERSONA.md': '---\nname: Luna\n---\n',
    'test_1/luna/lorebook.yaml': 'entries:\n  - {keys: [a], content: b}\n',
    'test_1/lorebooks/sky.yml': 'entries: []\n',
    'test_1/lorebooks/.hidden.yaml': 'entries: []\n',
    'test_1/lorebooks/notes.txt': 'no book',
    'lorebooks/world.json': '{"entries": []}',
    'personas/luna/lorebook.yaml': 'entries: []\n',
  };

  it('of a persona, its library, the chat and all chats is read and written, with an entry in the audit log', async () => {
    const { ask, read, edit, file, bench } = await open(files);
    const { body } = await ask('GET', `/places?chatId=${CHAT}`);
    expect(body.books).toEqual(['lorebooks/sky.yml', 'groups/lorebooks/world.json']);
    for (const name of [
      'luna/lorebook.yaml',
      'lorebooks/sky.yml',
      'groups/lorebooks/world.json',
      'personas/luna/lorebook.yaml',
    ]) {
      const shown = await read(name);
      expect(
        (await edit(shown, name, shown.text, '{"entries": [{"keys": ["x"], "content": "y"}]}')).status,
      ).toBe(200);
      const path = /^(?:groups|personas)\//.test(name) ? name.replace(/^groups\//, '') : `${CHAT}/${name}`;
      expect(await file(path)).toContain('"x"');
    }
    expect(bench.audited.map(({ what }) => what)).toContain('edited lorebooks/sky.yml on the page');
  });

  it('that is none is not saved, nor one that is too large', async () => {
    const { read, edit, file, ask } = await open({
      ...files,
      'test_1/lorebooks/wide.yaml': `entries:\n${'  - {keys: [a], content: b}\n'.repeat(20_000)}`,
    });
    const shown = await read('luna/lorebook.yaml');
    for (const [text, why] of [
      ['entries: [', / at line 1/],
      ['entries:\n  - a: "b\n', / at line \d/],
      ['entries: &a [*b]', /b/],
      ['- 1\n', /entries/],
      ['[', /line 1/],
      [`${'['.repeat(900)}`, /deep|entries/],
    ] as const) {
      const { status, body } = await edit(shown, 'luna/lorebook.yaml', shown.text, text);
      expect(status, text).toBe(422);
      expect(body.error).toMatch(/^luna\/lorebook\.yaml was not saved: /);
      expect(body.error).toMatch(why);
    }
    expect(await file('test_1/luna/lorebook.yaml')).toBe(files['test_1/luna/lorebook.yaml']);
    const values = new URLSearchParams({ chatId: CHAT, personaId: 'luna', file: 'lorebooks/wide.yaml' });
    const wide = await ask('GET', `/file?${values}`);
    expect(wide.status).toBe(503);
    expect(wide.body.error).toContain('too large to edit here');
  });

  it('is found under no other path', async () => {
    const { ask } = await open({ ...files, 'secret.yaml': 'a: 1\n', 'test_1/secret.yaml': 'a: 1\n' });
    for (const file of [
      'lorebooks/../secret.yaml',
      'lorebooks/.hidden.yaml',
      'lorebooks/notes.txt',
      'lorebooks/a/b.yaml',
      'groups/secret.yaml',
      'groups/../secret.yaml',
      'groups/lorebooks/../secret.yaml',
      'personas/../lorebook.yaml',
      'personas/luna/secret.yaml',
      'luna/lorebook.json/x',
      'lorebooks/lorebook.yaml/..',
      '../lorebook.yaml',
    ]) {
      const values = new URLSearchParams({ chatId: CHAT, personaId: 'luna', file });
      expect((await ask('GET', `/file?${values}`)).status, file).toBe(503);
    }
  });
});
