import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Part, Recipient, SendOptions, SendResult } from '../../src/core/channel.js';
import type { CommandOption, Interaction } from '../fakes/discord-words.js';
import { ALL_LET_IN, sendOptions } from '../harness/sending.js';
import { ANNA, CHANNEL, GUILD, garden, openStage, type Stage } from './discord-stage.js';

const GROUP: Recipient = { address: CHANNEL, threadId: null, kind: 'group' };
const CALLBACK = { method: 'POST', path: /callback$/ };

let stage: Stage;

beforeEach(async () => {
  stage = await openStage();
  garden(stage.fake);
  await stage.listen();
});
afterEach(() => stage.close());

async function command(name: string, options?: CommandOption[], channelId = CHANNEL): Promise<Interaction> {
  const before = stage.messages().length;
  const given = stage.fake.command({ from: ANNA, channelId, name, ...(options ? { options } : {}) });
  await stage.until(() => stage.messages().length > before);
  return given;
}

const answer = (text: string, replyTo: string, options: Partial<SendOptions> = {}): Promise<SendResult> => {
  const part: Part = { text, marks: [] };
  return stage.channel.send(GROUP, part, sendOptions({ replyTo, createdAt: stage.clock.now(), ...options }));
};

/** A little more time than we have until Discord would say that nobody answers. */
const deferred = async (given: Interaction) => {
  await stage.passes(1_800);
  await stage.fake.until(() => given.deferred, 'a deferral');
};

describe('a native command', () => {
  test('arrives as if it had been typed, and is answered as one', async () => {
    const option = { name: 'switch', type: 1, options: [{ name: 'name', type: 3, value: '"Luna B"' }] };
    const given = await command('persona', [option]);
    expect(stage.messages()).toMatchObject([
      { text: '/persona switch "Luna B"', platformMessageId: given.id, sender: { administrator: false } },
    ]);
    expect(stage.channel.awaitsAnswer(given.id)).toBe(true);
    const result = await answer('Switched.', given.id);
    expect(stage.fake.sent).toMatchObject([{ via: 'callback', content: 'Switched.', ephemeral: false }]);
    expect(result).toEqual({ kind: 'sent', platformMessageId: stage.fake.sent[0]?.id });
    expect(stage.channel.awaitsAnswer(given.id)).toBe(false);
    // What is sent without our token goes without it.
    expect(stage.fake.callsTo('POST', /callback/)).toMatchObject([{ authorization: null }]);
  });

  test('in a direct chat', async () => {
    const given = await command('help', undefined, stage.fake.dm(ANNA));
    expect(stage.messages()).toMatchObject([{ text: '/help', chat: { kind: 'direct' } }]);
    await answer('Well.', given.id);
    expect(given.messages).toMatchObject([{ via: 'callback', content: 'Well.' }]);
  });

  test('that takes longer is announced; the answer fills the place', async () => {
    const given = await command('archive');
    await deferred(given);
    expect(stage.channel.awaitsAnswer(given.id)).toBe(true);
    const result = await answer('Copied.', given.id);
    expect(given.messages).toMatchObject([{ via: 'edit', content: 'Copied.' }]);
    expect(result).toEqual({ kind: 'sent', platformMessageId: stage.fake.sent[0]?.id });
  });

  test('of several parts is answered by one after the other', async () => {
    const given = await command('help');
    await answer('one', given.id);
    await answer('two', given.id, { key: '2' });
    await answer('three', given.id, { key: '3' });
    expect(given.messages.map(({ via, content }) => `${via} ${content}`)).toEqual([
      ...['callback one', 'followup two', 'followup three'],
    ]);
  });

  test('calls nobody', async () => {
    const given = await command('help');
    await answer('@everyone <@100000000000000101>', given.id);
    await answer('@here', given.id, { key: '2' });
    expect(stage.fake.sent.map(({ pinged }) => pinged)).toEqual([[], []]);
  });

  test('that arrives twice waits once', async () => {
    const given = await command('help');
    const [call] = stage.fake.calls.slice(-1);
    stage.fake.closeAll(4000);
    await stage.until(() => stage.channel.status().connected);
    await answer('Well.', given.id);
    expect(stage.fake.sent).toHaveLength(1);
    expect(call).toBeDefined();
  });
});

