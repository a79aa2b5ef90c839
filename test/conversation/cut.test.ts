/** Where a window may be cut: laws over random conversations as the store orders them. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { boundaries, cutPlace } from '../../src/conversation/compaction/content.js';
import type { HeardMessage } from '../../src/core/transcript.js';

let id = 0;
function heard(more: {
  author: 'ann' | 'luna' | 'rex';
  turnId: string | null;
  addressed: boolean;
  heardAfter: number;
}): HeardMessage {
  id++;
  const isPersona = more.author !== 'ann';
  return {
    id,
    room: 'test_1',
    author: isPersona
      ? { kind: 'persona', id: more.author }
      : { kind: 'person', id: 'test_ann', name: 'Ann', administrator: false },
    ...{ text: `message ${id}`, sentAt: id, receivedAt: id, platformMessageId: null, mentionsBot: false },
    ...{ replyTo: null, edited: false, turnId: more.turnId, addressed: more.addressed },
    position: { heardAfter: more.heardAfter, messageId: id },
  };
}

/** Turns of a batch and a reply (or none), with overheard lines between, placed as the store places them. */
const conversation = fc
  .array(
    fc.record({
      batch: fc.integer({ min: 1, max: 3 }),
      answered: fc.boolean(),
      overheard: fc.integer({ min: 0, max: 2 }),
      cameMeanwhile: fc.integer({ min: 0, max: 2 }),
    }),
    { minLength: 1, maxLength: 12 },
  )
  .map((turns) => {
    id = 0;
    const messages: HeardMessage[] = [];
    let newest = 0;
    turns.forEach(({ batch, answered, overheard, cameMeanwhile }, n) => {
      const turnId = `t${n}`;
      newest = Math.max(newest, id) + batch + overheard;
      const at = newest;
      for (let i = 0; i < overheard; i++) {
        messages.push(heard({ author: 'ann', turnId: null, addressed: false, heardAfter: at }));
      }
      for (let i = 0; i < batch; i++) {
        messages.push(heard({ author: 'ann', turnId, addressed: true, heardAfter: at }));
      }
      newest += cameMeanwhile;
      if (answered) {
        id = Math.max(id, newest);
        messages.push(heard({ author: 'luna', turnId, addressed: true, heardAfter: newest }));
      }
    });
    return messages;
  });

describe('a cut', () => {
  it('never parts a question from its answer, nor leaves room for something to slip in before it', () => {
    fc.assert(
      fc.property(conversation, (messages) => {
        for (const at of boundaries(messages)) {
          const before = messages.slice(0, at + 1);
          const after = messages.slice(at + 1);
          const turns = new Set(before.filter((m) => m.addressed).map((m) => m.turnId));
          expect(after.some((m) => m.addressed && turns.has(m.turnId))).toBe(false);
          const next = after[0];
          if (next) expect(next.position.heardAfter).toBeGreaterThan(messages[at]?.position.heardAfter ?? 0);
          else expect(messages[at]?.author.kind).toBe('persona');
        }
      }),
    );
  });

  it('leaves the newest exchange, and no more than is to be kept where it can', () => {
    fc.assert(
      fc.property(conversation, fc.integer({ min: 0, max: 20 }), (messages, keep) => {
        const place = cutPlace(messages, { messages: keep, tokens: 1e9, tokensOf: () => 1 });
        if (!place) return;
        const at = messages.findIndex((m) => m.position === place);
        expect(at).toBeGreaterThanOrEqual(0);
        expect(at).toBeLessThan(messages.length - 1);
        const kept = messages.slice(at + 1).filter((m) => m.addressed).length;
        const possible = boundaries(messages).filter((n) => n < messages.length - 1);
        const least = messages.slice((possible.at(-1) ?? -1) + 1).filter((m) => m.addressed).length;
        expect(kept).toBeLessThanOrEqual(Math.max(keep, least));
      }),
    );
  });

  it('is none where everything may stay', () => {
    id = 0;
    const messages = [
      heard({ author: 'ann', turnId: 't', addressed: true, heardAfter: 1 }),
      heard({ author: 'luna', turnId: 't', addressed: true, heardAfter: 1 }),
    ];
    expect(cutPlace(messages, { messages: 2, tokens: 1e9, tokensOf: () => 1 })).toBeNull();
    expect(cutPlace(messages, { messages: 0, tokens: 0, tokensOf: () => 1 })).toBeNull();
  });
});
