/** Pictures of personas without an address: each has a webhook of its own, which is found again, changed and given on. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Appearance, Part, Recipient, SendOptions } from '../../src/core/channel.js';
import { portraitOf } from '../harness/portraits.js';
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
const LUNA = appearanceOf('Luna');
const MAX = appearanceOf('Max');
const plain = (text: string): Part => ({ text, marks: [] });
const MINUTE_MS = 60_000;
const CREATE = { method: 'POST', path: /^\/channels\/\d+\/webhooks$/ };
const CHANGE = { method: 'PATCH', path: /^\/webhooks\/\d+\/[^/]+$/ };

let stage: Stage;
let stages: Stage[];

beforeEach(async () => {
  stage = await openStage();
  stages = [stage];
  gallery(stage.fake);
  give('luna', 'a');
});
afterEach(async () => {
  for (const each of stages.reverse()) await each.close();
});

function give(personaId: string, content: string, chat = CHANNEL): void {
  stage.portraits.set(`${chat}/${personaId}`, portraitOf(content));
  if (!stage.personas.includes(named(personaId))) stage.personas.push(named(personaId));
}
const named = (id: string) => id[0]?.toUpperCase() + id.slice(1);

let key = 0;
function sendBy(
  { channel, clock }: Stage,
  text: string,
  appearance: Appearance = LUNA,
  more: Partial<SendOptions> = {},
  to = GROUP,
) {
  key += 1;
  const given = { key: String(key), createdAt: clock.now(), appearance, leads: true, ...more };
  return channel.send(to, plain(text), sendOptions(given));
}
const send = (...args: [string, Appearance?, Partial<SendOptions>?, Recipient?]) => sendBy(stage, ...args);

/** The next process, with what the store kept (or without). */
async function restarted(stored = stage.stored): Promise<Stage> {
  const next = await openStage(
    { apiRoot: stage.fake.url, token: stage.fake.token },
    stored,
    stage.clock.now(),
  );
  for (const [who, portrait] of stage.portraits) next.portraits.set(who, portrait);
  next.personas = stage.personas;
  stages.push(next);
  return next;
}

const sent = () => stage.fake.sent;
const hooks = (channel = CHANNEL) => stage.fake.webhooks(channel);
const picturesShown = () =>
  hooks().flatMap(({ name, picture }) => (picture === null ? [] : [[name, picture.toString('hex')]]));
const shows = (name: string, content: string) => [name, portraitOf(content).bytes.toString('hex')];

describe('a persona with a portrait', () => {
  test('speaks through a webhook of its own with its name and picture', async () => {
    await send('one');
    expect(picturesShown()).toEqual([shows('Luna', 'a')]);
    const [hook] = hooks();
    expect(sent()).toMatchObject([{ username: 'Luna', webhookId: hook?.id, avatar: hook?.avatar }]);
    await send('two', LUNA, {}, { ...GROUP, threadId: stage.fake.thread(CHANNEL) });
    await send('three');
    expect(new Set(sent().map(({ webhookId }) => webhookId)).size).toBe(1);
    expect(hooks()).toHaveLength(1);
  });

  test('which others do not share: they have that of all, or their own', async () => {
    give('nova', 'n');
    await send('one');
    await send('two', MAX);
    await send('three', appearanceOf('Nova'));
    await send('four', MAX);
    expect(hooks().map(({ name }) => name)).toEqual(['Luna', 'Coterie', 'Nova']);
    expect(sent()[1]).toMatchObject({ username: 'Max', avatar: null });
    expect(sent()[3]?.webhookId).toBe(sent()[1]?.webhookId);
  });

  test('and an address of one has none: the address is the face', async () => {
    await send('one', appearanceOf('Luna', 'https://example.org/luna.png'));
    expect(picturesShown()).toEqual([]);
    expect(sent()).toMatchObject([{ avatar: 'https://example.org/luna.png' }]);
  });

  test('has it in a post of a forum', async () => {
    const forum = '100000000000000610';
    stage.fake.channel(GUILD, { id: forum, name: 'help', type: 15 });
    give('luna', 'a', forum);
    const threadId = stage.fake.post(forum, { name: 'How?', from: ANNA, content: 'How?' });
    await send('So.', LUNA, {}, { address: forum, threadId, kind: 'group' });
    expect(sent()).toMatchObject([
      { channelId: threadId, username: 'Luna', avatar: hooks(forum)[0]?.avatar },
    ]);
  });

  test('in a private thread is another than in its channel', async () => {
    const thread = stage.fake.thread(CHANNEL, { private: true });
    give('luna', 'other', thread);
    await send('one');
    await send('two', LUNA, {}, { address: thread, threadId: null, kind: 'group' });
    expect(picturesShown()).toEqual([shows('Luna', 'a'), shows('Luna', 'other')]);
    await send('three');
    expect(sent()[2]?.webhookId).toBe(sent()[0]?.webhookId);
  });

  test('in a direct chat is the bot', async () => {
    const dm: Recipient = { address: stage.fake.dm(ANNA), threadId: null, kind: 'direct' };
    await send('one', LUNA, {}, dm);
    expect(sent()).toMatchObject([{ username: null }]);
  });
});

