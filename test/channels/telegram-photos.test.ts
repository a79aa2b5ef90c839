/** The profile photos of personas' own bots: set once per change of portrait.png, whatever Telegram says. */
import sharp from 'sharp';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createBots } from '../../src/channels/telegram/bots.js';
import { Photos } from '../../src/channels/telegram/photos.js';
import { ANNA } from '../fakes/telegram-chats.js';
import { portraitOf } from '../harness/portraits.js';
import { sendOptions } from '../harness/sending.js';
import { straight } from '../harness/straight.js';
import { LUNA, OPTIONS, type Stage, stage, stateIn } from './telegram-stage.js';

const ANNAS = String(ANNA.id);
const BENS = '100002';

let on: Stage;
let bots: ReturnType<typeof createBots>;
let photos: Photos;

beforeEach(async () => {
  on = await stage();
  start();
});
afterEach(async () => {
  bots.close();
  await on.close();
});

/** The process begins anew, on what was stored. */
function start(): void {
  const write = (level: string) => (fields: object, message: string) =>
    void on.logged.push(`${level} ${message} ${JSON.stringify(fields)}`);
  const log = { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') };
  const { clock, parts } = on;
  const host = {
    ...{ clock, log, outward: straight, state: stateIn(parts.kept) },
    portrait: async (chat: string | null, id: string) => parts.portraits.get(`${chat}/${id}`) ?? null,
  };
  const tokens = { token: on.fake.token, apiRoot: on.fake.url, personaTokens: { luna: LUNA.token } };
  bots = createBots({ ...OPTIONS, ...tokens }, host);
  photos = new Photos(host, new AbortController().signal);
}

/** The bot came up (null), or spoke in a chat. */
async function comesUp(chat: string | null = null): Promise<void> {
  const [luna] = bots.personas;
  if (luna) await photos.refresh(luna, chat);
}

async function give(chat: string | null, colour: string): Promise<string> {
  const create = { width: 512, height: 512, channels: 3, background: colour } as const;
  const bytes = await sharp({ create }).jpeg().toBuffer();
  on.parts.portraits.set(`${chat}/luna`, { ...portraitOf(colour), bytes });
  return bytes.toString('hex');
}
const set = () => on.fake.photos.map(({ bytes }) => bytes.toString('hex'));
const tried = () => on.fake.callsOf('setMyProfilePhoto').length;
const warned = () => on.logged.filter((line) => /^warn .*profile photo/.test(line)).length;

describe('the profile photo of a persona’s own bot', () => {
  test('is set by the channel, at the start, and when the bot has spoken', async () => {
    const red = await give(null, 'red');
    await on.start();
    await on.fake.until(() => set().length === 1, 'it is set');
    const blue = await give(null, 'blue');
    on.fake.join(on.luna, ANNA.id);
    const to = { address: ANNAS, threadId: null, kind: 'direct' as const };
    await on.channel.send(to, { text: 'hi', marks: [] }, sendOptions({ speaker: 'luna' }));
    await on.fake.until(() => set().length === 2, 'it is changed');
    expect(set()).toEqual([red, blue]);
    expect(on.fake.photos).toMatchObject([{ bot: LUNA.id }, { bot: LUNA.id }]);
  });

  test('is the picture of the library, once, over restarts', async () => {
    const red = await give(null, 'red');
    await comesUp();
    await comesUp(ANNAS);
    start();
    await comesUp();
    expect(set()).toEqual([red]);
  });

  test('is that of the chat where it speaks, and changes with it, once each', async () => {
    const red = await give(ANNAS, 'red');
    await comesUp();
    expect(set()).toEqual([]);
    await comesUp(ANNAS);
    start();
    await comesUp();
    await comesUp(ANNAS);
    expect(set()).toEqual([red]);
    const blue = await give(ANNAS, 'blue');
    start();
    await comesUp();
    await comesUp(ANNAS);
    expect(set()).toEqual([red, blue]);
  });

  test('is not changed by another chat, but by the library', async () => {
    const red = await give(ANNAS, 'red');
    await give(BENS, 'green');
    await comesUp(ANNAS);
    await comesUp(BENS);
    start();
    await comesUp(BENS);
    expect(set()).toEqual([red]);
    const blue = await give(null, 'blue');
    await comesUp(BENS);
    await comesUp(ANNAS);
    expect(set()).toEqual([red, blue]);
  });

  test('stays when the persona has none, and is that of another chat then', async () => {
    await comesUp(ANNAS);
    expect(tried()).toBe(0);
    const red = await give(ANNAS, 'red');
    await comesUp(ANNAS);
    on.parts.portraits.clear();
    await comesUp(ANNAS);
    expect(set()).toEqual([red]);
    expect(on.fake.callsOf('removeMyProfilePhoto')).toEqual([]);
    const green = await give(BENS, 'green');
    await comesUp(BENS);
    expect(set()).toEqual([red, green]);
  });

  test('is never that of the main bot; and two at once set it once', async () => {
    const red = await give(null, 'red');
    await photos.refresh(bots.main, ANNAS);
    expect(tried()).toBe(0);
    await Promise.all([comesUp(), comesUp(ANNAS), comesUp(BENS)]);
    expect(set()).toEqual([red]);
  });
});

describe('where Telegram does not take it, it is logged once', () => {
  test('an older server, without the method', async () => {
    on.fake.settings.profilePhotos = false;
    await give(null, 'red');
    for (let n = 0; n < 3; n++) await comesUp(ANNAS);
    expect([tried(), warned()]).toEqual([1, 1]);
    await give(null, 'blue');
    await comesUp();
    expect(tried()).toBe(2);
  });

  test('a limit: it is tried again when that is over', async () => {
    const red = await give(null, 'red');
    on.fake.fail('setMyProfilePhoto', { status: 429, parameters: { retry_after: 900 } }, { times: 2 });
    for (let n = 0; n < 3; n++) {
      await comesUp();
      await comesUp(ANNAS);
      await on.clock.advance(901_000);
    }
    expect(set()).toEqual([red]);
    expect([tried(), warned()]).toEqual([3, 1]);
  });

  test.each([
    ['a refusal', { status: 400, description: 'Bad Request: PHOTO_INVALID' }],
    ['a token that is none', { status: 401, description: 'Unauthorized' }],
    ['a page of a proxy', { html: 502 }],
  ])('%s', async (_what, fault) => {
    await give(null, 'red');
    on.fake.fail('setMyProfilePhoto', fault, { times: 9 });
    await comesUp();
    await comesUp(ANNAS);
    expect([set(), tried(), warned()]).toEqual([[], 1, 1]);
  });

  test('a picture that is none', async () => {
    on.parts.portraits.set('null/luna', portraitOf('none'));
    await comesUp();
    await comesUp();
    expect([set(), tried(), warned()]).toEqual([[], 1, 1]);
  });

  test('a connection that breaks after it was taken: it may be set twice, and is right', async () => {
    const red = await give(null, 'red');
    on.fake.fail('setMyProfilePhoto', { drop: 'after' });
    await comesUp();
    await on.clock.advance(301_000);
    await comesUp();
    await comesUp();
    expect(set()).toEqual([red, red]);
  });

  test('a store that keeps nothing: nothing is thrown, and this process sets it once', async () => {
    const red = await give(null, 'red');
    on.parts.kept.set = () => {
      throw new Error('the disk is full');
    };
    await comesUp();
    await comesUp();
    expect(set()).toEqual([red]);
    expect(on.logged.join()).toContain('was not noted');
  });
});
