/**
 * The real process, killed at each step of an answer that is said anew. Afterwards one version is shown, and it is the one
 * in the history; memory holds what that version wrote.
 */
import { fileURLToPath } from 'node:url';
import { afterEach, expect, it } from 'vitest';
import { discordPlatform } from '../harness/discord.js';
import { eventually } from '../harness/gateway.js';
import type { Place, Platform } from '../harness/platform.js';
import { generator, pause } from '../harness/random.js';
import { stageOn } from '../harness/stage.js';
import { type Stage, stage } from '../harness/telegram.js';
import { telegramPlatform } from '../harness/telegram-platform.js';

const ANNA = 700;
const KILL_AT = fileURLToPath(new URL('../harness/kill-at.mjs', import.meta.url));

interface Kill {
  at: 'statement' | 'commit';
  sql: string;
  values?: string;
  when?: 'before' | 'after';
}

const POINTS: [string, Kill][] = [
  [
    'before its turn is stored',
    { at: 'statement', sql: 'insert into turn', values: 'again', when: 'before' },
  ],
  ['when its turn is stored', { at: 'commit', sql: 'insert into turn', values: 'again' }],
  ['when memory is taken back', { at: 'statement', sql: 'update version set undone', when: 'before' }],
  ['after memory was taken back', { at: 'commit', sql: 'update version set undone' }],
  ['when its call is stored', { at: 'commit', sql: 'insert into step', values: 'tulips' }],
  ['before the first one is unsaid', { at: 'statement', sql: "set state = 'unsaid'", when: 'before' }],
  ['in the middle of its end', { at: 'statement', sql: "set state = 'unsaid'", when: 'after' }],
  ['after its end', { at: 'commit', sql: "set state = 'unsaid'" }],
  ['when it is shown', { at: 'statement', sql: "update outbox set state = 'sent'", when: 'before' }],
];

let on: Stage;
const opened: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const each of opened.splice(0)) await each.close();
});

it.each(POINTS)(
  'killed %s: one version is shown, and is the history',
  async (_name, kill) => {
    on = await stage({ config: { access: { direct: 'open' }, memory: { announce: 'off' } } });
    opened.push(on);
    let tries = 0;
    on.model.reply((body) => {
      const last = body.messages.at(-1);
      const flower = tries === 0 ? 'roses' : 'tulips';
      if (JSON.stringify(last?.content).includes('what was it')) return 'So it was.';
      if (last?.role !== 'tool') {
        const content = `- likes ${flower}`;
        return { calls: [{ name: 'write_tiered_memory', arguments: { tier: 3, content } }] };
      }
      return `You like ${flower}.`;
    });
    const first = await on.start();
    say('what do I like?');
    await eventually(() => shown().includes('You like roses.'), 'the first answer');
    await first.stop();
    tries = 1;
    const hook = { NODE_OPTIONS: `--import ${KILL_AT}`, KILL_AT: JSON.stringify(kill) };
    const killed = on.launch(hook);
    say('/again');
    await killed.exited;
    await on.start();
    await eventually(() => shown().includes('You like tulips.'), 'the second answer');
    say('what was it?');
    await eventually(() => shown().includes('So it was.'), 'the next answer');
    expect(shown()).toEqual(['You like tulips.', 'So it was.']);
    const told = JSON.stringify(on.model.requests.at(-1)?.body.messages);
    expect(told).toContain('You like tulips.');
    expect(told).not.toContain('roses');
    const memory = await on.home.read(`groups/telegram_${ANNA}/default/MEMORY.md`);
    expect(memory).toContain('tulips');
    expect(memory).not.toContain('roses');
  },
  60_000,
);

const CHATS = 8;
const KILLS = 6;
// WhatsApp's messages are not edited yet.
const PLATFORMS: [string, () => Promise<Platform>][] = [
  ['Telegram', telegramPlatform],
  ['Discord', discordPlatform],
];

it.each(PLATFORMS)(
  'killed at random on %s, in several chats at once: each shows one version, which is its history',
  async (_name, platform) => {
    const random = generator(Number(process.env.COTERIE_SEED ?? Date.now() % 1_000_000));
    const all = await stageOn(await platform());
    opened.push(all);
    let tries = 0;
    all.model.reply(async (body) => {
      await pause(random() * 100);
      const asked = JSON.stringify(body.messages.at(-1)?.content);
      return asked.includes('which') ? 'That one.' : `try ${++tries}.`;
    });
    const places = Array.from({ length: CHATS }, (_, n) => ({ kind: 'direct' as const, number: n + 1 }));
    const from = ({ number }: { number: number }) => ({ number, name: `Person ${number}` });
    const triesIn = (place: Place) =>
      all.platform.shown(place).flatMap(({ text }) => /^try \d+\./.exec(text)?.[0] ?? []);
    let gateway = await all.start();
    for (const place of places) all.platform.say({ from: from(place), in: place, text: 'hi' });
    await eventually(() => places.every((place) => triesIn(place).length === 1), 'all are answered');
    for (let kill = 0; kill < KILLS; kill++) {
      for (const place of places) all.platform.command(from(place), place, '/again');
      await pause(random() * 400);
      await gateway.stop('SIGKILL');
      gateway = await all.start();
    }
    for (let before = -1; before < tries; await pause(1_000)) before = tries;
    for (const place of places) {
      all.platform.say({ from: from(place), in: place, text: 'which one is it?' });
      const isAnswered = () => all.platform.shown(place).some(({ text }) => text.startsWith('That one.'));
      await eventually(isAnswered, 'the next answer');
      const told = JSON.stringify(all.model.requests.at(-1)?.body.messages);
      const known = Array.from(told.matchAll(/try \d+\./g), ([text]) => text);
      expect(triesIn(place), `shown to person ${place.number}`).toEqual(known);
      expect(known).toHaveLength(1);
    }
    await gateway.stop();
  },
  120_000,
);

const shown = () => on.sentTo(ANNA);

function say(text: string): void {
  on.telegram.say({ chat: { id: ANNA, type: 'private' }, from: { id: ANNA, first_name: 'Anna' }, text });
}
