/** What a chat sees of what a persona saves, and how it takes that back: over the real store and real files. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { compose } from '../../src/channels/discord/outbound.js';
import { discordLength } from '../../src/channels/markdown/discord.js';
import { replyOf } from '../../src/conversation/deliver/reply.js';
import type { Channel } from '../../src/core/channel.js';
import type { InboundMessage } from '../../src/core/message.js';
import type { ModelRequest } from '../../src/core/model.js';
import { type Answer, type Workbench, type WorkbenchOptions, workbench } from '../harness/conversation.js';

const opened: Workbench[] = [];
afterEach(async () => {
  await opened.splice(0)[0]?.close();
});

const GROUP: Partial<InboundMessage> = {
  chat: { address: '-5', kind: 'group', title: 'Garden' },
  mentionsBot: true,
};
const ADMIN = { sender: { address: 'boss', name: 'Boss', administrator: true } };

const writes = (tier: number, content: string) => ({
  name: 'write_tiered_memory',
  arguments: { tier, content },
});
const notes = (content: string) => ({
  name: 'write_memory',
  arguments: { scope: 'chat_daily', content },
});

async function bench(options: WorkbenchOptions = {}) {
  const settings = { announce: null, ...options.settings };
  const on = await workbench({ memoryTools: true, ...options, settings });
  opened.push(on);
  return on;
}

/** Answers a turn with these calls, then with `noted`. */
function saving(on: Workbench, ...calls: NonNullable<Exclude<Answer, string>['calls']>) {
  on.answer((request) => (request.messages.at(-1)?.role === 'tool' ? 'noted' : { calls }));
}

async function tell(on: Workbench, text: string, more: Partial<InboundMessage> = {}) {
  await on.say(text, more);
  await on.settled();
}

const replyingTo = (on: Workbench, text: string): Partial<InboundMessage> => {
  const n = on.texts().findIndex((sent) => sent.includes(text));
  return {
    replyTo: {
      ...{ platformMessageId: on.sentIds[n] ?? '', senderName: 'bot', text: on.texts()[n] ?? '' },
      ours: true,
    },
  };
};
const memoryOf = (on: Workbench, chat = 'test_1') =>
  readFile(join(on.folder, 'groups', chat, 'default/MEMORY.md'), 'utf8');
const today = () => new Date().toISOString().slice(0, 10);
const allOf = (request: ModelRequest | undefined) => JSON.stringify(request?.messages);

describe('the note on what was saved', () => {
  it('stands small under the reply, in the same message, and in no transcript', async () => {
    const on = await bench();
    saving(on, writes(1, '- likes blue roses'));
    await tell(on, 'I like blue roses');
    const [sent] = on.sent;
    expect(on.texts()).toEqual(['noted\n\n— remembered: likes blue roses']);
    const at = 'noted\n\n'.length;
    expect(sent?.part).toMatchObject({
      marks: [{ kind: 'italic', offset: at, length: '— remembered: likes blue roses'.length }],
      note: at,
    });
    on.answer(() => 'hello');
    await tell(on, 'and now?', replyingTo(on, 'noted'));
    expect(allOf(on.asked.at(-1))).toContain('<in_reply_to sender=\\"bot\\">noted</in_reply_to>');
    expect(allOf(on.asked.at(-1))).not.toContain('— remembered');
    expect(on.texts().at(-1)).toBe('hello');
  });

  it('is not in a group unless it is set, and never with off', async () => {
    const on = await bench();
    saving(on, writes(2, '- likes roses'));
    await tell(on, 'I like roses', GROUP);
    expect(on.texts()).toEqual(['noted']);
    await on.close();
    opened.pop();
    const off = await bench({ settings: { announce: 'off' } });
    saving(off, writes(1, '- likes roses'));
    await tell(off, 'I like roses');
    expect(off.texts()).toEqual(['noted']);
    await off.close();
    opened.pop();
    const set = await bench({ settings: { announce: 'quiet' } });
    saving(set, writes(2, '- likes roses'));
    await tell(set, 'I like roses', GROUP);
    expect(set.texts()).toEqual(['noted\n\n— remembered: likes roses']);
  });

  it('in full says what came and what went, and where', async () => {
    const on = await bench({ settings: { announce: 'full' } });
    saving(on, writes(1, '## People\n- likes tea'));
    await tell(on, 'I like tea');
    saving(on, writes(1, '- likes coffee'), notes('switched to coffee'));
    await tell(on, 'coffee now');
    expect(on.texts()).toEqual([
      'noted\n\n— default/MEMORY.md, tier 1\n+ likes tea',
      `noted\n\n— default/MEMORY.md, tier 1\n+ likes coffee\n− likes tea\n— memory/${today()}.md\n+ switched to coffee`,
    ]);
  });

  it('in full fits into a message of Discord, however long it and the reply are', async () => {
    const on = await bench({ settings: { announce: 'full' } });
    const lines = Array.from({ length: 20 }, (_, n) => `- fact ${n} ${'_so_ *long* '.repeat(20)}`);
    saving(on, writes(2, lines.join('\n')));
    await tell(on, 'so much');
    const [first = ''] = on.texts();
    const note = first.slice('noted\n\n'.length);
    expect(note).toMatch(/^— default\/MEMORY\.md, tier 2\n\+ fact 0 [^\n]*…\n[\s\S]*\n\(\+1\d\)$/);
    const said = {
      ...{ turnId: 't', personaId: 'luna', speaker: 'Luna', kind: 'direct' as const, batch: [] },
      ...{ lateByHours: null, note, appearance: { personaId: 'luna', name: 'L'.repeat(60), avatar: null } },
    };
    for (const text of ['noted', 'word '.repeat(199), 'word '.repeat(399), '_'.repeat(5_000)]) {
      for (const { body } of replyOf({ compose } as Channel, said, text)) {
        expect(discordLength(body) + 70).toBeLessThanOrEqual(2_000);
      }
    }
  });

  it('is one short line however much was saved, and none where nothing changed', async () => {
    const on = await bench();
    const lines = Array.from({ length: 40 }, (_, n) => `- fact ${n} ${'very '.repeat(30)}long`);
    saving(on, writes(2, lines.join('\n')));
    await tell(on, 'so much');
    const [first = ''] = on.texts();
    const note = first.slice('noted\n\n'.length);
    expect(note).toMatch(/^— remembered: fact 0 [^\n]*… \(\+3[0-9]\)$/);
    expect(note.length).toBeLessThan(260);
    saving(on, writes(2, lines.join('\n')));
    await tell(on, 'again');
    expect(on.texts().at(-1)).toBe('noted');
    saving(on, writes(2, ''));
    await tell(on, 'forget that');
    expect(on.texts().at(-1)).toMatch(/^noted\n\n— no longer remembered: fact 0 /);
  });

  it('is there once after an end of the process between the save and the reply', async () => {
    const on = await bench();
    let calls = 0;
    on.answer((request, signal) => {
      if (request.messages.at(-1)?.role !== 'tool') return { calls: [writes(1, '- likes roses')] };
      calls++;
      // The process ends here.
      return new Promise((resolve) => signal.addEventListener('abort', () => resolve('too late')));
    });
    await on.say('I like roses');
    await expect.poll(() => calls).toBe(1);
    const next = await on.die();
    opened.splice(opened.indexOf(on), 1, next);
    next.answer(() => 'noted');
    await next.settled();
    expect(next.texts()).toEqual(['noted\n\n— remembered: likes roses']);
    expect(await memoryOf(next)).toContain('- likes roses');
  });

  it('is the same when the platform has to be sent it again', async () => {
    const on = await bench();
    on.results.push({ kind: 'unreachable', reason: 'cut', taken: 'no' });
    saving(on, writes(1, '- likes roses'));
    await tell(on, 'I like roses');
    const whole = 'noted\n\n— remembered: likes roses';
    await expect.poll(() => on.sentIds.length, { timeout: 10_000 }).toBe(1);
    expect(on.texts().every((text) => text === whole)).toBe(true);
  });
});

