/**
 * The real process, killed at each step of an answer that is said anew or taken back. Afterwards one version is shown, and
 * it is the one in the history; memory holds what that version wrote.
 */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import Database from 'better-sqlite3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { FakeWhatsApp } from '../fakes/whatsapp.js';
import { eventually, type Running } from '../harness/gateway.js';
import type { Platform } from '../harness/platform.js';
import { type PlatformStage, stageOn } from '../harness/stage.js';
import { telegramPlatform } from '../harness/telegram-platform.js';
import { whatsappPlatform } from '../harness/whatsapp.js';

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
/** Between the deletion of what is too old to be edited and the sending of the next version. */
const BETWEEN: [string, Kill][] = [
  [
    'before it is stored that the first one is deleted',
    { at: 'statement', sql: 'update outbox set created_at', when: 'before' },
  ],
  ['when the first one is deleted', { at: 'commit', sql: 'update outbox set created_at' }],
];

const UNDONE: [string, Kill][] = [
  ['before it is stored', { at: 'statement', sql: "set state = 'unsaid'", when: 'before' }],
  ['when it is stored', { at: 'commit', sql: "set state = 'unsaid'" }],
  ['before the message is gone', { at: 'statement', sql: "set state = 'sending'", when: 'after' }],
  [
    'when the message is gone',
    { at: 'statement', sql: 'state = @kind', values: 'taken back', when: 'before' },
  ],
];

/** One account for all points, as linking WhatsApp takes long: each is in a chat of its own. */
let on: PlatformStage;
let gateway: Running;
let people = 0;

async function begin(platform: Platform): Promise<void> {
  on = await stageOn(platform, { memory: { announce: 'off' } });
  gateway = await on.start();
}

function newChat() {
  people += 1;
  const place = { kind: 'direct' as const, number: people };
  const from = { number: people, name: `Person ${people}` };
  return {
    place,
    shown: () => on.platform.shown(place).map(({ text }) => text),
    say: (text: string) => void on.platform.say({ from, in: place, text }),
  };
}

/** Ends the gateway, begins another that is killed there by a command, and then a third. */
async function killedBy(command: () => void, kill: Kill, meanwhile: () => void = () => {}): Promise<void> {
  await gateway.stop();
  meanwhile();
  const { NODE_OPTIONS } = on.platform.environment;
  const options = [NODE_OPTIONS, `--import ${KILL_AT}`].filter(Boolean).join(' ');
  const killed = on.launch({ NODE_OPTIONS: options, KILL_AT: JSON.stringify(kill) });
  command();
  await killed.exited;
  gateway = await on.start();
}

/** `meanwhile`: what happens while the gateway is down, before the command. */
async function saidAnewAndKilled(kill: Kill, meanwhile?: () => void) {
  const chat = newChat();
  const { place, shown, say } = chat;
  const { model, home, platform } = on;
  let tries = 0;
  model.reply((body) => {
    const last = body.messages.at(-1);
    const flower = tries === 0 ? 'roses' : 'tulips';
    if (JSON.stringify(last?.content).includes('what was it')) return 'So it was.';
    if (last?.role !== 'tool') {
      const content = `- likes ${flower}`;
      return { calls: [{ name: 'write_tiered_memory', arguments: { tier: 3, content } }] };
    }
    return `You like ${flower}.`;
  });
  say('what do I like?');
  await eventually(() => shown().includes('You like roses.'), 'the first answer');
  tries = 1;
  await killedBy(() => say('/again'), kill, meanwhile);
  await eventually(() => shown().includes('You like tulips.'), 'the second answer');
  say('what was it?');
  await eventually(() => shown().includes('So it was.'), 'the next answer');
  expect(shown()).toEqual(['You like tulips.', 'So it was.']);
  const told = JSON.stringify(model.requests.at(-1)?.body.messages);
  expect(told).toContain('You like tulips.');
  expect(told).not.toContain('roses');
  const memory = await home.read(`groups/${platform.chatId(place)}/default/MEMORY.md`);
  expect(memory).toContain('tulips');
  expect(memory).not.toContain('roses');
  return chat;
}

async function takenBackAndKilled(kill: Kill): Promise<void> {
  const { shown, say } = newChat();
  const { model } = on;
  model.reply((body) =>
    JSON.stringify(body.messages.at(-1)?.content).includes('still') ? 'Yes.' : 'Roses.',
  );
  say('what do I like?');
  await eventually(() => shown().includes('Roses.'), 'the answer');
  await killedBy(() => say('/undo'), kill);
  const isOver = () => shown().includes('Taken back.') && !shown().includes('Roses.');
  await eventually(isOver, 'it is taken back');
  say('still there?');
  await eventually(() => shown().includes('Yes.'), 'the next answer');
  expect(shown()).toEqual(['Taken back.', 'Yes.']);
  expect(JSON.stringify(model.requests.at(-1)?.body.messages)).not.toMatch(/what do I like|Roses/);
}

describe('on Telegram', () => {
  beforeAll(async () => begin(await telegramPlatform()));
  afterAll(() => on.close());

  it.each(POINTS)('killed %s: one version is shown, and is the history', async (_point, kill) => {
    await saidAnewAndKilled(kill);
  });
  it.each(UNDONE)('killed %s, an answer that is taken back is shown no more', async (_point, kill) => {
    await takenBackAndKilled(kill);
  });
});

describe('on WhatsApp', () => {
  let fake: FakeWhatsApp;
  beforeAll(async () => {
    const platform = await whatsappPlatform();
    fake = platform.whatsapp;
    await begin(platform);
  });
  afterAll(() => on.close());

  it.each(POINTS)('killed %s: one version is shown, and is the history', async (_point, kill) => {
    const { place } = await saidAnewAndKilled(kill);
    const sent = fake.sentTo(fake.peer(place.number));
    expect(sent.map(({ edited, revoked }) => [edited, revoked])).toEqual([
      [true, false],
      [false, false],
    ]);
  });
  it.each([...POINTS.slice(-2), ...BETWEEN])(
    'killed %s, of an answer that is too old to be edited: the same, in a message of its own',
    async (_point, kill) => {
      const minutes = 16 * 60_000;
      const { place } = await saidAnewAndKilled(kill, () => {
        const database = new Database(join(on.home.folder, 'data/coterie.db'));
        database.exec(`update outbox set created_at = created_at - ${minutes}`);
        database.close();
        for (const sent of fake.sent) sent.at -= minutes;
      });
      const sent = fake.sentTo(fake.peer(place.number));
      expect(sent.map(({ edited, revoked }) => [edited, revoked])).toEqual([
        [false, true],
        [false, false],
        [false, false],
      ]);
    },
  );
  it.each(UNDONE)('killed %s, an answer that is taken back is shown no more', async (_point, kill) => {
    await takenBackAndKilled(kill);
  });
  it('phones followed each change', () => {
    expect(fake.complaints.filter((words) => !words.includes('could not read'))).toEqual([]);
  });
});
