/** Messages that were typed while the gateway was away arrive once, in their order, whatever happens on the way. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createQueue, type Delivery, type Keeping, type Waiting } from '../../web/src/chat/queue.ts';

function browser(most = Number.POSITIVE_INFINITY): Keeping {
  const kept = new Map<string, string>();
  return {
    getItem: (key) => kept.get(key) ?? null,
    setItem(key, value) {
      if (value.length > most) throw new DOMException('full', 'QuotaExceededError');
      kept.set(key, value);
    },
    removeItem: (key) => void kept.delete(key),
    key: (n) => [...kept.keys()][n] ?? null,
    get length() {
      return kept.size;
    },
  };
}

/** Takes a message once per id, as the real one does. */
function gateway() {
  const taken = new Map<string, Waiting>();
  let answers: ('taken' | 'away' | 'lost')[] = [];
  return {
    texts: () => [...taken.values()].map(({ text }) => text),
    next: (...kinds: typeof answers) => {
      answers = [...answers, ...kinds];
    },
    async deliver(message: Waiting): Promise<Delivery> {
      const answer = answers.shift() ?? 'taken';
      await null;
      if (answer !== 'away' && !taken.has(message.id)) taken.set(message.id, message);
      return { kind: answer === 'taken' ? 'taken' : 'again' };
    },
  };
}

const message = (text: string, at = 0): Waiting => ({
  id: `id-${text}`,
  chat: 'board_main',
  text,
  files: [],
  at,
});
const nothing = () => {};
const PREFIX = 'message / ';

describe('the queue of the browser', () => {
  it('delivers in the order of typing, also within one millisecond', async () => {
    const { deliver, texts } = gateway();
    const queue = createQueue(browser(), PREFIX, deliver, nothing);
    for (const text of ['c', 'b', 'a']) queue.add(message(text));
    expect(await queue.send()).toBe('done');
    expect(texts()).toEqual(['c', 'b', 'a']);
    expect(queue.waiting()).toEqual([]);
  });

  it('keeps what the gateway did not take, over a reload', async () => {
    const kept = browser();
    const { deliver, next, texts } = gateway();
    next('away');
    const queue = createQueue(kept, PREFIX, deliver, nothing);
    queue.add(message('one'));
    expect(await queue.send()).toBe('again');
    const reloaded = createQueue(kept, PREFIX, deliver, nothing);
    expect(reloaded.waiting().map(({ text }) => text)).toEqual(['one']);
    await reloaded.send();
    expect(texts()).toEqual(['one']);
  });

  it('sends what is typed during a run in the same run', async () => {
    const { deliver, texts } = gateway();
    const queue = createQueue(browser(), PREFIX, deliver, nothing);
    queue.add(message('one'));
    const run = queue.send();
    queue.add(message('two', 1));
    expect(await run).toBe('done');
    expect(texts()).toEqual(['one', 'two']);
  });

  it('removes by id, not the first: the other stays when one was removed meanwhile', async () => {
    const kept = browser();
    const { deliver, texts } = gateway();
    const queue = createQueue(
      kept,
      PREFIX,
      async (each) => {
        // Another tab was faster, and has removed it.
        kept.removeItem(PREFIX + each.id);
        return deliver(each);
      },
      nothing,
    );
    queue.add(message('one'));
    queue.add(message('two', 1));
    await queue.send();
    expect(texts()).toEqual(['one', 'two']);
  });

  it('goes on with the next when one is refused, and keeps that one with the reason', async () => {
    const { deliver, texts } = gateway();
    const queue = createQueue(
      browser(),
      PREFIX,
      async (each) => (each.text === 'bad' ? { kind: 'refused', reason: 'no' } : deliver(each)),
      nothing,
    );
    queue.add(message('bad'));
    queue.add(message('good', 1));
    expect(await queue.send()).toBe('done');
    expect(texts()).toEqual(['good']);
    expect(queue.waiting()).toMatchObject([{ text: 'bad', refused: 'no' }]);
    queue.remove('id-bad');
    expect(queue.waiting()).toEqual([]);
  });

  it('delivers what the browser has no room for', async () => {
    const { deliver, texts } = gateway();
    const queue = createQueue(browser(100), PREFIX, deliver, nothing);
    queue.add(message('x'.repeat(500)));
    await queue.send();
    expect(texts()).toEqual(['x'.repeat(500)]);
    expect(queue.waiting()).toEqual([]);
  });

  it('tells which have arrived', async () => {
    const seen: (string | null)[] = [];
    const queue = createQueue(browser(), PREFIX, gateway().deliver, (each) => seen.push(each?.text ?? null));
    queue.add(message('one'));
    await queue.send();
    expect(seen).toEqual([null, 'one']);
  });

  it('leaves alone what waits for another gateway below the same host', async () => {
    const kept = browser();
    const [here, there] = [gateway(), gateway()];
    createQueue(kept, 'message /there/ ', there.deliver, nothing).add(message('one'));
    await createQueue(kept, 'message /here/ ', here.deliver, nothing).send();
    expect(here.texts()).toEqual([]);
  });

  it('passes over what somebody else has put into the browser', () => {
    const kept = browser();
    kept.setItem(`${PREFIX}x`, 'no JSON {');
    kept.setItem(`${PREFIX}y`, '"words"');
    kept.setItem('other', '{}');
    expect(createQueue(kept, PREFIX, gateway().deliver, nothing).waiting()).toEqual([]);
  });

  it('delivers each message once and in order, over lost answers, reloads and several tabs', async () => {
    const act = fc.oneof(
      fc.constant({ kind: 'type' as const }),
      fc.record({
        kind: fc.constant('send' as const),
        tab: fc.nat(2),
        answer: fc.constantFrom('taken', 'away', 'lost'),
      }),
      fc.record({ kind: fc.constant('reload' as const), tab: fc.nat(2) }),
      fc.record({ kind: fc.constant('both' as const) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(act, { maxLength: 30 }), async (acts) => {
        const kept = browser();
        const { deliver, next, texts } = gateway();
        const open = () => createQueue(kept, PREFIX, deliver, nothing);
        const tabs = [open(), open(), open()];
        const typed: string[] = [];
        for (const each of acts) {
          if (each.kind === 'type') {
            typed.push(`${typed.length}`);
            tabs[0]?.add(message(`${typed.length - 1}`));
          } else if (each.kind === 'send') {
            next(each.answer as 'taken' | 'away' | 'lost');
            await tabs[each.tab]?.send();
          } else if (each.kind === 'reload') tabs[each.tab] = open();
          else await Promise.all(tabs.map((tab) => tab.send()));
        }
        next();
        while ((await tabs[1]?.send()) === 'again');
        expect(texts()).toEqual(typed);
        expect(tabs[2]?.waiting()).toEqual([]);
      }),
    );
  });
});
