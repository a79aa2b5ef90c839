/** `/persona import` on Discord with its own field for a file. */
import { expect, it } from 'vitest';
import { invocationOf } from '../fakes/discord-commands.js';
import { madeCard, pngCard } from '../harness/cards.js';
import { channelOf, discordPlatform, userOf } from '../harness/discord.js';
import type { Place } from '../harness/platform.js';
import { stageOn } from '../harness/stage.js';

const HOME: Place = { kind: 'direct', number: 1 };

it('imports the card that comes with the command, which gets the answer', async () => {
  const platform = await discordPlatform();
  const { discord } = platform;
  const on = await stageOn(platform, {});
  const give = (text: string, bytes: Buffer) => {
    const file = discord.attachment('card.png', bytes, 'image/png');
    const place = { from: userOf({ number: 1, name: 'Anna' }), channelId: channelOf(HOME) };
    return discord.command({ ...place, ...invocationOf(discord.commands() ?? [], text, file) });
  };
  try {
    await on.start();
    await discord.until(() => discord.commands() !== null, 'the commands are made known');
    on.model.reply('Good morning!');
    platform.say({ from: { number: 1, name: 'Anna' }, in: HOME, text: 'good morning' });
    await on.replies(HOME, 1);
    const asked = give('/persona import', await pngCard(madeCard()));
    const [, answer, greeting] = await on.replies(HOME, 3);
    expect(answer?.text).toMatch(/^Imported Marla\./);
    expect(greeting?.text).toContain('Mind the third step.');
    expect(asked.messages.map(({ content }) => content)).toEqual([answer?.text]);
    give('/persona import Ida', await pngCard(madeCard({ name: 'Otto', first_mes: '' })));
    expect((await on.replies(HOME, 4)).at(-1)?.text).toMatch(/^Imported Ida\./);
    const broken = give('/persona import', Buffer.from('no picture'));
    await on.replies(HOME, 5);
    expect(broken.messages.map(({ content }) => content)).toEqual([
      'Not imported: there is no character card in it.',
    ]);
    expect(on.model.requests).toHaveLength(1);
  } finally {
    await on.close();
  }
});