describe('the answer', () => {
  test('that Discord took without our hearing of it is there once', async () => {
    const given = await command('reset');
    stage.fake.fail(CALLBACK, { drop: 'after' });
    expect(await answer('Cleared.', given.id)).toMatchObject({ kind: 'unreachable', taken: 'no' });
    const again = await answer('Cleared.', given.id, { earlierTries: 1 });
    expect(again).toEqual({ kind: 'sent', platformMessageId: stage.fake.sent[0]?.id });
    expect(stage.fake.sent).toHaveLength(1);
  });

  test('fills its place, too, where we did not hear that it was announced', async () => {
    const given = await command('archive');
    stage.fake.fail(CALLBACK, { drop: 'after' });
    await deferred(given);
    await answer('Copied.', given.id);
    expect(given.messages).toMatchObject([{ via: 'edit', content: 'Copied.' }]);
    expect(stage.fake.sent).toHaveLength(1);
  });

  test('in parts, of which one was taken without our hearing of it, is there once', async () => {
    const given = await command('help');
    await answer('one', given.id);
    stage.fake.fail({ method: 'POST', path: /webhooks/ }, { drop: 'after' });
    const createdAt = stage.clock.now();
    expect(await answer('two', given.id, { key: '2', createdAt })).toMatchObject({ kind: 'unreachable' });
    expect(await answer('two', given.id, { key: '2', createdAt, earlierTries: 1 })).toMatchObject({
      kind: 'sent',
    });
    expect(stage.fake.sent.map(({ content }) => content)).toEqual(['one', 'two']);
  });

  test('is an ordinary message where Discord does not know the command any more', async () => {
    stage.fake.settings.interactionAnswerMs = -1;
    const given = await command('reset');
    expect(await answer('Cleared.', given.id)).toMatchObject({ kind: 'sent' });
    expect(stage.fake.sent).toMatchObject([{ via: 'message', content: 'Cleared.', replyTo: null }]);
    expect(stage.channel.awaitsAnswer(given.id)).toBe(false);
  });

  test('is an ordinary message where the token ran out', async () => {
    const given = await command('archive');
    await deferred(given);
    stage.fake.settings.interactionTokenMs = -1;
    await answer('Copied.', given.id);
    expect(stage.fake.sent).toMatchObject([{ via: 'message', content: 'Copied.' }]);
  });

  test('is an ordinary message after a quarter of an hour, and nothing says any more that it will come', async () => {
    const given = await command('archive');
    await deferred(given);
    await stage.clock.advance(14 * 60_000);
    await stage.fake.until(() => stage.fake.callsTo('DELETE', /@original/).length === 1);
    expect(stage.channel.awaitsAnswer(given.id)).toBe(false);
    await answer('Copied.', given.id);
    expect(stage.fake.sent).toMatchObject([{ via: 'message' }]);
  });

  test('is an ordinary message after an end of the process', async () => {
    const given = await command('reset');
    const next = await openStage({ apiRoot: stage.fake.url, token: stage.fake.token });
    const part = { text: 'Cleared.', marks: [] };
    const options = sendOptions({ replyTo: given.id, earlierTries: 1, createdAt: stage.clock.now() });
    expect(await next.channel.send(GROUP, part, options)).toMatchObject({ kind: 'sent' });
    expect(stage.fake.sent).toMatchObject([{ via: 'message', replyTo: null }]);
    await next.close();
  });

  test('that was given before an end of the process is not given again', async () => {
    const given = await command('reset');
    const createdAt = stage.clock.now();
    await answer('Cleared.', given.id, { createdAt });
    const next = await openStage({ apiRoot: stage.fake.url, token: stage.fake.token });
    const part = { text: 'Cleared.', marks: [] };
    const options = sendOptions({ replyTo: given.id, earlierTries: 1, createdAt });
    expect(await next.channel.send(GROUP, part, options)).toEqual({
      kind: 'sent',
      platformMessageId: stage.fake.sent[0]?.id,
    });
    expect(stage.fake.sent).toHaveLength(1);
    await next.close();
  });

  test('waits out a limit, and what Discord refuses is refused', async () => {
    const given = await command('help');
    stage.fake.rateLimit({ ...CALLBACK, retryAfter: 20 });
    expect(await answer('Well.', given.id)).toMatchObject({
      kind: 'unreachable',
      retryAfterMs: expect.closeTo(20_000, -3),
    });
    await stage.clock.advance(20_100);
    stage.fake.fail(CALLBACK, { status: 400, body: { code: 50035, message: 'Invalid Form Body' } });
    expect(await answer('Well.', given.id)).toMatchObject({ kind: 'refused' });
    stage.fake.fail(CALLBACK, { status: 500 });
    const failed = await answer('Well.', given.id);
    expect(failed).toMatchObject({ kind: 'unreachable' });
    // The token of a command is a key to the channel.
    expect(stage.logged.join()).not.toContain(given.token);
    expect(await answer('Well.', given.id)).toMatchObject({ kind: 'sent' });
  });
});

