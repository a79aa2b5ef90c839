/** The order in which things were said: what a persona is shown is read as it was said, also what it only overheard. */

import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import type { InboundMessage } from '../../src/core/message.js';
import type { ModelRequest } from '../../src/core/model.js';
import { manualClock } from '../fakes/clock.js';
import { type Answer, type Workbench, workbench } from '../harness/conversation.js';
import { rounds } from '../harness/rounds.js';

const opened: Workbench[] = [];
afterEach(async () => {
  for (const on of opened.splice(0)) await on.close();
});

const GARDEN = { address: '-5', kind: 'group' as const, title: 'Garden' };
const PEOPLE = ['Mira', 'Ben'].map((name, n) => ({ address: String(n), name, administrator: true }));
const NAMES = ['Luna', 'Max'];

let lastId = 0;
const line = (text: string, more: Partial<InboundMessage> = {}): InboundMessage => ({
  ...{ kind: 'message', chat: GARDEN, threadId: null, platformMessageId: `p${++lastId}`, text },
  ...{ sender: PEOPLE[0] as InboundMessage['sender'], sentAt: 0, mentionsBot: false, replyTo: null },
  ...more,
});
const toBot = (text: string) => line(text, { mentionsBot: true });

/** What people said, in the order in which a request shows it. */
const saidIn = ({ messages }: ModelRequest) =>
  messages
    .slice(1)
    .flatMap(({ content }) => [...content.matchAll(/<user_message [^>]*>([^<]*)<\/user_message>/g)])
    .map(([, words]) => words);
const personaOf = ({ messages }: ModelRequest) =>
  /persona_id is (\w+)\./.exec(messages[0]?.content ?? '')?.[1] ?? '';

describe('what is overheard between two messages of one batch', () => {
  it('stands between them, and what follows behind them', async () => {
    const on = await workbench();
    opened.push(on);
    await on.receive(toBot('should I delete it?'), line('wait, not that one'), toBot('so?'), line('hm'));
    await on.settled();
    expect(on.asked).toHaveLength(1);
    expect(saidIn(on.asked[0] as ModelRequest)).toEqual([
      'should I delete it?',
      'wait, not that one',
      'so?',
      'hm',
    ]);
    await on.receive(toBot('thanks'));
    await on.settled();
    // A server that kept what it has read can go on from there.
    const before = on.asked[0]?.messages ?? [];
    expect(on.asked[1]?.messages.slice(0, before.length)).toEqual(before);
  });

  it('stands so for each of several who are asked', async () => {
    const on = await workbench();
    opened.push(on);
    for (const name of NAMES) await on.receive(line(`/persona new ${name}`));
    await on.settled();
    await on.receive(line('/persona invite Luna'));
    await on.settled();
    await on.receive(line('@Luna @Max shall we?'), line('not today'), line('@Luna @Max so?'));
    await on.settled();
    const [luna, max] = on.asked.map(saidIn);
    expect(luna).toEqual(['@Luna @Max shall we?', 'not today', '@Luna @Max so?']);
    expect(max).toEqual([...(luna ?? []), 'fine']);
  });

  it('gives way to what is asked where not both fit', async () => {
    const on = await workbench({ contextTokens: 3_000, settings: { maxOutputTokens: 300 } });
    opened.push(on);
    const long = 'some words of no use '.repeat(900);
    await on.receive(toBot('what is this?'), line(long), line('short'), toBot('and that?'));
    await on.settled();
    expect(saidIn(on.asked[0] as ModelRequest)).toEqual(['what is this?', 'short', 'and that?']);
  });

  it('of a turn without an answer is said to have had none once, behind the last of it', async () => {
    const on = await workbench();
    opened.push(on);
    on.answer(() => ({ fault: 'model_unreachable' }));
    await on.receive(toBot('one?'), line('aside'), toBot('two?'));
    await on.settled();
    on.answer(() => 'fine');
    await on.receive(toBot('three?'));
    await on.settled();
    const contents = on.asked.at(-1)?.messages.map(({ content }) => content) ?? [];
    expect(contents.filter((content) => content === '(I gave no answer to this.)')).toHaveLength(1);
    expect(contents[1]).toMatch(/one\?.*aside.*two\?/s);
  });
});

/** Who is called by a line of a burst, and by whom it is said; `pictures` stands for an album of so many. */
interface Line {
  to: readonly string[];
  by: number;
  pictures: number;
}

const oneLine: fc.Arbitrary<Line> = fc.record({
  to: fc.constantFrom([], [], [], ['Luna'], ['Max'], ['Luna', 'Max']),
  by: fc.nat({ max: 1 }),
  pictures: fc.constantFrom(0, 0, 0, 2, 3),
});

describe('the order of a request', () => {
  it('is the order in which it was said, and stays so in the next (property)', async () => {
    let between = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(oneLine, { minLength: 1, maxLength: 6 }), { minLength: 1, maxLength: 5 }),
        async (bursts) => {
          const clock = manualClock();
          const on = await workbench({ clock, firstId: 1_000 });
          try {
            on.answer((request): Answer => `${personaOf(request)} answers`);
            for (const name of NAMES) await on.receive(line(`/persona new ${name}`));
            await on.settled();
            await on.receive(line('/persona invite Luna'));
            await on.settled();
            let said = 0;
            for (const burst of bursts) {
              const events = burst.flatMap(({ to, by, pictures }) => {
                const sender = PEOPLE[by] as InboundMessage['sender'];
                const calling = to.length === 0 ? 'nobody' : `${to.join(' and ')}:`;
                if (pictures === 0) return [line(`${calling} w${++said}x`, { sender })];
                const album = `album${said + 1}`;
                return Array.from({ length: pictures }, () => {
                  said++;
                  const source = `${said}`;
                  return line(`${calling} w${said}x`, {
                    ...{ sender, album },
                    attachments: [
                      { kind: 'image', source, name: source, mimeType: null, bytes: 1, seconds: null },
                    ],
                  });
                });
              });
              const settled = on.receive(...events);
              await clock.advance(5_000);
              await settled;
              await on.settled();
            }
            const last = new Map<string, ModelRequest>();
            for (const request of on.asked) {
              const order =
                JSON.stringify(request.messages.slice(1))
                  .match(/(?<=w)\d+(?=x)/g)
                  ?.map(Number) ?? [];
              expect(order).toEqual([...new Set(order)].toSorted((a, b) => a - b));
              if (
                /Luna[^<]*<.*nobody.*Luna[^<]*<\/user_message>$/s.test(request.messages.at(-1)?.content ?? '')
              )
                between++;
              const before = last.get(personaOf(request))?.messages ?? [];
              expect(request.messages.slice(0, before.length)).toEqual(before);
              last.set(personaOf(request), request);
            }
          } finally {
            await on.close();
          }
        },
      ),
      { numRuns: rounds({ few: 12, many: 60 }) },
    );
    // It was about something.
    expect(between).toBeGreaterThan(0);
  }, 240_000);
});
