/**
 * The last request of a view is kept from turn to turn: whatever happened in a room, the requests are the same as those of a gateway
 * that renders each window anew.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LastRequests } from '../../src/conversation/context/knowledge.js';
import type { Settings } from '../../src/conversation/services.js';
import type { Attachment, InboundMessage } from '../../src/core/message.js';
import type { ModelRequest } from '../../src/core/model.js';
import type { Store } from '../../src/core/store.js';
import { manualClock } from '../fakes/clock.js';
import { type Answer, type Workbench, workbench } from '../harness/conversation.js';
import { rounds } from '../harness/rounds.js';

const CHAT = { address: '-5', kind: 'group' as const, title: 'Garden' };
const MIRA = { address: '1', name: 'Mira', administrator: true };
const NAMES = ['Luna', 'Max'] as const;
const PICTURE: Attachment = {
  ...{ kind: 'image', source: 'p', name: 'p', mimeType: null, bytes: 1, seconds: null },
};

type Event =
  /** Said to personas, or to nobody. */
  | { kind: 'say'; to: readonly string[]; replies: 'plainly' | 'to the other' | 'with a tool' | 'not at all' }
  /** Many lines to nobody and at last one to a persona, handed in together. */
  | { kind: 'burst'; lines: number; to: readonly string[] }
  /** Lines to personas and to nobody in turn, and albums among them, handed in together. */
  | { kind: 'mixed'; lines: { to: readonly string[]; album: boolean }[] }
  | { kind: 'edit' | 'delete' | 'react'; back: number }
  | { kind: 'forget'; back: number }
  | { kind: 'reset' }
  | { kind: 'rename' }
  | { kind: 'event' };

const to = fc.constantFrom([], ['Luna'], ['Max'], ['Luna', 'Max']);
const back = fc.nat({ max: 60 });
const event: fc.Arbitrary<Event> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('say' as const),
      to,
      replies: fc.constantFrom('plainly', 'plainly', 'to the other', 'with a tool', 'not at all'),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('burst' as const), lines: fc.integer({ min: 1, max: 40 }), to }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('mixed' as const),
      lines: fc.array(fc.record({ to, album: fc.boolean() }), { minLength: 2, maxLength: 8 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constantFrom('edit' as const, 'delete' as const, 'react' as const),
      back,
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('forget' as const), back }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'reset' as const }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'rename' as const }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'event' as const }) },
);
const settings: fc.Arbitrary<Partial<Settings>> = fc.constantFrom(
  { compactAfterMessages: 200, keepRecentMessages: 80, overheardMessages: 200 },
  { compactAfterMessages: 200, keepRecentMessages: 80, overheardMessages: 30 },
  { compactAfterMessages: 20, keepRecentMessages: 8, overheardMessages: 60 },
  // Compaction comes too late for this one: the window has more than a request is made from.
  { compactAfterMessages: 3, keepRecentMessages: 2, overheardMessages: 10 },
);

const isFlush = ({ messages }: ModelRequest) => messages.at(-1)?.content.startsWith('Memory flush.') === true;
const isSummary = ({ messages }: ModelRequest) =>
  messages.at(-1)?.content.endsWith('Conversation summary: write the new one.') === true;
const askedOf = ({ messages }: ModelRequest) =>
  /Your name here is (.+?)\. You talk/.exec(messages[0]?.content ?? '')?.[1] ?? '';

/**
 * As text, without what differs between two gateways: the folder; the calls' ids, which come from ids of turns, and these
 * are counted differently where work overlaps; and memory, which stands as it was when the copy was made, with what has
 * changed since at the end (test/conversation/prefix.test.ts).
 */
