/** What the route enters in the audit log, before it happens, and what happens where that cannot be written. */
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import type { Audit } from '../../src/core/journal.js';
import type { InboundMessage } from '../../src/core/message.js';
import type { AnyTool } from '../../src/core/tool.js';
import { sendMessage } from '../../src/tools/sending.js';
import { archivesIn } from '../groups/support.js';
import { type Workbench, type WorkbenchOptions, workbench } from '../harness/conversation.js';
import { foldersIn } from '../harness/folders.js';
import { auditIn } from '../operating/audit-support.js';

let on: Workbench;
const folders: string[] = [];
afterEach(async () => {
  await on.close();
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true });
});

const OWNED: WorkbenchOptions = { rules: { owners: ['test_1'], controlChats: ['test_1'] } };
const STRANGER: Partial<InboundMessage> = {
  chat: { address: '7', kind: 'direct', title: 'Eve' },
  sender: { address: '7', name: 'Eve\n\u001b[31m', administrator: false },
};

async function open(more: WorkbenchOptions = {}): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'coterie-audited-'));
  const tool = sendMessage({
    groupsDir: join(folder, 'groups'),
    folders: foldersIn(join(folder, 'data')),
    archives: archivesIn(join(folder, 'groups')),
    post: (ask) => on.sayAside(ask),
  });
  on = await workbench({ ...OWNED, memoryTools: true, tools: [tool as AnyTool], folder, ...more });
}

async function say(text: string, more: Partial<InboundMessage> = {}): Promise<void> {
  await on.say(text, more);
  await on.settled();
}

const asks = (name: string, given: object) => (request: { messages: { role: string }[] }) =>
  request.messages.at(-1)?.role === 'tool' ? 'done' : { calls: [{ name, arguments: given }] };

/** A folder in the place of the file: nothing can be entered. */
async function broken(): Promise<Audit> {
  const folder = await mkdtemp(join(tmpdir(), 'coterie-audited-'));
  folders.push(folder);
  await mkdir(join(folder, 'audit.jsonl'));
  return auditIn(folder);
}

describe('commands', () => {
  it('that change something are entered with who, where and their words for it, not with what people write', async () => {
    await open();
    await say('hello there');
    for (const each of ['/status', '/persona', '/memory', '/help', '/whoami']) await say(each);
    expect(on.audited).toEqual([]);
    await say('/persona new Luna');
    await say('/memory forget my secret garden');
    await say('/reset for good, my dear');
    await say('/voice loudly');
    const by = { kind: 'command', who: 'test_1', where: 'test_1', word: 'test_1' };
    expect(on.audited).toEqual([
      { ...by, what: '/persona new Luna' },
      { ...by, what: '/memory forget' },
      { ...by, what: '/reset' },
      { ...by, what: '/voice' },
    ]);
  });

  it('that somebody may not give are not', async () => {
    await open();
    const chat = { address: '-5', kind: 'group' as const, title: 'Garden' };
    await say('/persona new Luna', { ...STRANGER, chat });
    expect(on.audited).toEqual([]);
    expect(on.texts().at(-1)).toContain('Only owners and administrators');
  });

  it('stand there before they do anything', async () => {
    let there: string | null = 'not asked';
    const note = async () => {
      there = await readFile(join(on.folder, 'groups/test_1/luna/PERSONA.md'), 'utf8').catch(() => null);
    };
    await open({ audit: { record: note, note } });
    await say('/persona new Luna');
    expect(there).toBeNull();
    expect(on.texts().at(-1)).toContain('Luna');
  });

  it('go on where nothing can be entered', async () => {
    await open({ audit: await broken() });
    await say('/persona new Luna');
    expect(on.texts().at(-1)).toContain('Created persona Luna');
  });
});

describe('approvals', () => {
  const DOOR: WorkbenchOptions = { rules: { direct: 'pairing', owners: ['test_1'], chats: ['test_1'] } };

  it('by an owner say whom, and so do refusals', async () => {
    await open(DOOR);
    await say('hello');
    await say('let me in', STRANGER);
    await say('2 ABCDEFGH');
    await say('1 ABCDEFGH');
    expect(on.audited).toEqual([
      { kind: 'approval', who: 'test_1', where: 'test_1', what: 'test_7 is refused', word: 'test_1' },
    ]);
    expect(await on.store.waiting(Date.now())).toEqual([]);
  });

  it('are not given where they cannot be entered, and the owner is told in a sentence', async () => {
    await open({ ...DOOR, audit: await broken() });
    await say('hello');
    await say('let me in', STRANGER);
    await say('1 ABCDEFGH');
    expect(on.texts().at(-1)).toContain('I could not write down in my audit log');
    const standing = await on.store.approvalOf({ chatId: 'test_7', senderId: 'test_7' });
    expect(standing.sender).toBe(false);
    expect(on.texts().join()).not.toContain('You are in');
  }, 20_000);
});

describe('tools', () => {
  it('that write are entered with what they write to, not with what they write', async () => {
    await open();
    // Some models fill in every argument: empty means the caller's own.
    const own = { chat_id: '', persona_id: '' };
    on.answer(asks('write_tiered_memory', { tier: 2, content: 'a very private line', ...own }));
    await say('remember that');
    on.answer(asks('read_tiered_memory', { tier: 2 }));
    await say('what do you know?');
    const by = { kind: 'tool', who: 'test_1/default', where: 'test_1', word: 'test_1' };
    expect(on.audited).toEqual([{ ...by, what: 'write_tiered_memory tier 2' }]);
  });

  it('that send to another chat are entered as that', async () => {
    await open();
    await say('hello', { chat: { address: '2', kind: 'direct', title: 'Ben' } });
    on.answer(asks('send_message', { text: 'psst', chat_id: 'test_2' }));
    await say('tell Ben');
    expect(on.audited).toEqual([
      { kind: 'across', who: 'test_1/default', where: 'test_2', what: 'send_message', word: 'test_1' },
    ]);
    expect(on.texts()).toContain('psst');
  });

  it('do not reach another chat where that cannot be entered, and go on in their own', async () => {
    await open({ audit: await broken() });
    await say('hello', { chat: { address: '2', kind: 'direct', title: 'Ben' } });
    on.answer(asks('send_message', { text: 'psst', chat_id: 'test_2' }));
    await say('tell Ben');
    expect(on.texts()).not.toContain('psst');
    expect(JSON.stringify(on.asked.at(-1)?.messages)).toContain('Nothing was done: the audit log');
    on.answer(asks('write_tiered_memory', { tier: 2, content: 'a line' }));
    await say('remember that');
    expect(await on.memory.readTier({ chatId: 'test_1', personaId: 'default' }, 2)).toBe('a line');
  });
});

it('a call of a foreign tool is entered in its own chat, whatever its arguments are called', async () => {
  const foreign: AnyTool = {
    ...{ name: 'mcp_far_go', description: 'goes', hint: 'go', risk: 'medium' },
    parameters: { type: 'object', properties: {} },
    execute: async () => ({ content: 'went', failed: false }),
  };
  const given = { chat_id: 'telegram_9\nsomebody’s words', persona_id: 'hush', tier: 1 };
  await open({ tools: [foreign] });
  on.answer(asks('mcp_far_go', given));
  await say('go');
  expect(on.audited).toEqual([
    { kind: 'tool', who: 'test_1/default', where: 'test_1', what: 'mcp_far_go', word: 'test_1' },
  ]);
});
