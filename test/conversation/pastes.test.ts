/** A text that a client cut into messages is one message. */
import { afterEach, describe, expect, it } from 'vitest';
import { createPastes } from '../../src/conversation/receive/receive.js';
import type { Receipt, ReceiptOf } from '../../src/core/receipt.js';
import { manualClock } from '../fakes/clock.js';
import { type Workbench, workbench } from '../harness/conversation.js';

let on: Workbench | null = null;
afterEach(async () => {
  await on?.close();
  on = null;
});

const TYPED = { typedAtMost: [4_096] };

function said(text: string, at: number, more: Partial<ReceiptOf<'message'>> = {}): Receipt {
  return {
    ...{ kind: 'message', platformMessageId: `m${at}`, threadId: null, mentionsBot: false, replyTo: null },
    chat: { id: 'test_1', address: '1', kind: 'direct', title: 'Mira' },
    sender: { id: 'test_1', name: 'Mira', administrator: false },
    ...{ text, sentAt: at, receivedAt: at },
    ...more,
  };
}

describe('which messages are parts of one', () => {
  const albums = (...receipts: Receipt[]) => {
    const pastes = createPastes();
    return receipts
      .map((receipt) => pastes.noted(receipt, 0, [4_096]))
      .map((receipt) => (receipt.kind === 'message' ? (receipt.album ?? null) : null));
  };
  const long = 'x'.repeat(4_096);

  it('the next of the same person, within a second and a half, behind one that is nearly full', () => {
    expect(albums(said(long, 0), said('rest', 1_500))).toEqual(['paste:4096:m0', 'paste:4096:m0']);
    expect(albums(said(long, 0), said(long, 900), said('rest', 1_800), said('new', 1_900))).toEqual([
      ...['paste:4096:m0', 'paste:4096:m0', 'paste:4096:m0'],
      null,
    ]);
  });

  it('no other', () => {
    expect(albums(said('short', 0), said('rest', 100))).toEqual([null, null]);
    expect(albums(said(long, 0), said('rest', 5_000))[1]).toBeNull();
    expect(albums(said(long, 0), said('rest', 100, { forwardedFrom: 'Bob' }))[1]).toBeNull();
    const other = { sender: { id: 'test_2', name: 'Ben', administrator: false } };
    expect(albums(said(long, 0), said('rest', 100, other))[1]).toBeNull();
    expect(albums(said(long, 0), said('rest', 100, { threadId: '7' }))[1]).toBeNull();
  });
});

describe('the halves of a paste', () => {
  it('are one message of one turn, in the words in which they were cut', async () => {
    const clock = manualClock();
    on = await workbench({ can: TYPED, clock });
    await on.say(`${'a'.repeat(4_095)}b`);
    await clock.advance(1_500);
    expect(on.asked).toEqual([]);
    await on.say('eta and the rest');
    await clock.advance(3_000);
    await on.settled();
    expect(on.asked).toHaveLength(1);
    const shown = on.asked[0]?.messages.at(-1)?.content ?? '';
    expect(shown).toContain('abeta and the rest</user_message>');
    expect(shown.match(/<user_message/g)).toHaveLength(1);
  });

  it('also where others speak between them', async () => {
    const clock = manualClock();
    on = await workbench({ can: TYPED, clock });
    const chat = { address: '-5', kind: 'group' as const, title: 'Garden' };
    const ben = { chat, sender: { address: '2', name: 'Ben', administrator: false } };
    await on.say(`${'a'.repeat(4_095)}b`, { chat, mentionsBot: true });
    await clock.advance(400);
    await on.say('what a long text', ben);
    await on.say(`${'c'.repeat(4_095)}d`, { ...ben, mentionsBot: true });
    await clock.advance(400);
    await on.say('eta', { chat });
    await on.say('elta', ben);
    await clock.advance(3_000);
    await on.settled();
    const shown = on.asked.at(-1)?.messages.at(-1)?.content ?? '';
    expect(on.asked).toHaveLength(1);
    expect(shown).toContain('abeta</user_message>');
    expect(shown).toContain('cdelta</user_message>');
    expect(shown.match(/<user_message/g)).toHaveLength(3);
  });
});
