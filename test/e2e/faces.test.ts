/** Personas with a portrait.png, through the real gateway: how each platform shows it, also after kills. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import sharp from 'sharp';
import { afterEach, expect, it } from 'vitest';
import { discordPlatform } from '../harness/discord.js';
import { eventually } from '../harness/gateway.js';
import type { Person, Place } from '../harness/platform.js';
import { type PlatformStage, stageOn } from '../harness/stage.js';

const ANNA: Person = { number: 1, name: 'Anna' };
const GROUP: Place = { kind: 'group', number: 7 };

let on: PlatformStage;
afterEach(() => on.close());

const picture = (background: string) =>
  sharp({ create: { width: 300, height: 400, channels: 3, background } })
    .png()
    .toBuffer();

/** A persona in a chat that greets. */
async function live(place: Place, name: string, background: string): Promise<void> {
  const folder = `groups/${on.platform.chatId(place)}/${name.toLowerCase()}`;
  await on.home.write(`${folder}/PERSONA.md`, `---\nname: ${name}\ngreeting: I am ${name}.\n---\n`);
  await writeFile(join(on.home.folder, folder, 'portrait.png'), await picture(background));
}

it('on Discord, by a webhook of its own, of which there is one however the process ends', async () => {
  const platform = await discordPlatform();
  on = await stageOn(platform, {
    access: { direct: 'open', groups: 'open', owners: [platform.personId(ANNA)] },
  });
  const { discord } = platform;
  await live(GROUP, 'Luna', 'red');
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
  await live(GROUP, 'Luna', 'blue');
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
