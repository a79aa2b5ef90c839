/** The channel of the page: what it hands to the gateway, what it keeps, and whom it tells of changes. */
import { mkdtemp, readdir, rm, stat, truncate, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createBoardChannel } from '../../src/channels/board/channel.js';
import type { Reception } from '../../src/core/channel.js';
import { uniqueId } from '../../src/core/ids.js';
import type { InboundBatch } from '../../src/core/message.js';
import { manualClock } from '../fakes/clock.js';
import { ALL_LET_IN, sendOptions } from '../harness/sending.js';

const MAIN = { address: 'main', threadId: null, kind: 'direct' as const };
const NOW = 1_700_000_000_000;
const HOUR_MS = 3_600_000;

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'coterie-board-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

function setUp(reception: (batch: InboundBatch) => Promise<Reception> = async () => ALL_LET_IN) {
  const clock = manualClock(NOW);
  const batches: InboundBatch[] = [];
  const channel = createBoardChannel({
    folder: join(folder, 'board'),
    userName: 'Kim',
    clock,
    newId: () => uniqueId(NOW),
  });
  const stop = new AbortController();
  const start = () =>
    channel.start(async (batch) => {
      batches.push(batch);
      return reception(batch);
    }, stop.signal);
  return { channel, clock, batches, start, stop };
}

const MESSAGE = { chatId: 'board_main', id: 'a-1', text: 'hello', files: [] };

describe('the channel of the page', () => {
  it('hands on what was typed, from its one person, under the id that the page made', async () => {
    const { channel, batches, start } = setUp();
    await start();
    expect(await channel.take(MESSAGE)).toBe('taken');
    expect(batches).toEqual([
      {
        channel: 'board',
        account: 'board',
        events: [
          {
            kind: 'message',
            chat: { address: 'main', kind: 'direct', title: 'Kim' },
            threadId: null,
            platformMessageId: 'a-1',
            sender: { address: 'owner', name: 'Kim', administrator: true },
            text: 'hello',
            sentAt: NOW,
            mentionsBot: false,
            replyTo: null,
          },
        ],
      },
    ]);
    expect(channel.status()).toMatchObject({ connected: true, lastError: null });
  });

  it('takes nothing before it starts, while it stops, and from whom the gateway does not let in', async () => {
    const { channel, start, stop } = setUp(async ({ events }) => ({
      ...ALL_LET_IN,
      rejected: events.map(() => ({ platformMessageId: 'a-1', why: 'closed' as const })),
    }));
    expect(await channel.take(MESSAGE)).toBe('closed');
    await start();
    expect(await channel.take(MESSAGE)).toBe('closed');
    stop.abort();
    expect(await channel.press({ chatId: 'board_main', id: 'p', value: 'k.0' })).toBe('closed');
  });

  it('ends when what it was taking is on disk', async () => {
    let onDisk: (reception: Reception) => void = () => {};
    const { channel, start, stop } = setUp(() => new Promise((resolve) => (onDisk = resolve)));
    await start();
    const taking = channel.take(MESSAGE);
    stop.abort();
    let isStopped = false;
    const stopping = channel.stop().then(() => (isStopped = true));
    await new Promise((resolve) => setImmediate(resolve));
    expect(isStopped).toBe(false);
    onDisk(ALL_LET_IN);
    await stopping;
    expect(await taking).toBe('taken');
  });

  it('lets a refusal of the store through, so that the page keeps the message', async () => {
    const { channel, start } = setUp(async () => {
      throw new Error('disk full');
    });
    await start();
    await expect(channel.take(MESSAGE)).rejects.toThrow('disk full');
  });

  it('shows Markdown unsplit, and what it sends under the same id each time', async () => {
    const { channel } = setUp();
    const long = `# Title\n\n${'word '.repeat(10_000)}`;
    expect(channel.compose(long)).toEqual([{ text: long, marks: [] }]);
    expect(channel.compose(' \n')).toEqual([]);
    const part = { text: 'hi', marks: [] };
    const options = { ...sendOptions(), key: '7' };
    const sent = await channel.send(MAIN, part, options);
    expect(sent).toEqual({ kind: 'sent', platformMessageId: 'sent-7' });
    expect(await channel.send(MAIN, part, { ...options, earlierTries: 1 })).toEqual(sent);
    expect(await channel.edit?.(MAIN, 'sent-7', part, options)).toEqual(sent);
    expect(await channel.react?.(MAIN, 'a-1', '👍', options)).toEqual(sent);
  });

  it('refuses a file that is not there', async () => {
    const { channel } = setUp();
    const there = join(folder, 'a.txt');
    await writeFile(there, 'words');
    const send = (path: string) =>
      channel.send(MAIN, { text: '', marks: [], file: { path, name: 'a.txt' } }, sendOptions());
    expect(await send(there)).toMatchObject({ kind: 'sent' });
    expect(await send(join(folder, 'none'))).toMatchObject({ kind: 'refused' });
  });

  it('tells of changed chats together, once a frame, and only while somebody watches', async () => {
    const { channel, clock, start } = setUp();
    await start();
    const told: string[][] = [];
    await channel.take(MESSAGE);
    const unwatch = channel.watch((chats) => told.push([...chats]));
    for (let n = 0; n < 5; n++) await channel.send(MAIN, { text: `${n}`, marks: [] }, sendOptions());
    await channel.edit?.({ ...MAIN, address: 'trip' }, 'sent-1', { text: 'x', marks: [] }, sendOptions());
    expect(told).toEqual([]);
    await clock.advance(50);
    expect(told).toEqual([['board_main', 'board_trip']]);
    unwatch();
    await channel.take({ ...MESSAGE, id: 'a-2' });
    await clock.advance(50);
    expect(told).toHaveLength(1);
  });
});

