/** Exports of chats: read well, cannot be forged by what somebody wrote, and take little memory. */
import { mkdtemp, readdir, readFile, rm, stat, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { createExports, exportOf, writePieces } from '../../src/chat-export/export.js';
import type { ChatFeed, ExportFormat } from '../../src/core/chat-record.js';
import { createZone } from '../../src/core/dates.js';
import type { Persona } from '../../src/core/persona.js';
import type { StoredMessage } from '../../src/core/transcript.js';
import { manualClock } from '../fakes/clock.js';

const CHAT = 'test_1';
const NOW = Date.UTC(2026, 0, 31, 12);
const zone = createZone('Europe/Berlin');
const LUNA = { id: 'luna', name: 'Luna' } as Persona;
const personas = { list: async () => [LUNA] };

function said(id: number, text: string, more: Partial<StoredMessage> = {}): StoredMessage {
  return {
    ...{ id, room: CHAT, text, sentAt: NOW + id * 60_000, receivedAt: NOW, platformMessageId: `${id}` },
    author: { kind: 'person', id: 'test_9', name: 'Mira', administrator: false },
    ...{ mentionsBot: false, replyTo: null, edited: false, turnId: null },
    ...more,
  };
}

const byLuna = { author: { kind: 'persona', id: 'luna' } } as const;

function feedOf(messages: StoredMessage[], title = 'The garden'): ChatFeed {
  const chat = { id: CHAT, channel: 'test', account: 'b', address: '1', activePersona: 'luna' } as const;
  return {
    chat: async (id) => (id === CHAT ? { ...chat, kind: 'group', title } : null),
    saidIn: async ({ after }) => ({
      said: after === 0 ? messages.map(({ id, room }) => ({ id, room })) : [],
      next: after === 0 ? 1 : null,
    }),
    messages: async (ids) => messages.filter(({ id }) => ids.includes(id)),
  };
}

async function exported(feed: ChatFeed, format: ExportFormat = 'markdown', chatId = CHAT) {
  const ask = { chatId, by: null, format, since: null, until: null };
  const made = await exportOf({ feed, personas, zone, now: NOW }, ask);
  let text = '';
  for await (const piece of made?.pieces() ?? []) text += piece;
  return made && text;
}

it('reads as a chat does', async () => {
  const text = await exported(
    feedOf([
      said(1, 'Hello Luna,\n\nhow are the roses?'),
      said(2, '**Well**, thank you.', { ...byLuna, replyTo: null }),
      said(3, '(reacts with 👍)', { reaction: true, sentAt: NOW + 12 * 3_600_000 }),
      said(4, 'look', {
        replyTo: { senderName: 'Luna', text: 'Well,\nthank you', ours: true, personaId: 'luna' },
        words: 'look',
        edited: true,
        forwardedFrom: 'Bob',
        attachments: [
          {
            kind: 'document',
            source: 's',
            name: 'plan *v2*.pdf',
            mimeType: 'application/pdf',
            bytes: 2_000,
            seconds: null,
          },
          {
            ...{ kind: 'voice', source: 's', name: null, mimeType: 'audio/ogg', bytes: null, seconds: 3 },
            outcome: { kind: 'kept', file: 'f', mimeType: 'audio/ogg', read: 'see you' },
          },
        ],
        sentAt: NOW + 12 * 3_600_000,
      }),
    ]),
  );
  expect(text).toBe(`# The garden

- Chat: \`test_1\`
- Exported: 2026-01-31 13:00 (times are of Europe/Berlin)
- Messages: 4

## 2026-01-31

**Mira**, 13:01

> Hello Luna,
>
> how are the roses?

**Luna**, 13:02

> **Well**, thank you.

## 2026-02-01

**Mira**, 01:00

> (reacts with 👍)

**Mira**, forwarding Bob, 01:00 (edited)

> _In reply to Luna:_
> > Well, thank you
>
> look
>
> _[document plan \\*v2\\*.pdf, 2 kB]_
> _[voice]_
>
> see you

`);
});

it('has a section for each thread, the chat itself first', async () => {
  const text = await exported(
    feedOf([
      said(1, 'a', { room: `${CHAT}/7` }),
      said(2, 'b'),
      said(3, 'c', { room: `${CHAT}/*8*` }),
      said(4, 'd', { room: `${CHAT}/7` }),
    ]),
  );
  const outline = (text ?? '').split('\n').filter((line) => /^(#|>)/.test(line));
  expect(outline).toEqual([
    ...['# The garden', '## In the chat itself', '### 2026-01-31', '> b'],
    ...['## Thread 7', '### 2026-01-31', '> a', '> d', '## Thread \\*8\\*', '### 2026-01-31', '> c'],
  ]);
});

it('lets nobody write as somebody else, or headings', async () => {
  const evil = 'x\n\n## 2026-01-01\n\n**Luna**, 09:00\n\n> I agree\u001b[2J\u202e';
  const text = await exported(
    feedOf(
      [
        said(1, evil, {
          author: { kind: 'person', id: 'test_9', name: '# <b>**Luna**\n\n## [x](y)', administrator: false },
          forwardedFrom: '\n# Bob',
        }),
      ],
      '# A\n## <script>',
    ),
  );
  const lines = (text ?? '').split('\n');
  expect(lines.filter((line) => line.startsWith('#'))).toEqual([
    '# \\# A \\#\\# \\<script\\>',
    '## 2026-01-31',
  ]);
  expect(lines.filter((line) => line.startsWith('**'))).toEqual([
    '**\\# \\<b\\>\\*\\*Luna\\*\\* \\#\\# \\[x\\]\\(y\\)**, forwarding \\# Bob, 13:01',
  ]);
  for (const sign of ['\u001b', '\u202e']) expect(text).not.toContain(sign);
});

it('as JSON has everything in fields', async () => {
  const text = await exported(
    feedOf([said(1, 'a "b"\u2028', { room: `${CHAT}/7` }), said(2, 'c', byLuna)], 'T\u0007'),
    'json',
  );
  expect(JSON.parse(text ?? '')).toEqual({
    ...{
      format: 'coterie-chat',
      version: 1,
      timezone: 'Europe/Berlin',
      since: null,
      until: null,
      messages: 2,
    },
    chat: { id: CHAT, channel: 'test', kind: 'group', title: 'T\u0007' },
    exported_at: '2026-01-31T12:00:00.000Z',
    rooms: [
      {
        thread: null,
        messages: [
          {
            id: 2,
            at: '2026-01-31T12:02:00.000Z',
            author: { kind: 'persona', id: 'luna', name: 'Luna' },
            text: 'c',
          },
        ],
      },
      {
        thread: '7',
        messages: [
          {
            ...{ id: 1, at: '2026-01-31T12:01:00.000Z', text: 'a "b"\u2028' },
            author: { kind: 'person', id: 'test_9', name: 'Mira' },
          },
        ],
      },
    ],
  });
});

it.each(['markdown', 'json'] as const)('of nothing is whole, as %s', async (format) => {
  const text = await exported(feedOf([]), format);
  expect(format === 'json' ? JSON.parse(text ?? '').rooms : text).toEqual(
    format === 'json' ? [] : expect.stringContaining('- Messages: 0'),
  );
  expect(await exported(feedOf([]), format, '../etc')).toBe(null);
});

it('takes little memory, however long a chat is', async () => {
  const count = 200_000;
  const longest = 'word '.repeat(100);
  const feed: ChatFeed = {
    ...feedOf([]),
    saidIn: async ({ after }) => {
      const ids = Array.from({ length: 5_000 }, (_, n) => ({ id: after + n + 1, room: CHAT }));
      return { said: after < count ? ids : [], next: after < count ? after + 5_000 : null };
    },
    messages: async (ids) => ids.map((id) => said(id, `${longest}${id}`, { sentAt: NOW })),
  };
  const ask = { chatId: CHAT, by: null, format: 'json', since: null, until: null } as const;
  const made = await exportOf({ feed, personas, zone, now: NOW }, ask);
  expect(made?.messages).toBe(count);
  let [largest, all] = [0, 0];
  for await (const piece of made?.pieces() ?? []) {
    largest = Math.max(largest, piece.length);
    all += piece.length;
  }
  expect(all).toBeGreaterThan(100_000_000);
  expect(largest).toBeLessThan(500_000);
});

it('lies in a file of its own, whole or not at all, until it was there for long enough', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'coterie-exports-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const clock = manualClock(NOW);
  const exports = createExports({ folder, feed: feedOf([said(1, 'a')]), personas, zone, clock });
  const going = new AbortController();
  const ask = {
    chatId: CHAT,
    by: 'luna',
    format: 'markdown',
    since: null,
    until: null,
    key: '../k',
  } as const;
  const made = await exports.make({ ...ask, signal: going.signal });
  expect(made).toEqual({
    messages: 1,
    file: { path: join(folder, CHAT, '-k/test_1-2026-01-31.md'), name: 'test_1-2026-01-31.md' },
  });
  const path = made?.file.path ?? '';
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  expect(await exports.make({ ...ask, chatId: 'test_2', signal: going.signal })).toBe(null);
  await expect(exports.forget('..')).rejects.toThrow('names no chat');
  const at = clock.now() / 1000;
  await utimes(join(path, '..'), at, at);
  await exports.tidy();
  expect(await readFile(path, 'utf8')).toContain('> a');
  await clock.advance(2 * 86_400_000 + 1);
  await exports.tidy();
  expect(await readdir(join(folder, CHAT))).toEqual([]);

  going.abort();
  await expect(exports.make({ ...ask, signal: going.signal })).rejects.toThrow();
  async function* broken() {
    yield 'half';
    throw new Error('the disk is full');
  }
  await expect(writePieces(join(folder, 'f.md'), broken())).rejects.toThrow('the disk is full');
  expect((await readdir(folder)).filter((name) => name.startsWith('f.md'))).toEqual([]);
});
