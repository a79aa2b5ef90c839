/** The gateway as it is delivered, on each platform: replies that are spoken, and a reaction instead of an answer. */
import { expect, it } from 'vitest';
import { startFakeSpeech } from '../fakes/speech.js';
import { discordPlatform } from '../harness/discord.js';
import { eventually } from '../harness/gateway.js';
import type { Person, Place, Platform } from '../harness/platform.js';
import { stageOn } from '../harness/stage.js';
import { telegramPlatform } from '../harness/telegram-platform.js';
import { whatsappPlatform } from '../harness/whatsapp.js';

const PLATFORMS: [string, () => Promise<Platform>][] = [
  ['Telegram', telegramPlatform],
  ['Discord', discordPlatform],
  ['WhatsApp', whatsappPlatform],
];
const ANNA: Person = { number: 1, name: 'Anna' };
const HOME: Place = { kind: 'direct', number: 1 };
const GARDEN: Place = { kind: 'group', number: 1 };

it.each(PLATFORMS)('replies are spoken, and reacted instead of said, on %s', async (_, make) => {
  const speech = await startFakeSpeech();
  speech.secondsOf = () => 3;
  const on = await stageOn(await make(), {
    speech: { base_url: speech.url, model: 'speaker', voice: 'alloy', api_key: 'key-of-the-speech-server' },
  });
  try {
    const { platform, model } = on;
    const gateway = await on.start();
    platform.command(ANNA, HOME, '/voice on');
    await on.replies(HOME, 1);
    model.reply('**Good** morning! 👋');
    platform.say({ from: ANNA, in: HOME, text: 'hello' });
    const [, text, note] = await on.replies(HOME, 3);
    expect(text?.text).toMatch(/Good.* morning!/);
    expect(note).toMatchObject({ text: '', files: ['voice note, 3 s'], replyTo: null });
    expect(speech.asked.map(({ input }) => input)).toEqual(['Good morning!']);
    expect(model.requests[0]?.body.tools?.map((tool) => tool.function.name)).not.toContain('react');

    const react = { calls: [{ name: 'react', arguments: { emoji: '🎉' } }] };
    model.reply(({ messages }) => (messages.at(-1)?.role === 'tool' ? '' : react));
    const id = platform.say({ from: ANNA, in: GARDEN, text: 'I passed!', mention: true });
    await eventually(() => platform.signs(GARDEN).length === 1, 'the reaction');
    expect(platform.signs(GARDEN)).toEqual([{ on: id, emoji: '🎉' }]);
    await model.received(3);
    model.reply('Fine.');
    platform.say({ from: ANNA, in: GARDEN, text: 'and you?', mention: true });
    expect((await on.replies(GARDEN, 1)).map((shown) => shown.text)).toEqual(['Fine.']);
    expect(gateway.err()).not.toContain('key-of-the-speech-server');
    expect(platform.unreadable?.() ?? []).toEqual([]);
  } finally {
    await on.close();
    await speech.close();
  }
});
