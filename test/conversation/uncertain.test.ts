/** A message of which nobody knows whether it arrived, on a platform that can be asked: it stands once. */
import { afterEach, describe, expect, it } from 'vitest';
import type { SendResult } from '../../src/core/channel.js';
import { FORGOTTEN, phraseOf } from '../../src/core/phrase.js';
import { CHAT, message, receive } from '../contract/store/words.js';
import { type Scene, type ScreenOptions, scene } from './screen.js';

let on: Scene;
afterEach(() => on.close());

const cut: SendResult = { kind: 'unreachable', reason: 'cut', taken: 'unknown' };
const calls = (kind: string) => on.screen.calls.filter(({ call }) => call === kind).length;

describe('a message whose send was cut off', () => {
  it('is noted as sent where it has arrived', async () => {
    on = await scene({ askable: true });
    on.screen.trouble.send.push({ result: cut, taken: true });
    await on.post('one');
    await on.post('two');
    await on.settle();
    expect(on.screen.texts()).toEqual(['one', 'two']);
    expect(calls('send')).toBe(2);
    expect((await on.store.recordedIn(CHAT)).ids).toEqual(new Set(['m1', 'm2']));
    expect(on.looked).toEqual(['found']);
  });

  it('is sent again where it has not, as often as needed', async () => {
    on = await scene({ askable: true });
    for (let n = 0; n < 4; n++) on.screen.trouble.send.push({ result: cut });
    await on.post('one');
    await on.settle();
    expect(on.screen.texts()).toEqual(['one']);
    expect(await on.store.counts()).toMatchObject({ undelivered: 0 });
    expect(on.looked).toEqual(['absent', 'absent', 'absent', 'absent']);
  });

  it('goes out once more where nobody can tell, and is counted', async () => {
    on = await scene({ askable: 'in vain' });
    for (let n = 0; n < 2; n++) on.screen.trouble.send.push({ result: cut, taken: true });
    await on.post('one');
    await on.settle();
    expect(on.screen.texts()).toEqual(['one', 'one']);
    expect(on.looked).toEqual(['unknown', 'unknown']);
  });

  it('is not sent again before the platform has answered, and holds only its own chat', async () => {
    on = await scene({ askable: true });
    on.screen.trouble.send.push({ result: cut, taken: true });
    on.screen.silence = 3;
    await on.post('one');
    await on.clock.advance(2_500);
    await on.post('two');
    expect(on.screen.texts()).toEqual(['one']);
    await on.settle();
    expect(on.screen.texts()).toEqual(['one', 'two']);
    expect(calls('send')).toBe(2);
  });

  it('is looked for with what is known at each question, not only at the first', async () => {
    on = await scene({ askable: true });
    const { channel } = on.screen;
    const look = channel.wasDelivered?.bind(channel);
    const known: string[][] = [];
    channel.wasDelivered = async (to, part, options, { watermark, beforeAsking }) => {
      const search = {
        watermark,
        async beforeAsking() {
          const recorded = await beforeAsking();
          known.push([...(recorded ?? [])]);
          await receive(on.store, [message(`said-${known.length}`, 'meanwhile')]);
          return recorded;
        },
      };
      return look?.(to, part, options, search) ?? { kind: 'unknown' };
    };
    on.screen.trouble.send.push({ result: cut, taken: true });
    await on.post('one');
    await on.clock.advance(100);
    // Somebody takes it away: the first question says no more than that it is not the one.
    on.screen.messages = [];
    await on.settle();
    expect(known).toEqual([[], ['said-1']]);
  });

  it('is told apart from others in the same chat, several times in a row', async () => {
    on = await scene({ askable: true });
    for (let n = 0; n < 6; n++) on.screen.trouble.send.push({ result: cut, taken: n % 3 !== 1 });
    for (const text of ['one', 'two', 'three', 'four']) await on.post(text);
    await on.settle();
    expect(on.screen.texts()).toEqual(['one', 'two', 'three', 'four']);
  });

  it('is sent as it is when its time has come, not as it was when it failed', async () => {
    on = await scene({ askable: true });
    on.screen.trouble.send.push({ result: { ...cut, taken: 'no', retryAfterMs: 30_000 } });
    await on.post('swordfish');
    await on.clock.advance(1_000);
    await on.store.eraseWords(CHAT, phraseOf('swordfish'), FORGOTTEN);
    await on.settle();
    expect(on.screen.texts()).toEqual([FORGOTTEN]);
  });

  it('is not taken for one that was given up before it, and may stand there', async () => {
    const options: ScreenOptions = { askable: 'in vain' };
    on = await scene(options);
    on.screen.trouble.send.push({ result: cut }, { result: cut, taken: true }, { result: cut });
    await on.post('one');
    await on.settle();
    expect(on.screen.texts()).toEqual(['one']);
    options.askable = true;
    await on.post('two');
    await on.settle();
    expect(on.screen.texts()).toEqual(['one', 'two']);
    // What is known now is newer than what nobody knows.
    on.screen.trouble.send.push({ result: cut, taken: true });
    await on.post('three');
    await on.settle();
    expect(on.screen.texts()).toEqual(['one', 'two', 'three']);
  });
});

