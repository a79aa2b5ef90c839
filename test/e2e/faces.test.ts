/** Personas with a portrait.png, through the real gateway: how each platform shows it, also after kills. */
import { mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import sharp from 'sharp';
import { afterEach, expect, it } from 'vitest';
import { basicGroup, group } from '../fakes/telegram-chats.js';
import { discordPlatform } from '../harness/discord.js';
import { eventually, type Home } from '../harness/gateway.js';
import type { Person, Place } from '../harness/platform.js';
import { type PlatformStage, stageOn } from '../harness/stage.js';
import { type Stage, type StageOptions, stage } from '../harness/telegram.js';
import { whatsappPlatform } from '../harness/whatsapp.js';

const ANNA: Person = { number: 1, name: 'Anna' };
const GROUP: Place = { kind: 'group', number: 7 };

const KILL_AT = fileURLToPath(new URL('../harness/kill-at.mjs', import.meta.url));
const TELEGRAM_ANNA = 700;
/** How long the gateway waits before it may say that a message did not arrive. */
const SURE_MS = 60_000;

let on: PlatformStage;
const opened: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const each of opened.splice(0)) await each.close();
});

const picture = (background: string) =>
  sharp({ create: { width: 300, height: 400, channels: 3, background } })
    .png()
    .toBuffer();

/** A persona that greets. */
async function live(home: Home, chatId: string, name: string, background: string): Promise<void> {
  const folder = `groups/${chatId}/${name.toLowerCase()}`;
  await home.write(`${folder}/PERSONA.md`, `---\nname: ${name}\ngreeting: I am ${name}.\n---\n`);
  await writeFile(join(home.folder, folder, 'portrait.png'), await picture(background));
}

it('on Discord, by a webhook of its own, of which there is one however the process ends', async () => {
  const platform = await discordPlatform();
  on = await stageOn(platform, {
    access: { direct: 'open', groups: 'open', owners: [platform.personId(ANNA)] },
  });
  opened.push(on);
  const { discord } = platform;
  await live(on.home, platform.chatId(GROUP), 'Luna', 'red');
  const channel = platform.chatId(GROUP).replace('discord_', '');
  const create = /^\/channels\/\d+\/webhooks$/;
  discord.fail({ method: 'POST', path: create }, { stall: 'after' });
  const first = await on.start();
  platform.command(ANNA, GROUP, '/persona switch Luna');
  await eventually(() => discord.callsTo('POST', create).length > 0, 'a webhook is being made');
  await first.stop('SIGKILL');
  const second = await on.start();
  await on.replies(GROUP, 2);
  on.model.reply('A red one.');
  platform.say({ from: ANNA, in: GROUP, text: 'which one?', mention: true });
  const [, greeting, answer] = await on.replies(GROUP, 3);
  expect([greeting?.text, answer?.text]).toEqual(['I am Luna.', 'A red one.']);
  const [hook, ...others] = discord.webhooks(channel);
  expect([hook?.name, others]).toEqual(['Luna', []]);
  const shown = () => discord.sent.flatMap(({ username, avatar }) => (username === null ? [] : [avatar]));
  expect(shown()).toEqual([hook?.avatar, hook?.avatar]);
  expect(await sharp(hook?.picture ?? undefined).metadata()).toMatchObject({ format: 'jpeg', width: 512 });

  await second.stop();
  await live(on.home, platform.chatId(GROUP), 'Luna', 'blue');
  await on.start();
  on.model.reply('A blue one.');
  platform.command(ANNA, GROUP, '/again');
  await eventually(() => platform.shown(GROUP).some(({ text }) => text === 'A blue one.'), 'it is said anew');
  on.model.reply('Sure.');
  platform.say({ from: ANNA, in: GROUP, text: 'sure?', mention: true });
  await eventually(() => platform.shown(GROUP).some(({ text }) => text === 'Sure.'), 'it answers');
  const [changed, ...more] = discord.webhooks(channel);
  expect([changed?.id, more]).toEqual([hook?.id, []]);
  expect(shown().at(-1)).toBe(changed?.avatar);
  expect(changed?.avatar).not.toBe(hook?.avatar);
});

async function telegramStage(options: StageOptions = {}): Promise<Stage> {
  const made = await stage(options);
  opened.push(made);
  return made;
}
const say = ({ telegram }: Stage, text: string) =>
  telegram.say({ from: { id: TELEGRAM_ANNA, first_name: 'Anna' }, text });
/** The texts, and a picture as what it was sent. */
const shownOn = ({ telegram }: Stage) =>
  telegram.sent.map(({ as, text }) => (as === null ? text : `[${as}]${text}`));

it('on Telegram, with the first greeting, once; and as a photo of the persona’s own bot, once per change', async () => {
  const luna = { token: '500001:fake-token-of-a-bot-of-luna', id: 500_001, username: 'luna_bot' };
  const here = await telegramStage({ channel: { persona_tokens: { luna: luna.token } } });
  const { telegram, home } = here;
  const bot = telegram.addBot(luna);
  telegram.join(bot, TELEGRAM_ANNA);
  for (const name of ['Max', 'Luna']) await live(home, `telegram_${TELEGRAM_ANNA}`, name, 'red');
  const first = await here.start();
  for (const text of ['/persona switch Max', '/start', '/persona switch Luna']) say(here, text);
  await eventually(() => telegram.photos.length === 1, 'the bot of Luna has a photo');
  await eventually(() => shownOn(here).includes('I am Luna.'), 'Luna greets');
  const again = 'I am Max.\n\n/help shows what else I can do.';
  expect(shownOn(here)).toEqual([
    ...['Switched to Max.', '[photo]', 'I am Max.', again, 'Switched to Luna.', 'I am Luna.'],
  ]);
  expect(telegram.photos).toMatchObject([{ bot: luna.id }]);
  await first.stop();

  await live(home, `telegram_${TELEGRAM_ANNA}`, 'Luna', 'blue');
  const second = await here.start();
  await eventually(() => telegram.photos.length === 2, 'it has another');
  await second.stop();
  await here.start();
  say(here, 'hello');
  await eventually(() => telegram.sent.length === 7, 'Luna answers');
  expect(telegram.callsOf('setMyProfilePhoto')).toHaveLength(2);
});

