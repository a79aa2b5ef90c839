/** A reply that is shown while it is written: when, how often, and what stands there at the end. */

import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import type { SendResult } from '../../src/core/channel.js';
import { CHAT, chatAt, message, receive } from '../contract/store/words.js';
import { rounds } from '../harness/rounds.js';
import { PART, type Scene, type ScreenOptions, scene, type Trouble } from './screen.js';

let on: Scene;
afterEach(() => on.close());

const start = async (options?: ScreenOptions) => {
  on = await scene(options);
  return on;
};
const kinds = () => on.screen.calls.map(({ call }) => call);
const broken = (taken: 'no' | 'unknown', retryAfterMs?: number): SendResult => ({
  ...{ kind: 'unreachable', reason: 'as scripted', taken },
  ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
});

describe('while it is written', () => {
  it('a quick answer is simply sent', async () => {
    await start();
    const turn = await on.begin('t1');
    turn.tell('Hel');
    await on.clock.advance(900);
    turn.tell('Hello');
    await turn.finish('Hello');
    await on.settle();
    expect(kinds()).toEqual(['send']);
    expect(on.screen.texts()).toEqual(['Hello']);
  });

  it('a longer one can be seen after a second, grows once a second, and ends as its final text', async () => {
    await start();
    const turn = await on.begin('t1');
    turn.tell('one');
    await on.clock.advance(1_000);
    expect(on.screen.texts()).toEqual(['one']);
    for (const text of ['one t', 'one tw', 'one two']) {
      turn.tell(text);
      await on.clock.advance(200);
    }
    expect(on.screen.texts()).toEqual(['one']);
    await on.clock.advance(400);
    expect(on.screen.texts()).toEqual(['one two']);
    await turn.finish('one two three');
    await on.settle();
    expect(kinds()).toEqual(['send', 'edit', 'edit']);
    expect(on.screen.texts()).toEqual(['one two three']);
  });

  it('nothing is done at the end where the final text stands there already', async () => {
    await start();
    const turn = await on.begin('t1');
    turn.tell('done');
    await on.clock.advance(1_500);
    await turn.finish('done');
    await on.settle();
    expect(kinds()).toEqual(['send']);
    expect(await on.store.counts()).toMatchObject({ undelivered: 0 });
  });

  it('a long one grows into further messages; what was too many is taken back', async () => {
    await start();
    const turn = await on.begin('t1');
    const long = `${'x'.repeat(PART)}${'y'.repeat(PART)}z`;
    turn.tell(long);
    await on.clock.advance(5_000);
    expect(on.screen.texts().join('')).toBe(long);
    // It begins anew, and has less to say.
    turn.tell('');
    turn.tell('short');
    await on.clock.advance(2_000);
    await turn.finish('short');
    await on.settle();
    expect(on.screen.texts()).toEqual(['short']);
    expect(kinds().filter((kind) => kind === 'remove')).toHaveLength(2);
  });

  it('a preview is shown where the chat has that, is kept alive, and nothing of it is stored', async () => {
    await start({ previews: true });
    const turn = await on.begin('t1');
    turn.tell('thinking aloud');
    await on.clock.advance(60_000);
    expect(on.screen.preview).toBe('thinking aloud');
    expect(new Set(kinds())).toEqual(new Set(['preview']));
    const times = on.screen.calls.map(({ at }) => at);
    for (const [n, at] of times.entries()) expect(at - (times[n - 1] ?? at)).toBeLessThan(30_000);
    expect(times.length).toBeLessThan(5);
    expect(await on.store.counts()).toMatchObject({ undelivered: 0 });
    await turn.finish('thought');
    await on.settle();
    expect(on.screen.texts()).toEqual(['thought']);
    expect(on.screen.preview).toBeNull();
  });

  it('one that replaces a shown answer grows where that one is, also in a chat with previews', async () => {
    await start({ previews: true });
    const turn = await on.begin('t1');
    on.screen.messages.push({ id: 'm9', key: 'k', text: 'before' });
    const part = { speaker: 'Default', key: 'k', platformMessageId: 'm9', sentAt: on.clock.now() };
    await on.store.show('t1', [{ ...part, body: { text: 'before', marks: [] } }]);
    await turn.resume();
    turn.tell('another');
    await on.clock.advance(1_500);
    expect(on.screen.texts()).toEqual(['another']);
    await turn.finish('another one');
    await on.settle();
    expect(on.screen.texts()).toEqual(['another one']);
    expect(new Set(kinds())).toEqual(new Set(['edit']));
  });

  it('where there is no preview for a chat, an edited message does', async () => {
    await start({ previews: false });
    const turn = await on.begin('t1');
    turn.tell('one');
    await on.clock.advance(2_500);
    expect(on.screen.texts()).toEqual(['one']);
    await turn.finish('two');
    await on.settle();
    expect(on.screen.texts()).toEqual(['two']);
    expect(kinds().filter((kind) => kind === 'preview')).toHaveLength(1);
  });
});