describe('an end of the process', () => {
  it.each([true, false])('in the middle of a send that arrived: %s', async (taken) => {
    on = await scene({ askable: true });
    on.screen.trouble.send.push({ slowMs: 60_000, taken });
    await on.post('one');
    await on.clock.advance(100);
    expect(on.screen.texts()).toEqual(taken ? ['one'] : []);
    await on.crash();
    await on.settle();
    expect(on.screen.texts()).toEqual(['one']);
    expect(await on.store.counts()).toMatchObject({ undelivered: 0 });
  });

  it('in the middle of the first look at a reply: it is found, and becomes the whole', async () => {
    on = await scene({ askable: true });
    const turn = await on.begin('t1');
    on.screen.trouble.send.push({ result: cut, taken: true });
    turn.tell('one');
    await on.clock.advance(1_500);
    expect(on.screen.texts()).toEqual(['one']);
    await on.crash();
    await turn.resume();
    await turn.finish('one and two');
    await on.settle();
    expect(on.screen.texts()).toEqual(['one and two']);
    expect(calls('send')).toBe(1);
  });

  it('of two in one chat, one of them a first look at a reply, none is taken for the other', async () => {
    on = await scene({ askable: true });
    const turn = await on.begin('t1');
    on.screen.trouble.send.push({ result: cut, taken: true }, { slowMs: 60_000 });
    turn.tell('one');
    await on.clock.advance(1_500);
    await on.post('beside');
    await on.clock.advance(100);
    await on.crash();
    await turn.resume();
    await turn.finish('one and two');
    await on.settle();
    // Before, what was found of the reply counted as the other message, which was then never said.
    expect(on.screen.texts()).toEqual(['one and two', 'beside']);
  });

  it('while a reset drops what is being sent: the next message is not taken for it', async () => {
    on = await scene({ askable: true });
    const turn = await on.begin('t1');
    on.screen.trouble.send.push({ slowMs: 60_000, taken: true }, { result: cut });
    await turn.finish('one');
    await on.clock.advance(100);
    await turn.command('reset');
    await on.crash();
    await on.post('two');
    await on.settle();
    expect(on.screen.texts()).toEqual(['one', 'two']);
  });

  it('leaves no half text where the reply has no use for it', async () => {
    on = await scene({ askable: true });
    const turn = await on.begin('t1');
    turn.tell(`${'x'.repeat(20)}tail`);
    await on.clock.advance(1_000);
    on.screen.trouble.send.push({ result: cut, taken: true });
    await on.clock.advance(1_500);
    expect(on.screen.texts()).toEqual(['x'.repeat(20), 'tail']);
    await turn.finish('short');
    await on.settle();
    expect(on.screen.texts()).toEqual(['short']);
  });

  it.each(['stop', 'reset'] as const)('and /%s: what was never seen ends what was', async (name) => {
    on = await scene({ askable: true });
    const turn = await on.begin('t1');
    turn.tell('x'.repeat(20));
    await on.clock.advance(1_000);
    on.screen.trouble.send.push({ result: cut });
    turn.tell(`${'x'.repeat(20)}tail`);
    await on.clock.advance(1_500);
    await turn.command(name);
    await on.settle();
    expect(on.screen.texts()).toEqual(['x'.repeat(20), 'tail …\n(stopped)']);
    expect(await on.store.counts()).toMatchObject({ undelivered: 0 });
  });

  it('and a stop: what was never seen is not said', async () => {
    on = await scene({ askable: true });
    const turn = await on.begin('t1');
    on.screen.trouble.send.push({ result: cut });
    turn.tell('one');
    await on.clock.advance(1_500);
    await on.crash();
    await turn.resume();
    await turn.command('stop');
    await on.settle();
    expect(on.screen.texts()).toEqual([]);
    expect(await on.store.counts()).toMatchObject({ undelivered: 0 });
  });
});
