/** Albums: platforms deliver them item by item, and people mean one message. */

import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import type { InboundMessage } from '../../src/core/message.js';
import { type ManualClock, manualClock } from '../fakes/clock.js';
import { type Workbench, type WorkbenchOptions, workbench } from '../harness/conversation.js';
import { rounds } from '../harness/rounds.js';

const opened: Workbench[] = [];
afterEach(async () => {
  for (const on of opened.splice(0)) await on.close();
});

const DIRECT = { address: '1', kind: 'direct' as const, title: 'Mira' };
const GARDEN = { address: '-5', kind: 'group' as const, title: 'Garden' };

async function open(options: WorkbenchOptions = {}): Promise<{ on: Workbench; clock: ManualClock }> {
  const clock = manualClock();
  const on = await workbench({ clock, ...options });
  opened.push(on);
  return { on, clock };
}

let lastId = 0;
function item(source: string, more: Partial<InboundMessage> = {}): InboundMessage {
  return {
    ...{ kind: 'message', chat: DIRECT, threadId: null, platformMessageId: `p${++lastId}`, text: '' },
    ...{ sender: { address: '1', name: 'Mira', administrator: false }, sentAt: 0, mentionsBot: false },
    ...{ replyTo: null, album: 'a1' },
    attachments: [{ kind: 'image', source, name: source, mimeType: null, bytes: 1, seconds: null }],
    ...more,
  };
}

/** As the harness tells of a picture. */
const told = (...sources: string[]) => sources.map((source) => `[image ${source}]`).join('\n');
const lastUser = (on: Workbench) => on.asked.at(-1)?.messages.at(-1)?.content ?? '';

describe('an album', () => {
  it('is one message, with its caption and all its pictures', async () => {
    const { on, clock } = await open();
    await on.receive(item('a'), item('b', { text: 'which one?' }));
    await clock.advance(1_500);
    await on.receive(item('c'));
    await clock.advance(1_500);
    expect(on.asked).toEqual([]);
    await clock.advance(1_000);
    await on.settled();
    expect(on.asked).toHaveLength(1);
    expect(lastUser(on)).toMatch(/^<user_message sender="Mira" at="[^"]*">which one\?\n/);
    expect(lastUser(on).match(/<user_message/g)).toHaveLength(1);
    expect(lastUser(on)).toContain(`which one?\n${told('a', 'b', 'c')}</user_message>`);
    await on.say('and now?', { chat: DIRECT });
    await on.settled();
    expect(on.asked[1]?.messages.slice(0, on.asked[0]?.messages.length)).toEqual(on.asked[0]?.messages);
  });

  it('in a group is for whom its caption calls, wherever the caption stands', async () => {
    const { on, clock } = await open();
    const more = { chat: GARDEN };
    await on.receive(
      item('a', more),
      item('b', { ...more, text: '@bot which?', mentionsBot: true }),
      item('c', more),
    );
    await clock.advance(3_000);
    await on.settled();
    expect(on.asked).toHaveLength(1);
    expect(lastUser(on)).toContain(`@bot which?\n${told('a', 'b', 'c')}</user_message>`);
  });

  it('that nobody says anything about is only heard, as one message', async () => {
    const { on, clock } = await open();
    await on.receive(item('a', { chat: GARDEN }), item('b', { chat: GARDEN }));
    await clock.advance(3_000);
    await on.settled();
    expect(on.asked).toEqual([]);
    await on.say('hello', { chat: GARDEN, mentionsBot: true });
    await on.settled();
    expect(lastUser(on)).toContain(`>${told('a', 'b')}</user_message>`);
  });

  it('is told apart from another one, of the same or of somebody else', async () => {
    const { on, clock } = await open();
    const ben = { sender: { address: '2', name: 'Ben', administrator: false } };
    await on.receive(item('a'), item('b', { album: 'a2' }), item('c', { album: 'a2', ...ben }));
    await clock.advance(3_000);
    await on.settled();
    expect(lastUser(on).match(/<user_message/g)).toHaveLength(3);
  });

  it('holds up nothing but itself, and not for ever', async () => {
    const { on, clock } = await open();
    await on.say('hello', {
      chat: { ...DIRECT, address: '7' },
      sender: { address: '7', name: 'Ben', administrator: false },
    });
    await on.settled();
    expect(on.asked).toHaveLength(1);
    for (let n = 0; n < 30 && on.asked.length < 2; n++) {
      await on.receive(item(`p${n}`));
      await clock.advance(1_000);
    }
    await on.settled();
    expect(on.asked.length).toBeGreaterThan(1);
  });

  it('whose rest comes late is not answered again; a late caption is', async () => {
    const { on, clock } = await open();
    await on.receive(item('a'), item('b'));
    await clock.advance(10_000);
    await on.settled();
    await on.receive(item('c'));
    await clock.advance(10_000);
    await on.settled();
    expect(on.texts()).toEqual(['fine']);
    await on.receive(item('d', { text: 'which one?' }));
    await clock.advance(10_000);
    await on.settled();
    expect(on.texts()).toEqual(['fine', 'fine']);
    expect(lastUser(on)).toMatch(/\[image c\].*which one\?/s);
  });

  it('that is taken up after an end of the process is answered once', async () => {
    const { on, clock } = await open();
    await on.receive(item('a'), item('b'));
    const again = await on.die();
    opened.splice(opened.indexOf(on), 1, again);
    await again.settled();
    await again.receive(item('c'));
    await clock.advance(10_000);
    await again.settled();
    expect(again.asked).toHaveLength(1);
  });

  it('is answered once, whatever the order and the gaps in which it comes (property)', async () => {
    let early = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 0, max: 6_000 }), { minLength: 2, maxLength: 6 }),
        fc.nat({ max: 5 }),
        fc.boolean(),
        async (gaps, place, isGroup) => {
          const { on, clock } = await open();
          const caption = isGroup ? place % gaps.length : 0;
          const more = { chat: isGroup ? GARDEN : DIRECT };
          for (const [n, gap] of gaps.entries()) {
            const captioned = { text: '@bot which one?', mentionsBot: true };
            await on.receive(item(`i${n}`, n === caption ? { ...more, ...captioned } : more));
            await clock.advance(gap);
          }
          await clock.advance(30_000);
          await on.settled();
          expect(on.texts()).toEqual(['fine']);
          const shown = JSON.stringify(on.asked[0]?.messages);
          expect(shown).toContain('@bot which one?');
          // Whatever came before the caption, and soon behind it, is there.
          for (let n = 0; n < gaps.length; n++) {
            const since = gaps.slice(caption, n).every((gap) => gap < 2_000);
            if (n <= caption || since) expect(shown).toContain(`[image i${n}]`);
            if (n > caption && since) early++;
          }
          await on.close();
          opened.pop();
        },
      ),
      { numRuns: rounds({ few: 25, many: 120 }) },
    );
    expect(early).toBeGreaterThan(0);
  }, 120_000);
});