describe('the webhook of a persona', () => {
  test('is found again by the next process, which takes its messages for our own', async () => {
    await send('one');
    const next = await restarted();
    await next.listen();
    await sendBy(next, 'two');
    expect(hooks()).toHaveLength(1);
    expect(stage.fake.callsTo(CHANGE.method, CHANGE.path)).toEqual([]);
    stage.fake.say({ from: ANNA, channelId: CHANNEL, content: 'heard' });
    await next.until(() => next.texts().length > 0);
    expect(next.texts()).toEqual(['heard']);
  });

  test('is found by its name if the store knows nothing of it, and not taken for that of all', async () => {
    stage.fake.fail(CREATE, { drop: 'after' });
    expect(await send('one')).toMatchObject({ kind: 'unreachable', taken: 'no' });
    const next = await restarted({ state: new Map(), cursor: null });
    await sendBy(next, 'max', MAX);
    await sendBy(next, 'one', LUNA, { earlierTries: 1 });
    expect(hooks().map(({ name }) => name)).toEqual(['Luna', 'Coterie']);
    expect(sent().map(({ avatar }) => avatar)).toEqual([null, hooks()[0]?.avatar]);
  });

  test('changes with the content of the picture, once, also over a restart', async () => {
    await send('one');
    give('luna', 'b');
    await send('two');
    await send('three');
    expect(picturesShown()).toEqual([shows('Luna', 'b')]);
    const next = await restarted();
    await sendBy(next, 'four');
    expect(stage.fake.callsTo(CHANGE.method, CHANGE.path)).toHaveLength(1);
    expect(new Set(sent().map(({ webhookId }) => webhookId)).size).toBe(1);
  });

  test('that somebody deleted is made anew, and the message is there once', async () => {
    await send('one');
    stage.fake.removeWebhook(hooks()[0]?.id ?? '');
    expect(await send('two')).toMatchObject({ kind: 'sent' });
    stage.fake.removeWebhook(hooks()[0]?.id ?? '');
    give('luna', 'b');
    const next = await restarted();
    expect(await sendBy(next, 'three')).toMatchObject({ kind: 'sent' });
    expect(sent().map(({ content }) => content)).toEqual(['one', 'two', 'three']);
    expect(picturesShown()).toEqual([shows('Luna', 'b')]);
  });

  test('that somebody renamed, or took the picture from, has both again', async () => {
    await send('one');
    const { id = '' } = hooks()[0] ?? {};
    stage.fake.changeWebhook(id, { name: 'Hook', avatar: null });
    const next = await restarted();
    await sendBy(next, 'two');
    expect(picturesShown()).toEqual([shows('Luna', 'a')]);
    expect(hooks()).toHaveLength(1);
  });

  test('that was deleted while its picture changed is made anew', async () => {
    await send('one');
    stage.fake.removeWebhook(hooks()[0]?.id ?? '');
    give('luna', 'b');
    await send('two');
    expect(picturesShown()).toEqual([shows('Luna', 'b')]);
    expect(stage.fake.callsTo(CHANGE.method, CHANGE.path)).toHaveLength(1);
  });

  test('goes when its persona is gone, as soon as another needs one', async () => {
    await send('one');
    stage.portraits.delete(`${CHANNEL}/luna`);
    stage.personas = stage.personas.filter((name) => name !== 'Luna');
    give('nova', 'n');
    await send('two', appearanceOf('Nova'));
    expect(picturesShown()).toEqual([shows('Nova', 'n')]);
  });

  test('stays when only the picture is gone: its messages are still to be changed', async () => {
    const first = await send('one');
    stage.portraits.delete(`${CHANNEL}/luna`);
    await send('two');
    expect(sent()[1]).toMatchObject({ username: 'Luna', avatar: null });
    const id = first.kind === 'sent' ? first.platformMessageId : '';
    expect(
      await stage.channel.edit(GROUP, id, plain('ONE'), sendOptions({ appearance: LUNA })),
    ).toMatchObject({ kind: 'sent' });
  });
});

