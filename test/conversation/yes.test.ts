/** What a command asks and a person answers: through step 1, the lane of commands and the store that keeps the question. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { isJust } from '../../src/conversation/commands/parse.js';
import type { InboundMessage } from '../../src/core/message.js';
import type { Receipt } from '../../src/core/receipt.js';
import { type ManualClock, manualClock } from '../fakes/clock.js';
import { type Workbench, type WorkbenchOptions, workbench } from '../harness/conversation.js';

const MEMORY = '# Memory\n\n## Tier 1 — Long term\n\nthe word is swordfish\nnot marlin\n';
const opened: Workbench[] = [];
afterEach(async () => {
  for (const each of opened.splice(1)) await each.end();
  await opened.splice(0)[0]?.close();
});

/** One chat with Anna, and what step 1 made of everything she said. */
async function line(options: WorkbenchOptions = {}) {
  const clock = manualClock();
  const administrators = new Set<string>();
  const receipts: Receipt[] = [];
  const full = { disk: false };
  const on = await workbench({
    clock,
    isAdministrator: async (_chat, sender) => administrators.has(sender),
    around: (store) => ({
      ...store,
      async receive(batch) {
        if (full.disk) throw new Error('the disk is full');
        receipts.push(...batch.receipts);
        return store.receive(batch);
      },
    }),
    ...options,
  });
  opened.push(on);
  for (const chat of ['test_1', 'test_-5']) {
    await mkdir(join(on.folder, 'groups', chat, 'default'), { recursive: true });
    await writeFile(join(on.folder, 'groups', chat, 'default/MEMORY.md'), MEMORY);
  }
  return { ...lineOn(on, clock, receipts), full, administrators };
}

function lineOn(on: Workbench, clock: ManualClock, receipts: Receipt[]) {
  const message = (text: string, more: Partial<InboundMessage> = {}): InboundMessage => ({
    ...{ kind: 'message', chat: { address: '1', kind: 'direct', title: 'Anna' }, threadId: null, text },
    ...{ platformMessageId: String(++lastId), sentAt: 0, mentionsBot: false, replyTo: null },
    sender: { address: 'anna', name: 'Anna', administrator: false },
    ...more,
  });
  const hand = async (...events: InboundMessage[]) => {
    await on.receive(...events);
    await on.settled();
  };
  return {
    ...{ on, clock, receipts, message, hand },
    say: (text: string, more: Partial<InboundMessage> = {}) => hand(message(text, more)),
    /** What the last thing said became. */
    last: () => receipts.at(-1),
    lastText: () => on.texts().at(-1),
    remembers: async (word: string, chat = 'test_1') =>
      (await readFile(join(on.folder, 'groups', chat, 'default/MEMORY.md'), 'utf8')).includes(word),
  };
}

let lastId = 100;
const asCommand = { kind: 'command', command: { name: 'memory', argument: 'yes swordfish' } };
const GROUP = { chat: { address: '-5', kind: 'group' as const, title: 'Garden' } };
const BEN = { sender: { address: 'ben', name: 'Ben', administrator: false } };

