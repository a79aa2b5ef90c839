/** The walls between chats, personas and people, over the real store, files, index and tools. */
import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ACTORS, type ActorName, plant, RULES, SECRETS, tryEverything } from '../contract/isolation.js';
import { type Workbench, workbench } from '../harness/conversation.js';
import { compileWorker } from '../recall/support.js';

let worker: Awaited<ReturnType<typeof compileWorker>>;
let on: Workbench;

beforeAll(async () => {
  worker = await compileWorker();
});
afterAll(() => worker.remove());
beforeEach(async () => {
  on = await workbench({
    allTools: worker.entry,
    rules: RULES,
    settings: {
      ...{ debounceMs: 30, compactAfterMessages: 6, keepRecentMessages: 2 },
      // Every door is tried at once.
      callLimits: { callsPerAnswer: 1_000, sendsPerTurn: 1_000, sameCallsPerTurn: 1 },
    },
    // So that no result is cut.
    contextTokens: 10_000_000,
    isAdministrator: async () => false,
  });
});
afterEach(() => on.close());

const WORDS = Object.keys(SECRETS) as (keyof typeof SECRETS)[];

it.each(Object.keys(ACTORS) as ActorName[])(
  '%s finds its own, and nothing else behind any door',
  async (name) => {
    await plant(on);
    const doors = await tryEverything(on, ACTORS[name]);
    const found = [...doors].flatMap(([door, text]) =>
      WORDS.filter((word) => text.includes(word)).map((word) => ({ word, where: `${word}: ${door}` })),
    );
    const mine = WORDS.filter((word) => (SECRETS[word] as ActorName[]).includes(name));
    expect(found.filter(({ word }) => !mine.includes(word)).map(({ where }) => where)).toEqual([]);
    expect([...new Set(found.map(({ word }) => word))].sort()).toEqual([...mine].sort());
  },
);

const GARDEN = { address: '-5', kind: 'group' as const, title: 'Garden' };
const THREAD = { chat: GARDEN, threadId: '88', mentionsBot: true };
const APART = { kind: 'apart' as const, from: '-5', threadId: '88', to: '88' };

describe('a thread that turns out to be a chat of its own', () => {
  it('is neither flushed nor summed up into the chat that it counted to, also where that is under way', async () => {
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    let flushes = 0;
    on.answer(async ({ messages }) => {
      if (!messages.some(({ content }) => content.startsWith('Memory flush.'))) return 'I see.';
      flushes++;
      await held;
      return { calls: [{ name: 'write_tiered_memory', arguments: { tier: 2, content: '- a raccoon' } }] };
    });
    for (let n = 0; n < 4; n++) {
      await on.say('a raccoon', THREAD);
      await on.settled();
    }
    await expect.poll(() => flushes).toBe(1);
    const closed = on.receive(APART);
    release();
    await closed;
    await on.conversation.resting();
    expect(await memoryOf('test_-5')).not.toContain('raccoon');
    expect(await on.store.promptMemory('test_-5/88', 'default')).toBeNull();
  });

  it('answers nothing any more that waited in it, and is closed once', async () => {
    on.answer(() => 'I see.');
    await on.say('a raccoon', THREAD);
    await on.settled();
    await on.receive(APART);
    await on.receive(APART);
    const archives = await readdir(join(on.folder, 'groups/test_88/archive'));
    expect(archives).toHaveLength(1);
    const [file = ''] = archives;
    const text = await readFile(join(on.folder, 'groups/test_88/archive', file), 'utf8');
    expect(text).toContain('a raccoon');
    expect(text).toContain('I see.');
    expect(await on.store.visible({ chatId: 'test_-5', personaId: 'default' }, [1, 2, 3])).toEqual([]);
  });

  it('that nobody ever used, of a chat that nobody knows, changes nothing', async () => {
    await on.say('hello');
    await on.settled();
    await on.receive({ ...APART, threadId: '99', to: '99' }, { ...APART, from: '-77' });
    expect((await readdir(join(on.folder, 'groups'))).sort()).not.toContain('test_99');
  });
});

describe('a chat that moved, or whose data were brought back', () => {
  const yard = { chat: { address: '-6', kind: 'group' as const, title: 'Yard' }, mentionsBot: true };
  const moved = { ...yard, chat: { ...yard.chat, address: '-600' } };
  const approval = { told: { member: { text: 'in', marks: [] }, owner: { text: 'in', marks: [] } } };

  async function listed(): Promise<void> {
    await on.close();
    on = await workbench({ allTools: worker.entry, rules: { ...RULES, groups: 'listed', chats: [] } });
    on.answer(() => 'I see.');
  }
  const standing = (chatId: string) => on.store.approvalOf({ chatId, senderId: 'test_1' });
  const approve = (codeOrId: string) =>
    on.store.approve({ looksLike: 'group', asOwner: false, codeOrId, now: Date.now(), ...approval });

  it.each(['test_-6', 'test_-600'])(
    'does not come in again by its other id when %s is taken back',
    async (id) => {
      await listed();
      await approve('test_-6');
      await on.say('hello', yard);
      await on.receive({ kind: 'moved', from: '-6', to: '-600' });
      await on.say('hello', moved);
      await on.settled();
      expect(on.texts()).toEqual(['I see.', 'I see.']);
      // As `coterie pair remove` does it.
      expect(await on.store.refuse({ id })).toBe(true);
      expect(await standing('test_-6')).toMatchObject({ chat: false });
      for (const where of [yard, moved]) await on.say('hello again', where);
      await on.receive({ kind: 'moved', from: '-6', to: '-600' });
      await on.say('and again', moved);
      await on.settled();
      expect(on.texts()).toHaveLength(2);
    },
  );

  it('is the same chat, and no other, when only its files were brought back', async () => {
    await listed();
    await approve('test_-6');
    await on.say('hello', yard);
    await on.receive({ kind: 'moved', from: '-6', to: '-600' });
    await on.settled();
    await on.end();
    // The database is lost; groups/ is there, with the further id in chat.yaml.
    for (const file of ['coterie.db', 'coterie.db-wal', 'coterie.db-shm', 'recall.db']) {
      await rm(join(on.folder, 'data', file), { force: true });
    }
    on = await workbench({
      folder: on.folder,
      allTools: worker.entry,
      rules: { ...RULES, groups: 'listed' },
    });
    on.answer(() => 'I see.');
    for (const where of [yard, moved]) await on.say('hello?', where);
    await on.settled();
    expect(on.texts(), 'a name in a file lets nobody in').toEqual([]);
    await approve('test_-6');
    await on.say('hello!', moved);
    await on.settled();
    expect(on.texts().at(-1)).toBe('I see.');
    expect((await on.store.chat('test_-600'))?.id).toBeUndefined();
  });
});

const memoryOf = (chat: string) =>
  readFile(join(on.folder, 'groups', chat, 'default/MEMORY.md'), 'utf8').catch(() => '');