describe('a message of a persona with a portrait', () => {
  const edit = (by: Stage, id: string, text: string) =>
    by.channel.edit(GROUP, id, plain(text), sendOptions({ appearance: LUNA, leads: true }));
  const idOf = (n: number) => sent()[n]?.id ?? '';

  test('is changed and removed through its webhook, by the next process, too', async () => {
    await send('one');
    await send('two');
    expect(await edit(stage, idOf(0), 'ONE')).toMatchObject({ kind: 'sent' });
    const next = await restarted();
    expect(await edit(next, idOf(0), 'One.')).toMatchObject({ kind: 'sent' });
    expect(sent()[0]?.content).toBe('One.');
    expect(await next.channel.remove(GROUP, idOf(1), sendOptions({ appearance: LUNA }))).toBe(true);
    expect(stage.fake.message(CHANNEL, idOf(1))).toBeNull();
  });

  test('is changed also when its webhook has another persona by now', async () => {
    await send('one');
    for (let n = 1; n < 10; n++) {
      give(`p${n}`, `${n}`);
      await send('hi', appearanceOf(named(`p${n}`)));
    }
    await stage.clock.advance(11 * MINUTE_MS);
    give('nova', 'n');
    await send('me', appearanceOf('Nova'));
    expect(sent().at(-1)?.webhookId).toBe(sent()[0]?.webhookId);
    expect(await edit(stage, idOf(0), 'ONE')).toMatchObject({ kind: 'sent' });
    const next = await restarted();
    expect(await edit(next, idOf(0), 'One.')).toMatchObject({ kind: 'sent' });
  });

  test('is not changed when its webhook is gone: it is then said anew; and the bot may remove it', async () => {
    await send('one');
    stage.fake.removeWebhook(sent()[0]?.webhookId ?? '');
    expect(await edit(stage, idOf(0), 'ONE')).toMatchObject({ kind: 'refused' });
    const next = await restarted();
    expect(await edit(next, idOf(0), 'ONE')).toMatchObject({ kind: 'refused' });
  });

  test('that arrived unheard is found again, in the next process, too', async () => {
    const message = { key: 'once', createdAt: stage.clock.now() };
    stage.fake.fail({ method: 'POST', path: /^\/webhooks\/\d+\/[^/]+$/ }, { drop: 'after' });
    expect(await send('once', LUNA, message)).toMatchObject({ kind: 'unreachable' });
    const next = await restarted();
    expect(await sendBy(next, 'once', LUNA, { ...message, earlierTries: 1 })).toMatchObject({ kind: 'sent' });
    expect(sent()).toHaveLength(1);
  });
});

describe('more than ten', () => {
  async function crowd(most: number): Promise<void> {
    for (let n = 0; n < most; n++) {
      give(`p${n}`, `${n}`);
      await send('hi', appearanceOf(named(`p${n}`)));
      await stage.clock.advance(MINUTE_MS);
    }
  }

  test('in a channel: the one that rested longest is renamed, and gets another picture', async () => {
    await crowd(10);
    await send('again', appearanceOf('P0'));
    await stage.clock.advance(10 * MINUTE_MS);
    await send('one');
    const names = hooks().map(({ name }) => name);
    expect(names).toHaveLength(10);
    expect(names).toContain('P0');
    expect(names).not.toContain('P1');
    expect(picturesShown()).toContainEqual(shows('Luna', 'a'));
    expect(sent().at(-1)).toMatchObject({ username: 'Luna', avatar: portraitHash('Luna') });
  });

  test('when the process dies right after one was given on: nobody has the face of another', async () => {
    await crowd(10);
    await stage.clock.advance(10 * MINUTE_MS);
    const before = new Map(stage.stored.state);
    await send('one');
    const next = await restarted({ state: before, cursor: null });
    await sendBy(next, 'hi', appearanceOf('P0'));
    await sendBy(next, 'two');
    const spoke = sent().slice(-3);
    expect(spoke.map(({ username }) => username)).toEqual(['Luna', 'P0', 'Luna']);
    expect(picturesShown()).toContainEqual(shows('P0', '0'));
    expect(picturesShown()).toContainEqual(shows('Luna', 'a'));
    expect(hooks()).toHaveLength(10);
    expect(spoke[1]?.avatar).toBe(portraitHash('P0'));
  });

  test('that all spoke just now: the next speaks through that of all, without a picture', async () => {
    for (let n = 0; n < 10; n++) {
      give(`p${n}`, `${n}`);
      await send('hi', appearanceOf(named(`p${n}`)));
    }
    await send('one');
    expect(sent().at(-1)).toMatchObject({ username: 'Luna', avatar: null });
    expect(hooks()).toHaveLength(11);
    expect(stage.fake.callsTo(CHANGE.method, CHANGE.path)).toEqual([]);
  });

  test('webhooks of others leave room for fewer', async () => {
    for (let n = 0; n < 12; n++) stage.fake.webhook(CHANNEL, `Feed ${n}`, ANNA);
    await crowd(4);
    expect(sent().map(({ avatar }) => avatar !== null)).toEqual([true, true, true, false]);
    expect(sent()[3]).toMatchObject({ username: null });
  });

  const portraitHash = (name: string) => hooks().find((each) => each.name === name)?.avatar;
});

