/**
 * What happens on Discord while the gateway is not running: its session is resumed by the next process, which then hears
 * of everything once, also of what cannot be fetched. Where the session cannot be resumed, messages are fetched.
 */
import { expect, test } from 'vitest';
import { discordPlatform } from '../harness/discord.js';
import { eventually } from '../harness/gateway.js';
import type { Person, Place } from '../harness/platform.js';
import { stageOn } from '../harness/stage.js';

const ANNA: Person = { number: 1, name: 'Anna' };
const DIRECT: Place = { kind: 'direct', number: 1 };
const GROUP: Place = { kind: 'group', number: 7 };
const BUSY: Place = { kind: 'group', number: 8 };

async function begin() {
  const platform = await discordPlatform();
  // The turn that waits when the process is told to end is left to the next one.
  const on = await stageOn(platform, { shutdown_seconds: 0 });
  const { model } = on;
  let letAnswer = () => {};
  const mayAnswer = new Promise<void>((resolve) => {
    letAnswer = resolve;
  });
  const asked = () => model.requests.map(({ body }) => JSON.stringify(body.messages));
  model.reply(async ({ messages }) => {
    const last = JSON.stringify(messages.at(-1));
    if (last.includes('slow')) await mayAnswer;
    const wanted = /answer (\w+)/.exec(last)?.[1];
    return wanted === undefined ? 'nothing to answer' : `answered ${wanted}`;
  });
  const texts = (place: Place) => platform.shown(place).map(({ text }) => text);
  const answers = (place: Place, word: string) =>
    texts(place).filter((text) => text.includes(`answered ${word}`)).length;
  return { ...on, discord: platform.discord, platform, letAnswer, asked, texts, answers };
}

test.each(['SIGTERM', 'SIGKILL'] as const)(
  'after %s the next process resumes: a message, an edit, a deletion, a reaction and a command, each once',
  async (signal) => {
    const on = await begin();
    const { platform, discord } = on;
    try {
      const first = await on.start();
      platform.say({ from: ANNA, in: DIRECT, text: 'answer hello' });
      platform.say({ from: ANNA, in: GROUP, text: 'answer group', mention: true });
      const [said] = await on.replies(GROUP, 1);
      await on.replies(DIRECT, 1);
      const noted = platform.say({ from: ANNA, in: GROUP, text: 'the party is on Monday' });
      platform.say({ from: ANNA, in: BUSY, text: 'slow, answer first', mention: true });
      await eventually(() => on.asked().some((request) => request.includes('slow')), 'a turn waits');
      const unwanted = platform.say({ from: ANNA, in: BUSY, text: 'answer unwanted', mention: true });
      await eventually(async () => {
        const written = await on.home.read('data/coterie.db-wal');
        return written?.includes('answer unwanted') && written.includes('on Monday');
      }, 'what was said is stored');
      await first.stop(signal);

      platform.edit(GROUP, noted, 'the party is on Friday');
      platform.remove(BUSY, unwanted);
      platform.react(ANNA, GROUP, said?.id ?? '', '🎉');
      discord.command({
        from: { id: '100000000000000001', username: 'person1', global_name: 'Anna' },
        channelId: String(200_000_000_000_000_001n),
        name: 'help',
      });
      platform.say({ from: ANNA, in: DIRECT, text: 'answer gap' });

      await on.start();
      await eventually(() => on.answers(DIRECT, 'gap') > 0, 'the message is answered');
      const helps = () => on.texts(DIRECT).filter((text) => text.includes('/reset')).length;
      await eventually(() => helps() > 0, 'the command is answered');
      platform.say({ from: ANNA, in: GROUP, text: 'answer party', mention: true });
      await eventually(() => on.answers(GROUP, 'party') > 0, 'the group is answered');
      on.letAnswer();
      await eventually(() => on.answers(BUSY, 'first') > 0, 'what was begun is answered');
      platform.say({ from: ANNA, in: BUSY, text: 'answer last', mention: true });
      await eventually(() => on.answers(BUSY, 'last') > 0, 'and what comes after it');

      expect(discord.sessions()).toMatchObject({ identified: 1, resumed: 1 });
      const request = on.asked().find((each) => each.includes('answer party')) ?? '';
      expect(request).toContain('on Friday');
      expect(request).not.toContain('on Monday');
      expect(request.split('🎉')).toHaveLength(2);
      expect(on.asked().join()).not.toContain('answer unwanted');
      expect([on.answers(DIRECT, 'hello'), on.answers(DIRECT, 'gap'), helps()]).toEqual([1, 1, 1]);
      expect([on.answers(GROUP, 'group'), on.answers(GROUP, 'party')]).toEqual([1, 1]);
      expect([on.answers(BUSY, 'first'), on.answers(BUSY, 'last')]).toEqual([1, 1]);
    } finally {
      await on.close();
    }
  },
  60_000,
);

test('where the session is over, a new one begins, and messages are fetched and answered once', async () => {
  const on = await begin();
  const { platform, discord } = on;
  try {
    const first = await on.start();
    platform.say({ from: ANNA, in: DIRECT, text: 'answer hello' });
    await on.replies(DIRECT, 1);
    await first.stop();
    platform.say({ from: ANNA, in: DIRECT, text: 'answer gap' });
    discord.settings.sessionMemoryMs = 0;
    await on.start();
    await eventually(() => on.answers(DIRECT, 'gap') > 0, 'the message is answered');
    // On a busy machine the first may arrive so late that the second comes too soon, and is begun again.
    const { identified, resumed, refused, tooSoon } = discord.sessions();
    expect([identified, resumed, refused - tooSoon]).toEqual([2, 0, 1]);
    platform.say({ from: ANNA, in: DIRECT, text: 'answer live' });
    await eventually(() => on.answers(DIRECT, 'live') > 0, 'and what is said now');
    expect(on.texts(DIRECT)).toHaveLength(3);
  } finally {
    await on.close();
  }
}, 60_000);