describe('a yes', () => {
  it('becomes the command that was asked about, and is never conversation', async () => {
    const { on, say, last, lastText, remembers } = await line();
    await say('/memory forget swordfish');
    expect(await remembers('swordfish')).toBe(true);
    await say(' Yes! ');
    expect(last()).toMatchObject(asCommand);
    expect(await remembers('swordfish')).toBe(false);
    expect(await remembers('marlin')).toBe(true);
    expect(lastText()).toMatch(/^Forgotten:/);
    expect(lastText()).not.toContain('swordfish');
    expect(on.asked).toEqual([]);
  });

  it('ends the turns in flight first, which then know nothing of it any more', async () => {
    const { on, hand, message, lastText } = await line();
    const knew: boolean[] = [];
    on.answer((request, signal) => {
      knew.push(JSON.stringify(request.messages).includes('swordfish'));
      if (knew.length > 1) return 'what word?';
      return new Promise((resolve) => signal.addEventListener('abort', () => resolve('cut off')));
    });
    await on.receive(message('what is the word?'));
    await expect.poll(() => knew).toEqual([true]);
    await on.receive(message('/memory forget swordfish'));
    await expect.poll(lastText).toMatch(/^This would be removed/);
    await hand(message('yes'));
    expect(knew.length).toBeGreaterThan(1);
    expect(knew.at(-1)).toBe(false);
    expect(on.texts().toSorted()).toEqual([
      expect.stringMatching(/^Forgotten:/),
      expect.stringMatching(/^This would be removed/),
      'what word?',
    ]);
  });

  it('is conversation before the question, the second time, and after two minutes', async () => {
    const { say, last, clock, remembers } = await line();
    await say('yes');
    expect(last()).toMatchObject({ kind: 'message', text: 'yes' });
    await say('/memory forget marlin');
    await clock.advance(119_999);
    await say('yes');
    expect(last()).toMatchObject({ kind: 'command' });
    await say('yes');
    expect(last()).toMatchObject({ kind: 'message' });
    await say('/memory forget swordfish');
    await clock.advance(120_000);
    await say('yes');
    expect(last()).toMatchObject({ kind: 'message' });
    expect(await remembers('swordfish')).toBe(true);
  });

  it('counts from nobody else and from no other room', async () => {
    const { say, last, remembers } = await line();
    await say('/memory forget swordfish');
    await say('yes', { sender: { address: 'ben', name: 'Ben', administrator: true } });
    expect(last()).toMatchObject({ kind: 'message' });
    await say('yes', { threadId: '7' });
    expect(last()).toMatchObject({ kind: 'message' });
    expect(await remembers('swordfish')).toBe(true);
    await say('yes');
    expect(last()).toMatchObject(asCommand);
  });

  it.each(['no', 'yes please', '/status', 'yes?'])(
    'is no answer any more once anything else was said, also in one batch; that is handled as usual: %s',
    async (other) => {
      const { on, hand, message, say, receipts, remembers } = await line();
      await say('/memory forget swordfish');
      await hand(message(other), message('yes'));
      expect(receipts.at(-2)?.kind).toBe(other === '/status' ? 'command' : 'message');
      expect(receipts.at(-1)).toMatchObject({ kind: 'message', text: 'yes' });
      expect(await remembers('swordfish')).toBe(true);
      // It was said to the persona.
      expect(JSON.stringify(on.asked.at(-1)?.messages.at(-1)?.content)).toContain('>yes<');
    },
  );

  it('answers the newer of two questions', async () => {
    const { say, last, remembers } = await line();
    await say('/memory forget swordfish');
    await say('/memory forget marlin');
    await say('YES.');
    expect(last()).toMatchObject({ command: { argument: 'yes marlin' } });
    expect([await remembers('swordfish'), await remembers('marlin')]).toEqual([true, false]);
  });

  it('still counts when the platform hands in the question again, or the disk was full when it came', async () => {
    const { hand, message, say, last, full } = await line();
    const question = message('/memory forget swordfish');
    await hand(question);
    await hand(question);
    const yes = message('yes');
    full.disk = true;
    await expect(hand(yes)).rejects.toThrow('the disk is full');
    full.disk = false;
    await hand(yes);
    expect(last()).toMatchObject(asCommand);
    await say('yes');
    expect(last()).toMatchObject({ kind: 'message' });
  });

  it('is carried out once, though the platform hands it in again', async () => {
    const { on, hand, message, say } = await line();
    await say('/memory forget swordfish');
    const yes = message('yes');
    await hand(yes);
    await hand(yes);
    expect(on.texts().filter((text) => text.startsWith('Forgotten:'))).toHaveLength(1);
    expect(on.asked).toEqual([]);
  });

  it('needs no mention in a group, but the right to change things there', async () => {
    const { say, last, lastText, remembers, administrators } = await line();
    await say('/memory forget swordfish', GROUP);
    expect(lastText()).toBe('Only owners and administrators of this group can do that.');
    await say('yes', GROUP);
    expect(last()).toMatchObject({ kind: 'message' });
    await say('/memory yes swordfish', { ...GROUP, ...BEN });
    expect(lastText()).toBe('Only owners and administrators of this group can do that.');
    expect(await remembers('swordfish', 'test_-5')).toBe(true);
    administrators.add('anna');
    await say('/memory forget swordfish', GROUP);
    await say('yes', { ...GROUP, ...BEN });
    expect(last()).toMatchObject({ kind: 'message' });
    await say('yes', GROUP);
    expect(last()).toMatchObject(asCommand);
    expect(await remembers('swordfish', 'test_-5')).toBe(false);
  });

  it('typed as a command needs no question; nothing to forget asks none', async () => {
    const { say, last, remembers } = await line();
    await say('/memory forget herring');
    await say('yes');
    expect(last()).toMatchObject({ kind: 'message' });
    await say('/memory yes swordfish');
    expect(await remembers('swordfish')).toBe(false);
  });

  it('survives in the store what it was asked with: signs, quotes, line ends', async () => {
    const { say, last } = await line();
    await say('/memory forget "the\n word"');
    await say('yes');
    expect(last()).toMatchObject({ command: { argument: 'yes "the\n word"' } });
  });

  it('counts after the process has ended and another began', async () => {
    const { on, say, clock, receipts } = await line();
    await say('/memory forget swordfish');
    const next = await on.die();
    opened.splice(0, 1, next);
    const after = lineOn(next, clock, receipts);
    await after.say('yes');
    expect(after.last()).toMatchObject(asCommand);
    expect(await after.remembers('swordfish')).toBe(false);
    await after.say('yes');
    expect(after.last()).toMatchObject({ kind: 'message' });
  });

  it('counts at another gateway than the one that asked, once', async () => {
    const { on, say, last, clock, receipts, remembers } = await line();
    const other = await on.beside('other');
    opened.push(other);
    const there = lineOn(other, clock, receipts);
    await say('/memory forget swordfish');
    await there.say('yes');
    expect(last()).toMatchObject(asCommand);
    expect(await remembers('swordfish')).toBe(false);
    await say('yes');
    expect(last()).toMatchObject({ kind: 'message' });
    await there.say('/memory forget marlin');
    await say('no');
    await there.say('yes');
    expect(last()).toMatchObject({ kind: 'message' });
    expect(await remembers('marlin')).toBe(true);
  });
});