describe('whoever is not let in hears so, and nobody else', () => {
  async function turnedAway(why: 'unknown sender' | 'unlisted group' | 'closed'): Promise<Interaction> {
    stage.store = async ({ events }) => ({
      ...ALL_LET_IN,
      rejected: events.map((event) => ({
        platformMessageId: event.kind === 'message' ? event.platformMessageId : '',
        why,
      })),
    });
    const given = await command('reset');
    await stage.fake.until(() => given.messages.length === 1, 'an answer');
    return given;
  }

  test('in a channel that is not listed, with the ids that would list it', async () => {
    const { messages, id } = await turnedAway('unlisted group');
    expect(messages).toMatchObject([{ ephemeral: true, via: 'callback' }]);
    expect(messages[0]?.content).toContain(`\`discord_${CHANNEL}\``);
    expect(messages[0]?.content).toContain(`\`discord_${GUILD}\``);
    expect(stage.channel.awaitsAnswer(id)).toBe(false);
  });

  test.each(['unknown sender', 'closed'] as const)('%s', async (why) => {
    const { messages } = await turnedAway(why);
    expect(messages).toMatchObject([{ ephemeral: true }]);
    expect(messages[0]?.content.split('. ')).toHaveLength(1);
  });

  test('also when that takes long', async () => {
    let decide = () => {};
    stage.store = ({ events }) =>
      new Promise((resolve) => {
        const ids = events.flatMap((event) => (event.kind === 'message' ? [event.platformMessageId] : []));
        stage.store = async () => ALL_LET_IN;
        decide = () =>
          resolve({
            ...ALL_LET_IN,
            rejected: ids.map((platformMessageId) => ({ platformMessageId, why: 'closed' })),
          });
      });
    const given = stage.fake.command({ from: ANNA, channelId: CHANNEL, name: 'reset' });
    await stage.clock.asleep(1_800);
    await deferred(given);
    decide();
    await stage.fake.until(() => given.messages.length === 1, 'an answer');
    expect(given.messages).toMatchObject([{ ephemeral: true, via: 'followup' }]);
  });
});

describe('suggestions', () => {
  const typing = (value: string) => {
    const option = { name: 'name', type: 3, value, focused: true };
    const options = [{ name: 'switch', type: 1, options: [option] }];
    return stage.fake.autocomplete({ from: ANNA, channelId: CHANNEL, name: 'persona', options });
  };

  test('are the names of the personas of the chat', async () => {
    stage.personas = ['default', 'Luna B', 'Stella'];
    const typed = typing('lu');
    await stage.fake.until(() => typed.answered, 'choices');
    expect(typed.choices).toEqual([{ name: 'Luna B', value: '"Luna B"' }]);
    expect(stage.messages()).toEqual([]);
  });

  test('that cannot be had do no harm', async () => {
    stage.fake.fail(CALLBACK, { status: 500 });
    typing('lu');
    await stage.until(() => stage.logged.join().includes('suggesting personas failed'));
  });
});