describe('a plain undo that replies to it', () => {
  it('takes back exactly what that answer saved, and is never conversation', async () => {
    const on = await bench();
    saving(on, writes(1, '- likes tea'));
    await tell(on, 'I like tea');
    saving(on, writes(1, '- likes tea\n- likes roses'), notes('spoke of roses'));
    await tell(on, 'and roses');
    const asked = on.asked.length;
    await tell(on, ' Undo! ', replyingTo(on, 'roses'));
    expect(on.texts().at(-1)).toMatch(/^Undone: the change of tier 1 of `default\/MEMORY.md`, a line of/);
    expect(await memoryOf(on)).toContain('- likes tea\n');
    expect(await memoryOf(on)).not.toContain('roses');
    expect((await on.memory.readDaily('test_1', today())).trim()).toBe('');
    expect(on.asked.length).toBe(asked);
    await tell(on, 'undo', replyingTo(on, 'remembered: likes roses'));
    expect(on.texts().at(-1)).toBe('There is nothing left to undo.');
    // The one before still stands, and can be taken back as well.
    await tell(on, 'UNDO', replyingTo(on, 'remembered: likes tea'));
    expect(await memoryOf(on)).not.toContain('tea');
  });

  it('loses nothing that was changed since', async () => {
    const on = await bench();
    saving(on, writes(1, '- likes tea'));
    await tell(on, 'I like tea');
    const file = join(on.folder, 'groups/test_1/default/MEMORY.md');
    await writeFile(file, (await memoryOf(on)).replace('- likes tea', '- likes tea\n- by hand'));
    await tell(on, 'undo', replyingTo(on, 'likes tea'));
    expect(on.texts().at(-1)).toMatch(/was changed again since, and undoing would lose that/);
    expect(await memoryOf(on)).toContain('- likes tea\n- by hand');
  });

  it('is conversation elsewhere: without a reply, or to a message without a note', async () => {
    const on = await bench();
    saving(on, writes(1, '- likes tea'));
    await tell(on, 'I like tea');
    on.answer(() => 'plain');
    await tell(on, 'undo');
    await tell(on, 'undo', replyingTo(on, 'plain'));
    await tell(on, 'undo all of it', replyingTo(on, 'likes tea'));
    expect(on.texts().slice(1)).toEqual(['plain', 'plain', 'plain']);
    expect(await memoryOf(on)).toContain('- likes tea');
  });

  it('in a group needs no mention, and the right to change things', async () => {
    const on = await bench({ settings: { announce: 'quiet' } });
    saving(on, writes(2, '- meets on Mondays'));
    await tell(on, 'we meet on Mondays', GROUP);
    const reply = { ...GROUP, mentionsBot: false, ...replyingTo(on, 'Mondays') };
    await tell(on, 'undo', reply);
    expect(on.texts().at(-1)).toBe('Only owners and administrators of this group can do that.');
    expect(await memoryOf(on, 'test_-5')).toContain('Mondays');
    await tell(on, 'undo', { ...reply, ...ADMIN });
    expect(on.texts().at(-1)).toMatch(/^Undone/);
    expect(await memoryOf(on, 'test_-5')).not.toContain('Mondays');
  });
});