describe('what goes wrong with it', () => {
  it('a further message of which it is unknown whether it arrived is taken back when the reply needs none', async () => {
    await start();
    const turn = await on.begin('t1');
    turn.tell('a');
    await on.clock.advance(1_286);
    on.screen.trouble.send.push({ result: broken('unknown'), taken: true });
    turn.tell(`${'x'.repeat(PART)}u`);
    await on.clock.advance(1_714);
    expect(on.screen.texts()).toHaveLength(2);
    await turn.finish('a');
    await on.settle();
    expect(on.screen.texts()).toEqual(['a']);
    expect(await on.store.counts()).toMatchObject({ undelivered: 0 });
  });

  it('an edit that was refused: what stands there goes, and the whole text is sent anew', async () => {
    await start();
    const turn = await on.begin('t1');
    turn.tell('one');
    await on.clock.advance(1_000);
    on.screen.trouble.edit.push({ result: { kind: 'refused', reason: 'too old' } });
    await turn.finish('one two');
    await on.settle();
    expect(kinds()).toEqual(['send', 'edit', 'remove', 'send']);
    expect(on.screen.texts()).toEqual(['one two']);
    // Else a platform that recognises resends would give back the old one.
    expect(new Set(on.screen.calls.filter(({ call }) => call === 'send').map(({ key }) => key)).size).toBe(2);
    // A reply to it finds who wrote it.
    const [{ id } = { id: '' }] = on.screen.messages;
    const replyTo = { platformMessageId: id, senderName: 'bot', text: 'one two', ours: true };
    await receive(on.store, [
      message('reply', 'really?', { chat: chatAt(CHAT, { kind: 'direct' }), replyTo }),
    ]);
    const seen = await on.store.readRoom(CHAT, 'me', on.clock.now());
    expect(seen?.waiting.map((said) => said.replyTo?.personaId)).toEqual(['default']);
  });

  it.each([
    ['resends are recognised', {}],
    ['it can be asked what has arrived', { askable: true as const }],
  ])(
    'that one too whose id is not known, where %s: what comes later does not stand above it',
    async (_how, platform) => {
      await start(platform);
      const turn = await on.begin('t1');
      turn.tell('x'.repeat(PART));
      await on.clock.advance(1_000);
      on.screen.trouble.send.push({ result: broken('unknown'), taken: true });
      turn.tell(`${'x'.repeat(PART)}tail`);
      await on.clock.advance(2_000);
      expect(on.screen.texts()).toEqual(['x'.repeat(PART), 'tail']);
      on.screen.trouble.edit.push({ result: { kind: 'refused', reason: 'too old' } });
      on.screen.silence = 2;
      await turn.finish(`${'y'.repeat(PART)}tail`);
      await on.settle();
      expect(on.screen.texts()).toEqual(['y'.repeat(PART), 'tail']);
      expect(await on.store.counts()).toMatchObject({ undelivered: 0 });
    },
  );

  it('what is to go while the platform cannot be reached goes when it can', async () => {
    await start();
    const turn = await on.begin('t1');
    turn.tell(`${'x'.repeat(PART)}more`);
    await on.clock.advance(3_000);
    expect(on.screen.texts()).toEqual(['x'.repeat(PART), 'more']);
    on.screen.isConnected = false;
    on.screen.trouble.edit.push({ result: { kind: 'refused', reason: 'too old' } });
    on.screen.trouble.edit.push({ result: { kind: 'refused', reason: 'too old' } });
    await turn.finish('short');
    await on.clock.advance(1_500);
    expect(on.screen.texts()).toEqual(['x'.repeat(PART), 'more']);
    on.screen.isConnected = true;
    await on.settle();
    expect(on.screen.texts()).toEqual(['short']);
    expect(await on.store.counts()).toMatchObject({ undelivered: 0 });
  });

  it('a message of which there is too much, while the platform cannot be reached, goes later', async () => {
    await start();
    const turn = await on.begin('t1');
    turn.tell(`${'x'.repeat(PART)}more`);
    await on.clock.advance(3_000);
    await turn.finish('x'.repeat(PART));
    on.screen.isConnected = false;
    await on.clock.advance(500);
    expect(on.screen.texts()).toEqual(['x'.repeat(PART), 'more']);
    on.screen.isConnected = true;
    await on.settle();
    expect(on.screen.texts()).toEqual(['x'.repeat(PART)]);
    expect(await on.store.counts()).toMatchObject({ undelivered: 0 });
  });

  it('a message that somebody deleted is sent anew', async () => {
    await start();
    const turn = await on.begin('t1');
    turn.tell('one');
    await on.clock.advance(1_000);
    on.screen.messages.length = 0;
    turn.tell('one two');
    await on.clock.advance(5_000);
    await turn.finish('one two three');
    await on.settle();
    expect(on.screen.texts()).toEqual(['one two three']);
  });

  it('a limit of a minute is waited for, by the edits and by the end', async () => {
    await start();
    const turn = await on.begin('t1');
    turn.tell('one');
    await on.clock.advance(1_000);
    on.screen.trouble.edit.push({ result: broken('no', 60_000) }, { result: broken('no', 60_000) });
    turn.tell('one two');
    await on.clock.advance(30_000);
    expect(kinds()).toEqual(['send', 'edit']);
    await turn.finish('one two three');
    await on.clock.advance(59_000);
    expect(kinds()).toEqual(['send', 'edit', 'edit']);
    expect(on.screen.texts()).toEqual(['one']);
    await on.clock.advance(2_000);
    expect(on.screen.texts()).toEqual(['one two three']);
  });

  it('a slow edit delays neither the turn nor, for long, the end', async () => {
    await start();
    const turn = await on.begin('t1');
    turn.tell('one');
    await on.clock.advance(1_000);
    on.screen.trouble.edit.push({ slowMs: 3_600_000 });
    turn.tell('one two');
    await on.clock.advance(1_000);
    await turn.finish('one two three');
    await on.post('beside it');
    await on.clock.advance(3_000);
    expect(on.screen.texts()).toEqual(['one two three', 'beside it']);
  });

  it('a first message of which nobody knows whether it arrived is found, and completed', async () => {
    await start();
    const turn = await on.begin('t1');
    on.screen.trouble.send.push({ result: broken('unknown'), taken: true });
    turn.tell('one');
    await on.clock.advance(5_000);
    await turn.finish('one two');
    await on.settle();
    expect(on.screen.texts()).toEqual(['one two']);
  });

  it('other messages are not held up by one that is written', async () => {
    await start();
    const turn = await on.begin('t1');
    turn.tell('one');
    await on.clock.advance(1_000);
    await on.post('status');
    await on.clock.advance(0);
    expect(on.screen.texts()).toEqual(['one', 'status']);
    await turn.finish('one two');
    await on.settle();
    expect(on.screen.texts()).toEqual(['one two', 'status']);
  });
});

