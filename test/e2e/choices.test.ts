/**
 * Choosing on every platform, through the real gateway: by buttons on Telegram and Discord, by numbers on WhatsApp; in a
 * group where others press, too, and after the gateway was killed.
 */
import { afterEach, describe, expect, it } from 'vitest';
import { discordPlatform } from '../harness/discord.js';
import { eventually } from '../harness/gateway.js';
import type { Person, Place, Platform, Shown } from '../harness/platform.js';
import { type PlatformStage, stageOn } from '../harness/stage.js';
import { telegramPlatform } from '../harness/telegram-platform.js';
import { whatsappPlatform } from '../harness/whatsapp.js';

const ANNA: Person = { number: 1, name: 'Anna' };
const BEN: Person = { number: 2, name: 'Ben' };
const DIRECT: Place = { kind: 'direct', number: 1 };
const BENS: Place = { kind: 'direct', number: 2 };
const GROUP: Place = { kind: 'group', number: 7 };
/** As long as a name may be, and in no Latin letters. */
const LONG = 'Шахерезада из тысячи и одной ночи, которая всё рассказывает';

const PLATFORMS: [string, () => Promise<Platform>][] = [
  ['Telegram', telegramPlatform],
  ['Discord', discordPlatform],
  ['WhatsApp', whatsappPlatform],
];

let on: PlatformStage;
afterEach(() => on.close());

/** What we say in a place after something was done. */
async function said(place: Place, act: () => void): Promise<Shown> {
  const before = on.platform.shown(place).length;
  act();
  const [shown] = (await on.replies(place, before + 1)).slice(before);
  if (shown === undefined) throw new Error('nothing was said');
  return shown;
}
const command = (text: string, place = DIRECT) => said(place, () => on.platform.command(ANNA, place, text));

/** By the button, or by the number that stands before it. */
function choose(from: Person, place: Place, asked: Shown, label: string): void {
  const number = asked.text
    .split('\n')
    .find((line) => line.endsWith(` ${label}`))
    ?.split(' ')[0];
  const code = /and the code: `*\d+ (\w+)/.exec(asked.text)?.[1];
  const answer = [number ?? 'there is no such choice', ...(code === undefined ? [] : [code])].join(' ');
  if (on.platform.press) on.platform.press(from, place, asked.id, label);
  else on.platform.say({ from, in: place, text: answer });
}
const chosen = (place: Place, asked: Shown, label: string) =>
  said(place, () => choose(ANNA, place, asked, label));

function offered({ buttons, text }: Shown): string[] {
  return on.platform.press
    ? (buttons ?? [])
    : Array.from(text.matchAll(/^\d+ (.+)$/gm), ([, label = '']) => label);
}

/** Nothing below it can be pressed any more, and nobody waits for an answer. */
async function isOver(place: Place, { id }: Shown): Promise<void> {
  const buttons = () => on.platform.shown(place).find((shown) => shown.id === id)?.buttons ?? [];
  await eventually(() => buttons().length === 0, 'the buttons are gone');
  await eventually(() => (on.platform.unanswered?.() ?? 0) === 0, 'every press is answered');
}

describe.each(PLATFORMS)('on %s', (_name, platformOf) => {
  it('a persona is chosen, once, by whoever asked, also after a crash; and what is to be forgotten', async () => {
    const platform = await platformOf();
    on = await stageOn(platform, {
      access: { direct: 'open', groups: 'open', owners: [platform.personId(ANNA)] },
    });
    const gateway = await on.start();
    await command('/persona new Luna');
    await command(`/persona new "${LONG}"`);
    await command('/persona switch Luna');

    const asked = await command('/persona list');
    expect(offered(asked)).toEqual(['default', LONG]);
    expect((await chosen(DIRECT, asked, LONG)).text).toContain(`Switched to ${LONG}.`);
    await isOver(DIRECT, asked);

    on.model.reply('A fish.');
    await said(DIRECT, () => platform.say({ from: ANNA, in: DIRECT, text: 'the word is swordfish' }));
    const question = await command('/memory forget swordfish');
    expect(offered(question)).toEqual(['Forget', 'Keep']);
    expect((await chosen(DIRECT, question, 'Keep')).text).toBe('Nothing was changed.');
    const again = await command('/memory forget swordfish');
    expect((await chosen(DIRECT, again, 'Forget')).text).toMatch(/^Forgotten:/);
    await isOver(DIRECT, again);

    await command('/persona new Luna', GROUP);
    const inGroup = await command('/persona list', GROUP);
    expect(offered(inGroup)).toEqual(['default']);
    choose(BEN, GROUP, inGroup, 'default');
    await eventually(() => (platform.unanswered?.() ?? 0) === 0, 'Ben is answered');
    await gateway.stop('SIGKILL');
    await on.start();
    const switched = await chosen(GROUP, inGroup, 'default');
    expect(switched.text).toContain('Switched to default.');
    await isOver(GROUP, inGroup);
    const all = platform.shown(GROUP).map(({ text }) => text);
    expect(all.filter((text) => text.includes('Switched to default.'))).toHaveLength(1);
    expect(on.model.count()).toBe(1);
  });

  it('an owner lets in who waits', async () => {
    const platform = await platformOf();
    const access = { direct: 'pairing', owners: [platform.personId(ANNA)] };
    platform.config.access = access;
    on = await stageOn(platform, { access });
    await on.start();
    await command('/whoami');
    const before = platform.shown(DIRECT).length;
    const door = await said(BENS, () => platform.say({ from: BEN, in: BENS, text: 'hello?' }));
    const code = /give this code to whoever runs me: ([A-Z]{8})/.exec(door.text)?.[1];
    const [waits] = (await on.replies(DIRECT, before + 1)).slice(before);
    if (waits === undefined) throw new Error('the owner was not told');
    expect(waits.text).toMatch(new RegExp(`Ben.* \\(\\w+\\) wants to talk\\. Their code is ${code}\\.`));
    expect(offered(waits)).toEqual(['Let in', 'Refuse']);
    const welcome = await said(BENS, () => choose(ANNA, DIRECT, waits, 'Let in'));
    expect(welcome.text).toMatch(/^You are in\./);
    await on.replies(DIRECT, before + 2);
    expect(platform.shown(DIRECT).at(-1)?.text).toMatch(/Ben.* may write to me now\./);
    on.model.reply('Hello, Ben.');
    const answer = await said(BENS, () => platform.say({ from: BEN, in: BENS, text: 'hello!' }));
    expect(answer.text).toContain('Hello, Ben.');
    await isOver(DIRECT, waits);
  });
});