describe('where Discord takes no webhook with a picture', () => {
  test('for missing permissions, the bot speaks as ever; as soon as it may, the persona has its face', async () => {
    stage.fake.setRoles(GUILD, stage.fake.bot.id, []);
    await send('one');
    stage.fake.setRoles(GUILD, stage.fake.bot.id, [WEBHOOK_ROLE]);
    await stage.clock.advance(5 * MINUTE_MS);
    await send('two');
    expect(sent()).toMatchObject([
      { username: null, content: '**Luna**\none' },
      { username: 'Luna', avatar: hooks()[0]?.avatar },
    ]);
  });

  test('for a permission that went, it speaks through those that are there', async () => {
    await send('max', MAX);
    stage.fake.setRoles(GUILD, stage.fake.bot.id, []);
    await send('one');
    await send('two');
    expect(sent()).toMatchObject([
      { username: 'Max' },
      { username: 'Luna', avatar: null },
      { username: 'Luna', avatar: null },
    ]);
    expect(stage.fake.callsTo(CREATE.method, CREATE.path)).toHaveLength(2);
    expect(stage.logged.filter((line) => line.includes('speaks without'))).toHaveLength(1);
  });

  test('for a limit that lasts, nobody waits, and it is tried again when that is over', async () => {
    await send('max', MAX);
    stage.fake.rateLimit({ ...CREATE, retryAfter: 600 });
    await send('one');
    await send('two');
    await stage.clock.advance(11 * MINUTE_MS);
    await send('three');
    expect(sent().map(({ avatar }) => avatar !== null)).toEqual([false, false, false, true]);
  });

  test('for the picture, it is not tried again with this one', async () => {
    stage.portraits.set(`${CHANNEL}/luna`, { ...portraitOf('a'), bytes: Buffer.from('no picture') });
    await send('one');
    await send('two');
    await send('three');
    expect(sent()).toMatchObject([{ avatar: null }, { avatar: null }, { avatar: null }]);
    expect(stage.logged.filter((line) => line.includes('speaks without'))).toHaveLength(1);
    give('luna', 'b');
    await send('four');
    expect(sent()[3]?.avatar).not.toBeNull();
  });

  test('for the name, the webhook has another, and the name stands in the text', async () => {
    stage.fake.settings.forbiddenNames = ['Luna'];
    await send('one');
    expect(hooks().map(({ name }) => name)).toEqual(['Persona']);
    expect(sent()).toMatchObject([
      { username: 'Coterie', content: '**Luna**\none', avatar: hooks()[0]?.avatar },
    ]);
  });

  test('for an outage, the message waits', async () => {
    stage.fake.fail(CREATE, { status: 500 });
    expect(await send('one')).toMatchObject({ kind: 'unreachable', taken: 'no' });
    expect(await send('one', LUNA, { earlierTries: 1 })).toMatchObject({ kind: 'sent' });
    expect(sent()).toMatchObject([{ avatar: hooks()[0]?.avatar }]);
  });

  test('for a change of the picture, the old one stays', async () => {
    await send('one');
    give('luna', 'b');
    stage.fake.rateLimit({ ...CHANGE, retryAfter: 600 });
    await send('two');
    expect(sent()[1]?.avatar).toBe(sent()[0]?.avatar);
    await stage.clock.advance(11 * MINUTE_MS);
    await send('three');
    expect(picturesShown()).toEqual([shows('Luna', 'b')]);
  });

  test('the store forgets that one was made: the message goes, and the next process finds it', async () => {
    stage.stored.state.set = () => {
      throw new Error('the disk is full');
    };
    expect(await send('one')).toMatchObject({ kind: 'sent' });
    expect(stage.logged.join()).toContain('found by name');
    const next = await restarted({ state: new Map(), cursor: null });
    await sendBy(next, 'two');
    expect(hooks()).toHaveLength(1);
  });
});