describe('uploads of the page', () => {
  const upload = { name: 'a.png', type: 'image/png', bytes: Buffer.from('picture') };
  const ask = { maxBytes: 100, signal: new AbortController().signal };
  const fetch = (channel: ReturnType<typeof setUp>['channel'], source: string, maxBytes = 100) =>
    channel.fetch?.(
      { kind: 'image', source, name: null, mimeType: null, bytes: null, seconds: null },
      { ...ask, maxBytes },
    );

  async function kept(channel: ReturnType<typeof setUp>['channel']) {
    const file = await channel.keep(upload);
    if (file === null) throw new Error('the upload was not kept');
    return file;
  }

  it('come with the message that names them, and are fetched under their id', async () => {
    const { channel, batches, start } = setUp();
    await start();
    const file = await kept(channel);
    expect(file).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      name: 'a.png',
      type: 'image/png',
      bytes: 7,
    });
    expect((await stat(join(folder, 'board'))).mode & 0o077).toBe(0);
    await channel.take({ ...MESSAGE, files: [file] });
    expect(batches[0]?.events[0]).toMatchObject({
      attachments: [{ kind: 'image', source: file.id, name: 'a.png', mimeType: 'image/png', bytes: 7 }],
    });
    expect(await fetch(channel, file.id)).toEqual({ kind: 'fetched', bytes: upload.bytes });
    expect(await fetch(channel, file.id)).toEqual({ kind: 'fetched', bytes: upload.bytes });
    expect(await fetch(channel, file.id, 3)).toEqual({ kind: 'too large' });
  });

  it('cannot name a path', async () => {
    const { channel, start } = setUp();
    await start();
    await writeFile(join(folder, 'secret'), 'secret');
    for (const source of ['../secret', join(folder, 'secret'), '', '\0']) {
      expect(await fetch(channel, source)).toMatchObject({ kind: 'gone' });
    }
    const file = { id: '../secret', name: 'x', type: 'text/plain', bytes: 1 };
    expect(await channel.take({ ...MESSAGE, files: [file] })).toBe('taken');
  });

  it('are removed: unnamed after a day, fetched within hours, named ones wait for a gateway that was away', async () => {
    const { channel, clock, start } = setUp();
    await start();
    const unnamed = await kept(channel);
    const named = await kept(channel);
    const fetched = await kept(channel);
    await channel.take({ ...MESSAGE, files: [named, fetched] });
    await fetch(channel, fetched.id);
    await clock.advance(2 * HOUR_MS);
    const second = await kept(channel);
    expect((await readdir(join(folder, 'board'))).sort()).toEqual([unnamed.id, named.id, second.id].sort());
    await clock.advance(25 * HOUR_MS);
    const third = await kept(channel);
    expect((await readdir(join(folder, 'board'))).sort()).toEqual([named.id, third.id].sort());
    expect(await fetch(channel, unnamed.id)).toMatchObject({ kind: 'gone' });
    expect(await fetch(channel, named.id)).toMatchObject({ kind: 'fetched' });
  });

  it('that nobody sends do not fill the disk, and make room when their time is over', async () => {
    const { channel, clock, start } = setUp();
    await start();
    const file = await kept(channel);
    const much = join(folder, 'board', 'much');
    await writeFile(much, '');
    await truncate(much, 1_999_999_990);
    await utimes(much, new Date(NOW), new Date(NOW));
    await clock.advance(HOUR_MS + 1);
    expect(await channel.keep(upload)).toBe(null);
    expect(await channel.keep({ ...upload, bytes: Buffer.from('x') })).toMatchObject({ bytes: 1 });
    expect(await channel.keep(upload)).toBe(null);
    expect(await fetch(channel, file.id)).toMatchObject({ kind: 'fetched' });
    await rm(much);
    await clock.advance(60_001);
    expect(await channel.keep(upload)).not.toBe(null);
  });

  it('are no more than 2,000 at a time, also when they come at once', async () => {
    const { channel, start } = setUp();
    await start();
    const all = await Promise.all(Array.from({ length: 2_020 }, () => channel.keep(upload)));
    expect(all.filter((each) => each === null)).toHaveLength(20);
    expect(await readdir(join(folder, 'board'))).toHaveLength(2_000);
  });

  it('of an earlier run are removed at the start', async () => {
    const first = setUp();
    const file = await kept(first.channel);
    const old = new Date(NOW - 25 * HOUR_MS);
    await utimes(join(folder, 'board', file.id), old, old);
    await setUp().start();
    expect(await readdir(join(folder, 'board'))).toEqual([]);
  });
});
