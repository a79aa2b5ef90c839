/** Replies that grow while they are written, through the real libraries: in a group by edits, in private by drafts. */
import { afterEach, describe, expect, it } from 'vitest';
import type { ModelScript } from '../fakes/model.js';
import { ANNA, group } from '../fakes/telegram-chats.js';
import { discordPlatform } from '../harness/discord.js';
import { eventually } from '../harness/gateway.js';
import { stageOn } from '../harness/stage.js';
import { type Stage, type StageOptions, stage } from '../harness/telegram.js';
import { whatsappPlatform } from '../harness/whatsapp.js';

const GARDEN = group(-1001234567890, 'Garden');
const HALF = 'The old oak ';
const WHOLE = `${HALF}stands by the gate.`;

let on: Stage;
afterEach(() => on?.close());

/** Something that a test lets happen. */
function latch() {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

/** Writes half of it, and the rest when that is let happen. */
const halfway = (until: Promise<void>): ModelScript => ({
  ...{ text: WHOLE, chunkSize: HALF.length, hold: { after: 1, until } },
});

async function begin(options?: StageOptions) {
  on = await stage(options);
  return on.start();
}

const inGroup = (text = `@${on.telegram.bot.username} tell me`) => on.telegram.say({ text, chat: GARDEN });
const standing = () => on.sentTo(GARDEN.id);
const halfSeen = () => eventually(() => standing()[0] === HALF.trim(), 'half of it can be seen');
const settled = (texts: string[]) =>
  eventually(() => JSON.stringify(standing()) === JSON.stringify(texts), `there stands ${texts.join(' | ')}`);

describe('in a group', () => {
  it('a reply can be seen while it is written, in one message that ends as the whole', async () => {
    await begin();
    const more = latch();
    on.model.reply(halfway(more.opened));
    inGroup();
    await halfSeen();
    more.open();
    await settled([WHOLE]);
    expect(on.telegram.callsOf('sendMessage')).toHaveLength(1);
    expect(on.telegram.drafts).toEqual([]);
  });

  it('it grows once a second at most', async () => {
    await begin();
    const text = 'word '.repeat(40).trim();
    on.model.reply({ text, chunkSize: 5, chunkDelayMs: 100 });
    inGroup();
    await settled([text]);
    const times = on.telegram.calls
      .filter(({ method }) => method === 'sendMessage' || method === 'editMessageText')
      .map(({ at }) => at);
    expect(times.length).toBeGreaterThan(2);
    // The last is the final text, which waits for nothing.
    for (const [n, at] of times.slice(0, -1).entries()) {
      expect(at - (times[n - 1] ?? 0)).toBeGreaterThan(900);
    }
  });

  it('it is only sent whole where streaming is off', async () => {
    await begin({ channel: { streaming: 'off' } });
    on.model.reply({ text: WHOLE, chunkSize: 4, chunkDelayMs: 300 });
    inGroup();
    await settled([WHOLE]);
    expect(on.telegram.edits).toEqual([]);
  });

  it('kill -9 while half can be seen: after the restart it stands there once and whole', async () => {
    const gateway = await begin();
    const never = latch();
    const slow = { text: WHOLE, chunkSize: 4, chunkDelayMs: 500, hold: { after: 6, until: never.opened } };
    on.model.reply((_body, n) => (n === 0 ? slow : { text: WHOLE }));
    inGroup();
    // It was edited, so the gateway knows that it stands there.
    await eventually(() => on.telegram.edits.length > 0, 'half of it grows');
    await gateway.stop('SIGKILL');
    await on.start();
    await settled([WHOLE]);
    expect(on.telegram.callsOf('sendMessage')).toHaveLength(1);
  });

  it('/stop in the middle of an edit: what can be seen says that it was stopped', async () => {
    await begin();
    const never = latch();
    on.model.reply({ text: WHOLE, chunkSize: 4, chunkDelayMs: 400, hold: { after: 6, until: never.opened } });
    on.telegram.settings.answerDelayMs = 400;
    inGroup();
    await eventually(() => on.telegram.edits.length > 0, 'an edit is under way');
    inGroup('/stop');
    await eventually(() => standing()[0]?.endsWith(' …\n(stopped)'), 'it says that it was stopped');
    await eventually(() => standing().length === 2, 'the command is answered');
    await eventually(() => on.model.requests[0]?.abandoned, 'the model is hung up on');
    expect(standing()[0]).toMatch(/^The .* …\n\(stopped\)$/);
  });

  it('an edit that is refused: the whole stands there once, in another message', async () => {
    await begin();
    const more = latch();
    on.model.reply(halfway(more.opened));
    inGroup();
    await halfSeen();
    on.telegram.fail('editMessageText', { status: 400, description: "Bad Request: message can't be edited" });
    more.open();
    await settled([WHOLE]);
    expect(on.telegram.callsOf('sendMessage')).toHaveLength(2);
  });

  it('a limit on edits is waited for, and then it is whole', async () => {
    await begin();
    const more = latch();
    on.model.reply(halfway(more.opened));
    inGroup();
    await halfSeen();
    on.telegram.fail('editMessageText', { status: 429, parameters: { retry_after: 2 } });
    more.open();
    await settled([WHOLE]);
    expect(on.telegram.callsOf('sendMessage')).toHaveLength(1);
    expect(on.telegram.callsOf('editMessageText')).toHaveLength(2);
  });

  it('a message that somebody deleted meanwhile comes anew', async () => {
    await begin();
    const more = latch();
    on.model.reply(halfway(more.opened));
    inGroup();
    await halfSeen();
    const [shown] = on.telegram.sent.filter(({ chatId }) => chatId === GARDEN.id);
    if (shown) on.telegram.vanish(shown);
    more.open();
    await settled([WHOLE]);
    // A reply to it is one to the persona.
    const [last] = on.telegram.sent.filter(({ gone }) => !gone);
    on.model.reply('You are welcome.');
    on.telegram.say({ text: 'thank you', chat: GARDEN, replyTo: last?.messageId ?? 0 });
    await settled([WHOLE, 'You are welcome.']);
  });

  it('a stream that dies half-way is begun anew by the client, and ends whole', async () => {
    await begin();
    const cut = latch();
    const dying = { ...halfway(cut.opened), cutAfter: 1 };
    on.model.reply((_body, n) => (n === 0 ? dying : { text: WHOLE }));
    inGroup();
    await halfSeen();
    cut.open();
    await settled([WHOLE]);
  });

  it('one that dies every time leaves the plain sentence, and nothing half', async () => {
    await begin();
    const cut = latch();
    on.model.reply({ ...halfway(cut.opened), cutAfter: 1 });
    inGroup();
    await halfSeen();
    cut.open();
    await eventually(
      () => standing().length === 1 && !standing()[0]?.includes('oak'),
      'the sentence stands there',
    );
    expect(standing()[0]).toMatch(/model/);
  });
});

describe('in private', () => {
  const drafts = { channel: { streaming: 'draft' } };

  it('it grows in one message', async () => {
    await begin();
    const more = latch();
    on.model.reply(halfway(more.opened));
    on.telegram.say({ text: 'tell me' });
    await eventually(() => on.sentTo(ANNA.id)[0] === HALF.trim(), 'half of it can be seen');
    more.open();
    await eventually(() => on.sentTo(ANNA.id)[0] === WHOLE, 'it is whole');
    expect(on.telegram.drafts).toEqual([]);
  });

  it('where drafts are wanted, it is one until it is final, and then one message', async () => {
    await begin(drafts);
    const more = latch();
    on.model.reply(halfway(more.opened));
    on.telegram.say({ text: 'tell me' });
    await eventually(
      () => on.telegram.drafts.some(({ text }) => text === HALF.trim()),
      'a draft of half of it',
    );
    expect(on.sentTo(ANNA.id)).toEqual([]);
    more.open();
    expect(await on.replies(ANNA.id, 1)).toEqual([WHOLE]);
    expect(on.telegram.edits).toEqual([]);
    const taken = on.telegram.calls.findLastIndex(({ method }) => method === 'sendMessageDraft');
    expect(on.telegram.calls.findIndex(({ method }) => method === 'sendMessage')).toBeGreaterThan(taken);
  });

  it('a draft that is refused for a flood becomes no edited message, and nothing is tried until it is over', async () => {
    await begin(drafts);
    on.telegram.fail('sendMessageDraft', { status: 429, parameters: { retry_after: 3 } });
    on.model.reply({ text: WHOLE, chunkSize: 4, chunkDelayMs: 300 });
    on.telegram.say({ text: 'tell me' });
    expect(await on.replies(ANNA.id, 1)).toEqual([WHOLE]);
    const refused = on.telegram.calls.find(({ method }) => method === 'sendMessageDraft');
    const [sent] = on.telegram.sent;
    expect((sent?.at ?? 0) - (refused?.at ?? 0)).toBeGreaterThanOrEqual(3_000);
    expect(on.telegram.edits).toEqual([]);
  });

  it("Telegram's own stop button ends it", async () => {
    await begin(drafts);
    const never = latch();
    on.model.reply(halfway(never.opened));
    on.telegram.say({ text: 'tell me' });
    await eventually(
      () => on.telegram.drafts.some(({ text }) => text === HALF.trim()),
      'a draft of half of it',
    );
    on.telegram.pressStop(ANNA.id);
    await eventually(() => on.model.requests[0]?.abandoned, 'the model is hung up on');
  });

  it('where the server knows no drafts, it is an edited message', async () => {
    await begin(drafts);
    on.telegram.settings.drafts = false;
    const more = latch();
    on.model.reply(halfway(more.opened));
    on.telegram.say({ text: 'tell me' });
    await eventually(() => on.sentTo(ANNA.id)[0] === HALF.trim(), 'half of it can be seen');
    more.open();
    await eventually(() => on.sentTo(ANNA.id)[0] === WHOLE, 'it is whole');
  });
});

describe('on Discord', () => {
  it('a reply grows in one message, too, once a second, and ends as the whole', async () => {
    const discord = await stageOn(await discordPlatform());
    try {
      await discord.start();
      const text = 'word '.repeat(40).trim();
      discord.model.reply({ text, chunkSize: 5, chunkDelayMs: 100 });
      const place = { kind: 'group' as const, number: 1 };
      discord.platform.say({ from: { number: 1, name: 'Anna' }, in: place, text: 'tell me', mention: true });
      const seen = new Set<string>();
      const stands = () => {
        const texts = discord.platform.shown(place).map((shown) => shown.text);
        for (const each of texts) seen.add(each);
        return texts.join(' | ') === text;
      };
      await eventually(stands, 'it is whole');
      expect(seen.size).toBeGreaterThan(2);
      for (const each of seen) expect(text.startsWith(each)).toBe(true);
    } finally {
      await discord.close();
    }
  });
});

describe('on WhatsApp', () => {
  const PLACE = { kind: 'direct' as const, number: 1 };

  async function onWhatsApp() {
    const platform = await whatsappPlatform();
    const whatsapp = await stageOn(platform);
    const gateway = await whatsapp.start();
    const standing = () => platform.shown(PLACE).map(({ text }) => text);
    return {
      ...{ ...whatsapp, fake: platform.whatsapp, gateway, standing },
      ask: () => void platform.say({ from: { number: 1, name: 'Anna' }, in: PLACE, text: 'tell me' }),
      stands: (texts: string[]) =>
        eventually(
          () => JSON.stringify(standing()) === JSON.stringify(texts),
          `there stands ${texts.join(' | ')}`,
          20_000,
        ),
    };
  }

  it('a reply grows in one message, every two seconds at most, and ends as the whole, with its marks', async () => {
    const { fake, model, ask, stands, close } = await onWhatsApp();
    try {
      const words = Array.from({ length: 60 }, (_, n) => `word${n}`).join(' ');
      model.reply({ text: `${words} **the end**`, chunkSize: 6, chunkDelayMs: 100 });
      ask();
      await stands([`${words} *the end*`]);
      const [sent] = fake.sent;
      const shown = [{ text: '', at: sent?.at ?? 0 }, ...fake.edits];
      expect(shown.length).toBeGreaterThan(3);
      for (const { text } of fake.edits.slice(0, -1)) expect(words.startsWith(text)).toBe(true);
      // The last is the final text, which waits for nothing.
      for (const [n, { at }] of shown.slice(0, -1).entries()) {
        expect(at - (shown[n - 1]?.at ?? 0)).toBeGreaterThan(1_900);
      }
      expect(fake.sent).toHaveLength(1);
      expect(fake.complaints).toEqual([]);
    } finally {
      await close();
    }
  });

  it('what outgrows a message goes on in the next', async () => {
    const { fake, model, ask, standing, close } = await onWhatsApp();
    try {
      const words = Array.from({ length: 1_000 }, (_, n) => `word${n}`).join(' ');
      model.reply({ text: `${words} end.`, chunkSize: 400, chunkDelayMs: 500 });
      ask();
      await eventually(() => standing().at(-1)?.endsWith(' end.'), 'the end', 20_000);
      expect(standing().join(' ')).toBe(`${words} end.`);
      expect(fake.sent).toHaveLength(2);
      expect(fake.edits.filter(({ of }) => of === fake.sent[0]?.id).length).toBeGreaterThan(1);
      expect(fake.complaints).toEqual([]);
    } finally {
      await close();
    }
  });

  it('kill -9 while half can be seen: after the restart it stands there once and whole', async () => {
    const { fake, model, ask, standing, stands, gateway, start, close } = await onWhatsApp();
    try {
      const never = latch();
      const slow = { text: WHOLE, chunkSize: 4, chunkDelayMs: 500, hold: { after: 6, until: never.opened } };
      model.reply((_body, n) => (n === 0 ? slow : { text: WHOLE }));
      ask();
      await eventually(() => fake.edits.length > 0, 'half of it grows');
      expect(standing()).toHaveLength(1);
      await gateway.stop('SIGKILL');
      await start();
      await stands([WHOLE]);
      expect(fake.sent).toHaveLength(1);
    } finally {
      await close();
    }
  });

  it('an answer said anew grows where the first one stands; after kill -9 it stands there once and whole', async () => {
    const { fake, model, ask, standing, stands, gateway, start, platform, close } = await onWhatsApp();
    try {
      model.reply('Once upon a time.');
      ask();
      await stands(['Once upon a time.']);
      const never = latch();
      const slow = { text: WHOLE, chunkSize: 4, chunkDelayMs: 500, hold: { after: 6, until: never.opened } };
      const asked = model.count();
      model.reply(() => (model.count() === asked + 1 ? slow : { text: WHOLE }));
      platform.command({ number: 1, name: 'Anna' }, PLACE, '/again');
      await eventually(() => fake.edits.length > 1, 'half of the other grows');
      expect(standing()).toHaveLength(1);
      await gateway.stop('SIGKILL');
      await start();
      await stands([WHOLE]);
      expect(fake.sent).toHaveLength(1);
      expect(fake.complaints.filter((words) => !words.includes('could not read'))).toEqual([]);
    } finally {
      await close();
    }
  });

  it.each(['dropAfterTake', 'dropBeforeTake'] as const)(
    'a connection that ends while the first half is sent (%s): it stands there once and whole',
    async (fault) => {
      const { fake, model, ask, stands, close } = await onWhatsApp();
      try {
        const more = latch();
        model.reply(halfway(more.opened));
        fake.faults[fault]();
        const logins = fake.logins();
        ask();
        await fake.until(() => fake.logins() > logins, 'back again');
        more.open();
        await stands([WHOLE]);
      } finally {
        await close();
      }
    },
  );
});
