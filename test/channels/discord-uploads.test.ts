/** How large a file may be is what the server tells; and links in what we say are fetched by nobody. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Recipient } from '../../src/core/channel.js';
import { sendOptions } from '../harness/sending.js';
import { ANNA, appearanceOf, CHANNEL, GUILD, gallery, openStage, type Stage } from './discord-stage.js';

const MIB = 1024 * 1024;
const GROUP: Recipient = { address: CHANNEL, threadId: null, kind: 'group' };

let stage: Stage;
let folder: string;

beforeEach(async () => {
  stage = await openStage();
  folder = await mkdtemp(join(tmpdir(), 'coterie-uploads-'));
  gallery(stage.fake);
  await stage.listen();
});
afterEach(async () => {
  await stage.close();
  await rm(folder, { recursive: true });
});

async function sendFile(bytes: number, key = String(bytes)) {
  const path = join(folder, key);
  await writeFile(path, Buffer.alloc(bytes));
  const part = { text: '', marks: [], file: { path, name: 'a.bin' } };
  return stage.channel.send(GROUP, part, sendOptions({ key, createdAt: stage.clock.now() }));
}

describe('a file', () => {
  test('of 10 MiB goes out, and of one byte more does not', async () => {
    expect(await sendFile(10 * MIB)).toMatchObject({ kind: 'sent' });
    const calls = stage.fake.callsTo('POST', /messages$/).length;
    expect(await sendFile(10 * MIB + 1)).toMatchObject({
      kind: 'refused',
      reason: expect.stringContaining('Discord takes at most 10.5 MB'),
    });
    expect(stage.fake.callsTo('POST', /messages$/)).toHaveLength(calls);
  });

  test('may be larger where the server is boosted', async () => {
    stage.fake.boost(GUILD, 2);
    await expect.poll(() => sendFile(12 * MIB, 'boosted')).toMatchObject({ kind: 'sent' });
  });

  test('may be as large as Discord says with a command', async () => {
    stage.fake.settings.uploadBytes = 12 * MIB;
    stage.fake.command({ from: ANNA, channelId: CHANNEL, name: 'help' });
    await stage.until(() => stage.texts().includes('/help'));
    expect(await sendFile(11 * MIB)).toMatchObject({ kind: 'sent' });
  });

  test('that Discord refuses as too large teaches what it takes', async () => {
    stage.fake.boost(GUILD, 3);
    stage.fake.settings.uploadBytes = 10 * MIB;
    await expect.poll(async () => JSON.stringify(await sendFile(11 * MIB, 'first'))).toContain('413');
    const calls = stage.fake.callsTo('POST', /messages$/).length;
    expect(await sendFile(11 * MIB, 'second')).toMatchObject({
      kind: 'refused',
      reason: expect.stringContaining('at most 10.5 MB'),
    });
    expect(stage.fake.callsTo('POST', /messages$/)).toHaveLength(calls);
    expect(await sendFile(9 * MIB, 'third')).toMatchObject({ kind: 'sent' });
  });
});

describe('a link', () => {
  const url = 'https://evil.example/?q=what-anna-said';
  const text = { text: `see ${url} now`, marks: [] };
  const luna = { appearance: appearanceOf('Luna'), leads: true };

  async function everyWay(on: Stage): Promise<void> {
    for (const [key, more] of [
      ['1', {}],
      ['2', luna],
    ] as const) {
      const options = sendOptions({ key, createdAt: on.clock.now(), ...more });
      const sent = await on.channel.send(GROUP, { text: 'see', marks: [] }, options);
      const id = sent.kind === 'sent' ? sent.platformMessageId : '';
      expect(await on.channel.edit(GROUP, id, text, options)).toMatchObject({ kind: 'sent' });
      const whole = sendOptions({ key: `${key}-whole`, createdAt: on.clock.now(), ...more });
      await on.channel.send(GROUP, text, whole);
    }
  }

  test('is fetched by nobody, neither in a message nor in a change, by the bot or a persona or in answer to a command', async () => {
    await everyWay(stage);
    const { id } = stage.fake.command({ from: ANNA, channelId: CHANNEL, name: 'help' });
    await stage.until(() => stage.texts().includes('/help'));
    await stage.channel.send(
      GROUP,
      text,
      sendOptions({ key: '3', createdAt: stage.clock.now(), replyTo: id }),
    );
    expect(stage.fake.sent.filter(({ content }) => content.includes(url))).toHaveLength(5);
    expect(stage.fake.links).toEqual([]);
  });

  test('has its preview where that is wanted, which is no edit', async () => {
    const open = await openStage({ apiRoot: stage.fake.url, token: stage.fake.token, linkPreviews: true });
    await everyWay(open);
    expect(stage.fake.links).toEqual([url, url, url, url]);
    expect(stage.events()).toEqual([]);
    stage.fake.links.length = 0;
    await open.close();
  });
});