describe('when it ends early', () => {
  it.each(['stop', 'reset'] as const)('after /%s what can be seen is completed as that', async (name) => {
    await start();
    const turn = await on.begin('t1');
    turn.tell(`${'x'.repeat(PART)}tail`);
    await on.clock.advance(3_000);
    await turn.command(name);
    turn.tell('never to be seen');
    await on.settle();
    expect(on.screen.texts()).toEqual(['x'.repeat(PART), 'tail …\n(stopped)']);
    expect(await on.store.counts()).toMatchObject({ undelivered: 0 });
  });

  it.each(['stop', 'reset'] as const)('before anything can be seen, /%s leaves nothing', async (name) => {
    await start();
    const turn = await on.begin('t1');
    on.screen.trouble.send.push({ result: broken('no') });
    turn.tell('one');
    await on.clock.advance(1_500);
    await turn.command(name);
    await on.settle();
    expect(on.screen.texts()).toEqual([]);
    expect(await on.store.counts()).toMatchObject({ undelivered: 0 });
  });

  it('in the middle of the first send, or of an edit, too', async () => {
    await start();
    const turn = await on.begin('t1');
    on.screen.trouble.send.push({ slowMs: 4_000 });
    turn.tell('one');
    await on.clock.advance(1_500);
    await turn.command('stop');
    await on.settle();
    expect(on.screen.texts()).toEqual(['one …\n(stopped)']);

    const next = await on.begin('t2');
    next.tell('two');
    await on.clock.advance(1_000);
    on.screen.trouble.edit.push({ slowMs: 1_500 });
    next.tell('two three');
    await on.clock.advance(1_200);
    await next.command('stop');
    await on.settle();
    expect(on.screen.texts()[1]).toBe('two three …\n(stopped)');
  });

  it('a turn that failed: its sentence takes the place of what was visible', async () => {
    await start();
    const turn = await on.begin('t1');
    turn.tell('half of');
    await on.clock.advance(1_000);
    await turn.finish('No model answers.');
    await on.settle();
    expect(on.screen.texts()).toEqual(['No model answers.']);
  });

  it('the process: the next one finds it, goes on with it, and it stands there once and whole', async () => {
    await start();
    const turn = await on.begin('t1');
    turn.tell('one');
    await on.clock.advance(1_000);
    await on.crash();
    await turn.resume();
    turn.tell('another');
    await on.clock.advance(2_500);
    expect(on.screen.texts()).toEqual(['another']);
    await turn.finish('another one');
    await on.settle();
    expect(on.screen.texts()).toEqual(['another one']);
  });

  it('the process, while the first message was under way', async () => {
    await start();
    const turn = await on.begin('t1');
    on.screen.trouble.send.push({ result: broken('unknown'), taken: true }, { slowMs: 1 });
    turn.tell('one');
    await on.clock.advance(1_000);
    await on.crash();
    await turn.resume();
    turn.tell('another');
    await on.clock.advance(2_500);
    await turn.finish('another one');
    await on.settle();
    expect(on.screen.texts()).toEqual(['another one']);
  });
});

