/** Skills with the real process: where nothing but skills is allowed, their files are read; `/skill` on Telegram and Discord. */
import { afterEach, expect, test } from 'vitest';
import type { ChatBody } from '../fakes/model.js';
import { discordPlatform } from '../harness/discord.js';
import type { Person, Place } from '../harness/platform.js';
import { type PlatformStage, stageOn } from '../harness/stage.js';
import { telegramPlatform } from '../harness/telegram-platform.js';

const ANNA: Person = { number: 1, name: 'Anna' };
const DIRECT: Place = { kind: 'direct', number: 1 };
const GROUP: Place = { kind: 'group', number: 7 };
const TEA = '---\nname: Making Tea\ndescription: Makes tea.\n---\nRead references/green.md first.\n';

let on: PlatformStage;
afterEach(() => on.close());

async function begin(platform: Parameters<typeof stageOn>[0]) {
  on = await stageOn(platform, { tools: { allow: ['memory', 'skills'] } });
  await on.home.write('data/skills/drinks/tea/SKILL.md', TEA);
  await on.home.write('data/skills/drinks/tea/references/green.md', 'Eighty degrees.');
  await on.home.write('config-of-mine.md', 'SECRET');
  await on.start();
}
const resultsIn = ({ messages }: ChatBody) =>
  messages.flatMap(({ role, content }) => (role === 'tool' ? [String(content)] : []));

test('a persona that has skills and no files loads one and reads its files, and no others', async () => {
  await begin(await telegramPlatform());
  const paths = [
    'skills/drinks/tea/references/green.md',
    'skills/tea/references/green.md',
    '../../config-of-mine.md',
  ];
  on.model.reply((body) => {
    const done = resultsIn(body).length;
    if (done === 0) return { calls: [{ name: 'activate_skill', arguments: { name: 'tea' } }] };
    if (done === 1) return { calls: paths.map((path) => ({ name: 'read_file', arguments: { path } })) };
    return 'Here is your tea.';
  });
  on.platform.say({ from: ANNA, in: DIRECT, text: 'tea, please' });
  expect((await on.replies(DIRECT, 1))[0]?.text).toBe('Here is your tea.');
  const [first, , last] = on.model.requests.map(({ body }) => body);
  const names = first?.tools?.map((tool) => tool.function.name) ?? [];
  expect(names).toEqual(expect.arrayContaining(['activate_skill', 'read_file']));
  for (const name of ['write_file', 'edit_file', 'glob', 'grep', 'shell']) expect(names).not.toContain(name);
  expect(first?.messages[0]?.content).toContain('- tea: Makes tea.');
  const [loaded, read, readByName, refused] = last ? resultsIn(last) : [];
  expect(loaded).toContain('skills/drinks/tea/references/green.md');
  for (const result of [read, readByName]) expect(result).toContain('Eighty degrees.');
  expect(refused).toContain('Permission denied');
});

/** Of one on Discord: how its messages came. */
const waysOf = ({ platform }: PlatformStage & { platform: Partial<DiscordPlatform> }) =>
  platform.discord?.sent.map(({ via }) => via) ?? [];
type DiscordPlatform = Awaited<ReturnType<typeof discordPlatform>>;

test.each([
  ['Telegram', telegramPlatform],
  ['Discord', discordPlatform],
])('/skill on %s gives the instructions with the words; the persona answers it', async (_, platform) => {
  await begin(await platform());
  for (const [place, words] of [
    [DIRECT, 'green, please'],
    [GROUP, 'black, please'],
  ] as const) {
    on.model.reply(`Coming up: ${words}`);
    on.platform.command(ANNA, place, `/skill tea ${words}`);
    expect((await on.replies(place, 1))[0]?.text).toContain(`Coming up: ${words}`);
    const asked = String(on.model.requests.at(-1)?.body.messages.at(-1)?.content);
    expect(asked).toContain('Read references/green.md first.');
    expect(asked).toContain(`/skill tea ${words}</user_message>`);
  }
  const before = on.model.count();
  on.platform.command(ANNA, DIRECT, '/skill coffee now');
  expect((await on.replies(DIRECT, 2))[1]?.text).toContain('There is no such skill');
  expect(on.model.count()).toBe(before);
  // A native command is answered as such.
  expect(waysOf(on).filter((via) => via !== 'callback' && via !== 'edit')).toEqual([]);
});