describe('what counts as a plain yes', () => {
  it('is the word alone, whatever its case, stops and white space', () => {
    for (const text of ['yes', 'YES', ' Yes.', 'yes!!', 'yes . !', '\u200eyes\n'])
      expect(isJust('yes', text, false)).toBe(true);
    for (const text of ['yes?', 'yesyes', 'yes, please', 'no', '', 'y', '"yes"', '@bot yes'])
      expect(isJust('yes', text, false)).toBe(false);
    expect(isJust('yes', '@coterie_bot yes!', true)).toBe(true);
    expect(isJust('yes', 'yes @coterie_bot', true)).toBe(true);
    expect(isJust('yes', '@coterie_bot yes please', true)).toBe(false);
  });
});

describe('files of an answer', () => {
  it('follow its text, a message each, and only the text is shown as a reply', async () => {
    const { on, say, administrators } = await line();
    administrators.add('anna');
    await mkdir(join(on.folder, 'groups/test_-5/memory'), { recursive: true });
    await writeFile(join(on.folder, 'groups/test_-5/memory/2026-11-22.md'), 'x');
    await say('/memory export', GROUP);
    expect(
      on.sent.map(({ part, options }) => ({ file: part.file?.name, replies: options.replyTo !== null })),
    ).toEqual([
      { file: undefined, replies: true },
      { file: 'default-MEMORY.md', replies: false },
      { file: 'memory-2026-11-22.md', replies: false },
    ]);
  });
});