describe('whatever happens', () => {
  const text = fc
    .integer({ min: 1, max: 3 * PART })
    .map((n) => 'abcdefghijklmnopqrstuvwxyz'.repeat(9).slice(0, n));
  const trouble: fc.Arbitrary<Trouble> = fc.oneof(
    fc.constant({ result: { kind: 'refused', reason: 'no' } } as const),
    fc.constant({ result: broken('no') }),
    fc.constant({ result: broken('no', 60_000) }),
    fc.boolean().map((taken) => ({ result: broken('unknown'), taken })),
    fc.record({ slowMs: fc.integer({ min: 1, max: 5_000 }), taken: fc.boolean() }),
  );
  const event = fc.oneof(
    { weight: 4, arbitrary: text.map((said) => ({ kind: 'tell' as const, said })) },
    { weight: 4, arbitrary: fc.integer({ min: 1, max: 3_000 }).map((ms) => ({ kind: 'wait' as const, ms })) },
    { weight: 2, arbitrary: trouble.map((next) => ({ kind: 'edit' as const, next })) },
    // A refused send is the end of a message, shown while it is written or not.
    {
      weight: 1,
      arbitrary: trouble
        .filter((next) => !('result' in next && next.result.kind === 'refused'))
        .map((next) => ({ kind: 'send' as const, next })),
    },
    { weight: 1, arbitrary: fc.nat({ max: 2 }).map((n) => ({ kind: 'delete' as const, n })) },
    { weight: 1, arbitrary: fc.constant({ kind: 'crash' as const }) },
  );

  it.each([
    ['resends are recognised', {}],
    ['it can be asked what has arrived', { askable: true as const }],
  ])(
    'what is visible in the end is the final text, where %s; and no chat was changed twice in a second (property)',
    async (_how, platform) => {
      const end = fc.oneof(
        text.map((said) => ({ kind: 'finish' as const, said })),
        fc.constantFrom({ kind: 'stop' as const }, { kind: 'reset' as const }),
      );
      await fc.assert(
        fc.asyncProperty(fc.array(event, { maxLength: 14 }), end, async (events, last) => {
          const here = await scene(platform);
          on = here;
          const { screen, clock } = here;
          try {
            const turn = await here.begin('t1');
            let deleted = false;
            for (const each of events) {
              if (each.kind === 'tell') turn.tell(each.said);
              else if (each.kind === 'wait') await clock.advance(each.ms);
              else if (each.kind === 'delete')
                deleted = screen.messages.splice(each.n, 1).length > 0 || deleted;
              else if (each.kind === 'crash') {
                await here.crash();
                await turn.resume();
              } else screen.trouble[each.kind].push(each.next);
            }
            const changes = screen.calls.filter(({ call }) => call === 'send' || call === 'edit');
            for (const [n, { at }] of changes.entries()) {
              expect(at - (changes[n - 1]?.at ?? Number.NEGATIVE_INFINITY)).toBeGreaterThanOrEqual(1_000);
            }
            if (last.kind === 'finish') await turn.finish(last.said);
            else await turn.command(last.kind);
            await here.settle();
            const texts = screen.texts();
            expect(await here.store.counts()).toMatchObject({ undelivered: 0 });
            if (last.kind === 'finish') {
              const parts = screen.channel.compose(last.said).map((part) => part.text);
              // One that was final already when somebody deleted it stays deleted.
              expect(texts).toEqual(deleted ? parts.filter((part) => texts.includes(part)) : parts);
            } else if (!deleted && texts.length > 0) {
              expect(texts.at(-1)).toMatch(/ …\n\(stopped\)$/);
              expect(texts.slice(0, -1).join()).not.toContain('stopped');
            }
          } finally {
            await here.close();
          }
        }),
        { numRuns: rounds({ few: 25, many: 120 }) },
      );
      on = await scene();
    },
  );
});