it('on Telegram, in a group that has moved, the bot of the persona has its photo', async () => {
  const luna = { token: '500001:fake-token-of-a-bot-of-luna', id: 500_001, username: 'luna_bot' };
  const owners = { owners: [`telegram_${TELEGRAM_ANNA}`] };
  const channel = { persona_tokens: { luna: luna.token } };
  const here = await telegramStage({ channel, config: { access: owners } });
  const { telegram, home } = here;
  const bot = telegram.addBot(luna);
  await here.start();
  const from = { id: TELEGRAM_ANNA, first_name: 'Anna' };
  telegram.say({ from, chat: basicGroup(-555), text: `@${telegram.bot.username} hello` });
  await here.replies(-555, 1);
  const moved = -1_001_234_567_890;
  telegram.join(bot, moved);
  telegram.migrate(-555, moved);
  telegram.say({ from, chat: group(moved), text: `@${telegram.bot.username} hello` });
  await here.replies(moved, 1);
  await live(home, 'telegram_-555', 'Luna', 'red');
  telegram.say({ from, chat: group(moved), text: '/persona switch Luna' });
  await eventually(() => telegram.photos.length === 1, 'the bot of Luna has a photo');
  expect(telegram.photos).toMatchObject([{ bot: luna.id }]);
});

const KILLS: [string, object | null, 'before' | 'after' | null][] = [
  [
    'when it is stored, and the greeting is not',
    { at: 'commit', sql: 'insert into outbox', values: 'face:' },
    null,
  ],
  ['when it was sent', { at: 'statement', sql: "update outbox set state = 'sent'", when: 'before' }, null],
  ['while Telegram has it and has not answered', null, 'after'],
  ['while Telegram does not have it yet', null, 'before'],
];

it.each(KILLS)(
  'on Telegram, killed %s: picture, greeting and answer stand there once, in order',
  async (_when, kill, stall) => {
    const here = await telegramStage();
    await live(here.home, `telegram_${TELEGRAM_ANNA}`, 'default', 'red');
    here.model.reply('It is noon.');
    if (stall !== null) here.telegram.fail('sendPhoto', { stall });
    const hook = { NODE_OPTIONS: `--import ${KILL_AT}`, KILL_AT: JSON.stringify(kill) };
    const first = here.launch(kill === null ? {} : hook);
    say(here, 'what time is it?');
    if (stall !== null) {
      await eventually(() => here.telegram.callsOf('sendPhoto').length === 1, 'it is being sent');
      await first.stop('SIGKILL');
    }
    await first.exited;
    await here.start();
    await eventually(() => shownOn(here).includes('It is noon.'), 'it is answered', SURE_MS);
    expect(shownOn(here)).toEqual(['[photo]', 'I am default.', 'It is noon.']);
  },
  90_000,
);

it('on WhatsApp, with the first greeting, once, also when the process ends right behind it', async () => {
  const platform = await whatsappPlatform();
  on = await stageOn(platform);
  opened.push(on);
  const place: Place = { kind: 'direct', number: 1 };
  const first = await on.start();
  platform.say({ from: ANNA, in: place, text: '/help' });
  await on.replies(place, 1);
  const [chat = ''] = [platform.chatId(place)];
  await live(on.home, chat, 'default', 'red');
  on.model.reply('It is noon.');
  platform.say({ from: ANNA, in: place, text: 'what time is it?' });
  await on.replies(place, 2);
  await first.stop('SIGKILL');
  await on.start();
  const shown = () => platform.shown(place).slice(1);
  await eventually(() => shown().some(({ text }) => text === 'It is noon.'), 'it is answered');
  platform.say({ from: ANNA, in: place, text: '/start' });
  await eventually(() => shown().length === 4, 'it greets again');
  expect(shown().map(({ text, files }) => [...files, text])).toEqual([
    [expect.anything(), ''],
    ['I am default.'],
    ['It is noon.'],
    [expect.stringMatching(/^I am default\./)],
  ]);
});

it('on Telegram, a link out of the groups is no picture: one line in the log, and the greeting', async () => {
  const here = await telegramStage();
  const outside = join(dirname(here.home.folder), `${here.home.folder.split('/').at(-1)}-outside.png`);
  const folder = join(here.home.folder, 'groups', `telegram_${TELEGRAM_ANNA}`, 'default');
  await mkdir(folder, { recursive: true });
  await writeFile(outside, await picture('red'));
  opened.push({ close: () => rm(outside) });
  await symlink(outside, join(folder, 'portrait.png'));
  await writeFile(join(folder, 'PERSONA.md'), '---\nname: Max\ngreeting: I am Max.\n---\n');
  const gateway = await here.start();
  for (const text of ['/start', '/start']) say(here, text);
  await here.replies(TELEGRAM_ANNA, 2);
  expect(shownOn(here).every((text) => text.startsWith('I am Max.'))).toBe(true);
  expect(gateway.err().match(/portrait cannot be shown/g)).toHaveLength(1);
});