const requestsOf = (on: Workbench) =>
  on.asked.map(({ messages }) =>
    JSON.stringify(messages)
      .replaceAll(on.folder, '')
      .replaceAll(/\\n\\n# Memory \(this persona\).*?(?="\})/g, '')
      .replaceAll(/(\\n\\n)?\(Not said by anybody: your memory has changed.*?<\/memory_now>\\n/g, '')
      .replaceAll(/"(id|callId)":"[a-z0-9]{9}"/g, '"$1":"-"'),
  );

/** Plays a history from the beginning, and ends with everybody answering once more. Returns all requests. */
async function play(
  events: Event[],
  options: { settings: Partial<Settings>; around: (store: Store) => Store },
): Promise<string[]> {
  const clock = manualClock();
  const on = await workbench({ ...options, clock, memoryTools: true, firstId: 1_000 });
  try {
    let replies: (Event & { kind: 'say' })['replies'] = 'plainly';
    let said = 0;
    on.answer(async (request): Promise<Answer> => {
      if (isFlush(request)) return 'done';
      if (isSummary(request)) return `summed up, ${request.messages.length}`;
      // A window may be compacted while a turn runs, and then it is chance what a turn after this one finds.
      await on.conversation.resting();
      if (request.messages.at(-1)?.role === 'tool') return 'noted';
      const me = askedOf(request);
      if (replies === 'not at all') return { fault: 'model_unreachable' };
      if (replies === 'to the other') return `@${me === 'Luna' ? 'Max' : 'Luna'} and you?`;
      if (replies === 'plainly') return `${me} answers`;
      return {
        calls: [{ name: 'write_memory', arguments: { scope: 'chat_daily', content: `${me} was here` } }],
      };
    });
    const resting = async () => {
      await on.settled();
      await on.conversation.resting();
    };
    const settled = async () => {
      await resting();
      await clock.advance(60_000);
      await resting();
    };
    const message = (text: string): InboundMessage => ({
      ...{ kind: 'message', chat: CHAT, threadId: null, platformMessageId: `p${++said}`, sender: MIRA, text },
      ...{ sentAt: clock.now(), mentionsBot: false, replyTo: null },
    });
    const calling = (names: readonly string[]) =>
      names.length === 0 ? `nobody w${said + 1}x` : `${names.join(' and ')}: w${said + 1}x`;
    const earlier = (n: number) => Math.max(1, said - n);

    for (const name of NAMES) await on.receive(message(`/persona new ${name}`));
    await settled();
    for (const name of NAMES) await on.receive(message(`/persona invite ${name}`));
    await settled();
    for (const each of events) {
      if (each.kind === 'say') {
        replies = each.replies;
        await on.receive(message(calling(each.to)));
      } else if (each.kind === 'burst') {
        replies = 'plainly';
        const lines = Array.from({ length: each.lines }, () => message(calling([])));
        await on.receive(...lines, message(calling(each.to)));
      } else if (each.kind === 'mixed') {
        replies = 'plainly';
        const events = each.lines.flatMap((one) => {
          const first = message(calling(one.to));
          if (!one.album) return [first];
          const item = { album: `album${said}`, attachments: [PICTURE] };
          return [
            { ...first, ...item },
            { ...message(''), ...item },
          ];
        });
        const received = on.receive(...events);
        await clock.advance(5_000);
        await received;
      } else if (each.kind === 'edit') {
        const platformMessageId = `p${earlier(each.back)}`;
        const text = `w${earlier(each.back)}x, changed`;
        await on.receive({
          ...{ kind: 'edit', chat: CHAT, sender: MIRA, platformMessageId, text },
          ...{ mentionsBot: false, editedAt: clock.now() },
        });
      } else if (each.kind === 'delete') {
        await on.receive({ kind: 'deleted', chat: CHAT, platformMessageIds: [`p${earlier(each.back)}`] });
      } else if (each.kind === 'react') {
        const platformMessageIds = on.sentIds.slice(-1 - each.back).slice(0, 1);
        await on.receive({
          ...{ kind: 'reaction', chat: CHAT, sender: MIRA, platformMessageIds, sign: '👍' },
          sentAt: clock.now(),
        });
      } else if (each.kind === 'forget') {
        await on.receive(message(`/memory yes w${earlier(each.back)}x`));
      } else if (each.kind === 'reset') {
        await on.receive(message('/reset'));
      } else if (each.kind === 'rename') {
        const folder = join(on.folder, 'groups/test_-5/luna');
        await mkdir(folder, { recursive: true });
        await writeFile(join(folder, 'PERSONA.md'), `---\nname: Luna ${++said}\naliases: [Luna]\n---\n`);
      } else {
        replies = 'plainly';
        await on.conversation.tell({
          ...{
            id: `e${++said}`,
            room: 'test_-5',
            about: 'schedule',
            text: `it is ${said}`,
            personaId: 'max',
          },
        });
      }
      await settled();
    }
    replies = 'plainly';
    await on.receive(message('Luna and Max: well?'));
    await settled();
    return requestsOf(on);
  } finally {
    await on.close();
  }
}

describe('a window with cached messages', () => {
  it('gives the same requests as one that is rendered anew in each turn (property)', async () => {
    let revision = 0;
    /** No revision is ever seen twice here, nor one of a turn that reads files: so no rendering serves a second turn. */
    const forgetful = (store: Store): Store => ({
      ...store,
      async readRoom(...ask) {
        const seen = await store.readRoom(...ask);
        revision += 1_000;
        return seen && { ...seen, revision };
      },
    });
    await fc.assert(
      fc.asyncProperty(fc.array(event, { minLength: 4, maxLength: 24 }), settings, async (events, chosen) => {
        const kept = await play(events, { settings: chosen, around: (store) => store });
        const anew = await play(events, { settings: chosen, around: forgetful });
        // The windows of two personas are compacted beside each other: which of them asks first is nobody's promise.
        expect(kept.toSorted()).toEqual(anew.toSorted());
      }),
      { numRuns: rounds({ few: 5, many: 50 }) },
    );
  }, 240_000);

  it('is not overwritten by a run that was cut off before the room changed', () => {
    const kept = new LastRequests();
    const at = (revision: number) => ({ room: 'test_1', personaId: 'default', revision });
    const memory = { memory: 'new', dailyLog: '', recalled: '', summary: '' };
    kept.keep(at(2), { memory });
    kept.keep(at(1), { memory: { ...memory, memory: 'old' } });
    expect(kept.of(at(2)).memory).toBe(memory);
  });

  it('gives way to others when all prompts together become large', () => {
    const kept = new LastRequests();
    const at = (n: number) => ({ room: `test_${n}`, personaId: 'default', revision: 0 });
    for (let n = 0; n < 20; n++) {
      kept.keep(at(n), {
        memory: { memory: 'm'.repeat(1_000_000), dailyLog: '', recalled: '', summary: '' },
      });
    }
    expect(kept.of(at(0)).memory).toBeNull();
    expect(kept.of(at(19)).memory).not.toBeNull();
  });

  it('says of a turn that had no answer so, however far back it lies', async () => {
    const on = await workbench();
    try {
      on.answer(() => ({ fault: 'model_unreachable' }));
      await on.say('nobody answered this');
      await on.settled();
      on.answer(() => 'fine');
      for (let n = 1; n <= 60; n++) {
        await on.say(`word-${n}`);
        await on.settled();
      }
      const [, first, second] = on.asked.at(-1)?.messages ?? [];
      expect(first?.content).toContain('nobody answered this');
      expect(second).toMatchObject({ role: 'assistant', content: '(I gave no answer to this.)' });
    } finally {
      await on.close();
    }
  }, 60_000);

  it('calls others by their names of now, in what they said long ago, too', async () => {
    const on = await workbench();
    try {
      const group = { chat: CHAT, sender: MIRA };
      for (const name of NAMES) await on.say(`/persona new ${name}`, group);
      await on.settled();
      for (const name of NAMES) await on.say(`/persona invite ${name}`, group);
      await on.settled();
      await on.say('Luna and Max, hello', group);
      await on.settled();
      await on.say('Max, and you?', group);
      await on.settled();
      expect(JSON.stringify(on.asked.at(-1)?.messages)).toContain('sender=\\"Luna\\"');
      const file = join(on.folder, 'groups/test_-5/luna/PERSONA.md');
      await writeFile(file, '---\nname: Selene\n---\n');
      await on.say('Max, who was that?', group);
      await on.settled();
      const shown = JSON.stringify(on.asked.at(-1)?.messages.slice(1));
      expect(shown).toContain('sender=\\"Selene\\"');
      expect(shown).not.toContain('sender=\\"Luna\\"');
    } finally {
      await on.close();
    }
  });

  it('appends: what a turn was shown before stands at the same place, word for word, in the next', async () => {
    const on = await workbench();
    try {
      for (let n = 1; n <= 70; n++) {
        await on.say(`word-${n}`);
        await on.settled();
      }
      for (const [n, { messages }] of on.asked.entries()) {
        const before = on.asked[n - 1]?.messages ?? [];
        expect(messages.slice(0, before.length)).toEqual(before);
      }
      expect(on.asked.at(-1)?.messages).toHaveLength(2 * 70);
    } finally {
      await on.close();
    }
  }, 60_000);
});
