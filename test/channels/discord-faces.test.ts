/** A persona has its name and face also when it is alone; and what it answers stands as a quote above it. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { appearanceOf as appearanceIn } from '../../src/conversation/participants.js';
import type { Appearance, Part, Recipient, SendOptions } from '../../src/core/channel.js';
import { sendOptions } from '../harness/sending.js';
import {
  ANNA,
  appearanceOf,
  CHANNEL,
  GUILD,
  gallery,
  openStage,
  type Stage,
  WEBHOOK_ROLE,
} from './discord-stage.js';

const GROUP: Recipient = { address: CHANNEL, threadId: null, kind: 'group' };
const LUNA = appearanceOf('Luna', 'https://example.org/luna.png');
const ALONE: Appearance = { ...LUNA, alone: true };

let stage: Stage;

beforeEach(async () => {
  stage = await openStage();
  gallery(stage.fake);
});
afterEach(() => stage.close());

const part = (text: string): Part => ({ text, marks: [] });

function options(given: Partial<SendOptions> = {}): SendOptions {
  return sendOptions({ createdAt: stage.clock.now(), appearance: LUNA, leads: true, ...given });
}

const send = (text: string, given: Partial<SendOptions> = {}, to = GROUP) =>
  stage.channel.send(to, part(text), options(given));
const say = (content: string) => stage.fake.say({ from: ANNA, channelId: CHANNEL, content }).id;
const linkTo = (id: string) => `https://discord.com/channels/${GUILD}/${CHANNEL}/${id}`;

describe('alone', () => {
  test('it speaks under its own name, and without its name before the text where that cannot be shown', async () => {
    await send('one', { appearance: ALONE });
    const dm = { address: stage.fake.dm(ANNA), threadId: null, kind: 'direct' as const };
    await send('two', { key: '2', appearance: ALONE }, dm);
    stage.fake.fail(
      { path: /webhooks/ },
      { status: 403, body: { code: 50013, message: 'no' } },
      { times: 9 },
    );
    const other = '100000000000000666';
    stage.fake.channel(GUILD, { id: other, name: 'other' });
    await send('three', { key: '3', appearance: ALONE }, { ...GROUP, address: other });
    expect(stage.fake.sent).toMatchObject([
      { username: 'Luna', avatar: LUNA.avatar, content: 'one' },
      { username: null, content: 'two' },
      { username: null, content: 'three' },
    ]);
  });

  test.each([
    ['always', { facesAlone: true as const }, true],
    ['company', {}, undefined],
  ])('`faces: %s`', async (faces, seen, alone) => {
    const channel = await openStage({ faces: faces as 'always' | 'company' });
    expect({ ...(channel.channel.facesAlone ? { facesAlone: true } : {}) }).toEqual(seen);
    await channel.close();
    const luna = { id: 'luna', name: 'Luna', avatar: null } as never;
    const shown = appearanceIn(seen, { activePersona: 'luna', invited: [] }, [luna], 'luna');
    expect(shown).toEqual(alone ? { personaId: 'luna', name: 'Luna', avatar: null, alone } : undefined);
    expect(appearanceIn(seen, { activePersona: 'default', invited: [] }, [luna], 'default')).toBe(undefined);
  });
});

describe('what is answered', () => {
  test('is quoted with a link, whoever asked hears of it once, and nobody else', async () => {
    await stage.listen();
    const id = say('When do we meet?\nAnd where?');
    await stage.until(() => stage.texts().length === 1);
    await send('At noon, <@100000000000000101> @everyone.', { replyTo: id });
    expect(stage.fake.sent).toMatchObject([
      {
        username: 'Luna',
        pinged: [ANNA.id],
        content: expect.stringMatching(
          new RegExp(`^> <@${ANNA.id}> \\[When do we meet\\? And where\\?\\]\\(<${linkTo(id)}>\\)\\nAt noon`),
        ),
      },
    ]);
    expect(stage.fake.callsTo('GET', /messages/)).toEqual([]);
  });

  test('is asked for where nobody told of it, once, also while the answer is changed', async () => {
    const id = say('When do we meet?');
    const sent = await send('At', { replyTo: id });
    const messageId = sent.kind === 'sent' ? sent.platformMessageId : '';
    for (const text of ['At noon', 'At noon, at the gate']) {
      const changed = await stage.channel.edit(GROUP, messageId, part(text), options({ replyTo: id }));
      expect(changed).toEqual({ kind: 'sent', platformMessageId: messageId });
    }
    expect(stage.fake.sent[0]?.content).toBe(
      `> <@${ANNA.id}> [When do we meet?](<${linkTo(id)}>)\nAt noon, at the gate`,
    );
    expect(stage.fake.callsTo('GET', /messages/)).toHaveLength(1);
  });

  test('that is gone is not quoted; that holds only a file is pointed at', async () => {
    await send('one', { replyTo: '1300000000000000001' });
    const id = stage.fake.say({ from: ANNA, channelId: CHANNEL, attachments: [] }).id;
    await send('two', { key: '2', replyTo: id });
    expect(stage.fake.sent.map(({ content }) => content)).toEqual([
      'one',
      `> <@${ANNA.id}> [↪](<${linkTo(id)}>)\ntwo`,
    ]);
  });

  test('keeps its markup to itself, whatever it holds, and the answer fits', async () => {
    await stage.listen();
    const id = say('**x** [a](https://evil.example) <@&1> ]( `code` > #'.repeat(5));
    await stage.until(() => stage.texts().length === 1);
    const [first] = stage.channel.compose('word '.repeat(900), 'Luna'.length + 1);
    await stage.channel.send(GROUP, first ?? part(''), options({ replyTo: id }));
    const [line, ...rest] = (stage.fake.sent[0]?.content ?? '').split('\n');
    expect(line).toMatch(/^> <@\d+> /);
    expect(line).not.toContain('](https://evil');
    expect(rest.join('\n')).toMatch(/^word word/);
    expect(stage.fake.sent[0]?.pinged).toEqual([ANNA.id]);
  });

  test('tells nothing of what was hidden in it', async () => {
    const id = say('He dies ||in the ||last|| chapter||, and ||then|| so?');
    await send('Oh.', { replyTo: id });
    expect(stage.fake.sent[0]?.content).not.toMatch(/in the|chapter|then/);
    expect(stage.fake.sent[0]?.content).toContain('He dies');
  });

  test('is a real reply where the bot speaks, which is no quote', async () => {
    stage.fake.setRoles(GUILD, stage.fake.bot.id, []);
    const id = say('When?');
    await send('Noon', { replyTo: id, appearance: ALONE });
    expect(stage.fake.sent).toMatchObject([{ content: 'Noon', replyTo: id, pinged: [ANNA.id] }]);
    stage.fake.setRoles(GUILD, stage.fake.bot.id, [WEBHOOK_ROLE]);
  });

  test('of an answer that arrived without our hearing of it: it is found again, with its quote', async () => {
    const id = say('When?');
    stage.fake.fail({ path: /^\/webhooks\/\d+\/[^/]+$/ }, { drop: 'after' });
    const first = await send('Noon', { replyTo: id });
    expect(first).toMatchObject({ kind: 'unreachable', taken: 'no' });
    expect(await send('Noon', { replyTo: id, earlierTries: 1 })).toMatchObject({ kind: 'sent' });
    expect(stage.fake.sent).toHaveLength(1);
  });

  test('of an answer that arrived before a restart: it is found again, though the quote would be another now', async () => {
    await stage.listen();
    const id = say(`<@${stage.fake.bot.id}> when?`);
    await stage.until(() => stage.texts().length === 1);
    stage.fake.fail({ path: /^\/webhooks\/\d+\/[^/]+$/ }, { drop: 'after' });
    expect(await send('Noon', { replyTo: id })).toMatchObject({ kind: 'unreachable', taken: 'no' });
    const next = await openStage({ apiRoot: stage.fake.url, token: stage.fake.token });
    const again = options({ replyTo: id, earlierTries: 1 });
    expect(await next.channel.send(GROUP, part('Noon'), again)).toMatchObject({ kind: 'sent' });
    await next.close();
    expect(stage.fake.sent.map(({ content }) => content)).toHaveLength(1);
  });
});
