/** Taking the files of a message: what becomes of each, in which words, whatever goes wrong on the way. */
import { readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import sharp from 'sharp';
import { describe, expect, test } from 'vitest';
import type { FetchResult } from '../../src/core/channel.js';
import type { StoredAttachment, TakeAsk, Taken, Transcriber } from '../../src/core/media.js';
import type { Attachment } from '../../src/core/message.js';
import { createMediaFiles } from '../../src/media/files.js';
import { createImages } from '../../src/media/images.js';
import { createMedia } from '../../src/media/media.js';
import { manualClock } from '../fakes/clock.js';
import { attachment, imageDecoder, keptLog, noise, tempFolder } from './support.js';

const MAX = 20_000_000;
const CHAT = 'telegram_1';

type Fetch = (file: Attachment, ask: { maxBytes: number; signal: AbortSignal }) => Promise<FetchResult>;

const saying = (words: string): Transcriber => ({ transcribe: async () => words });
const failing: Transcriber = {
  transcribe: () => Promise.reject(new Error('the transcription server is down')),
};

async function setUp(parts: { transcriber?: Transcriber | null; maxBytes?: number } = {}) {
  const folder = await tempFolder();
  const clock = manualClock();
  const log = keptLog();
  let made = 0;
  const files = createMediaFiles({ folder, newId: () => `id-${++made}` });
  const { transcriber = null, maxBytes = MAX } = parts;
  const media = createMedia({
    freed: () => {},
    files,
    images: createImages({ log, decoder: imageDecoder() }),
    transcriber,
    maxBytes,
    clock,
    log,
  });
  const fetched: Attachment[] = [];

  /** `content` is what every fetch gives. */
  function ask(
    attachments: StoredAttachment[],
    content: Buffer | string | FetchResult | Fetch,
    more: Partial<TakeAsk> = {},
  ): TakeAsk {
    const fetch: Fetch = async (file, limits) => {
      fetched.push(file);
      if (typeof content === 'function') return content(file, limits);
      if (typeof content === 'string' || Buffer.isBuffer(content)) {
        return { kind: 'fetched', bytes: Buffer.from(content) };
      }
      return content;
    };
    return {
      chatId: CHAT,
      words: '',
      attachments,
      fetch,
      signal: new AbortController().signal,
      ...more,
    };
  }

  const take = async (...asked: Parameters<typeof ask>) => whole(await media.take(ask(...asked)));
  const kept = () => readdir(join(folder, CHAT)).catch(() => []);
  return { folder, clock, log, files, media, fetched, ask, take, kept };
}

function whole(taken: Taken | null): Taken {
  if (taken === null) throw new Error('nothing was decided');
  return taken;
}

const outcomes = ({ attachments }: Taken) => attachments.map(({ outcome }) => outcome);

describe('what is taken', () => {
  test('a picture is kept as it came, and shown to a model', async () => {
    const { take, media, files } = await setUp();
    const bytes = await noise(30, 20).png().toBuffer();
    // Whatever its sender calls it.
    const picture = attachment({ kind: 'image', name: '../../evil.sh', mimeType: 'application/x-sh' });
    const taken = await take([picture], bytes, { words: 'Look' });
    expect(taken).toMatchObject({
      text: expect.stringMatching(/^Look\n\[image evil\.sh, \d+ kB\]$/),
      notice: null,
    });
    expect(outcomes(taken)).toEqual([{ kind: 'kept', file: `${CHAT}/id-1.png`, mimeType: 'image/png' }]);
    expect((await files.read(`${CHAT}/id-1.png`)).equals(bytes)).toBe(true);
    expect(await media.images(taken.attachments)).toEqual([{ mimeType: 'image/png', bytes }]);
  });

  test('a voice note is heard and kept', async () => {
    const { take, kept } = await setUp({ transcriber: saying(' Luna, are you there? ') });
    const voice = attachment({ kind: 'voice', seconds: 7, mimeType: 'audio/ogg' });
    const taken = await take([voice], 'OggS');
    expect(taken.text).toBe('[voice message, 7 s, transcribed] Luna, are you there?');
    expect(await kept()).toEqual(['id-1.ogg']);
  });

  test('a recording is heard where it is short, else only kept', async () => {
    const { take, fetched } = await setUp({ transcriber: saying('A talk.') });
    const recording = (seconds: number | null) =>
      attachment({ kind: 'audio', seconds, mimeType: 'audio/mpeg' });
    const taken = await take([recording(600), recording(601), recording(null)], 'ID3');
    expect(outcomes(taken)).toMatchObject([{ read: 'A talk.' }, { kind: 'kept' }, { kind: 'kept' }]);
    expect(taken.text).toBe(
      '[audio, 10 min 0 s, 3 bytes, transcribed] A talk.\n[audio, 10 min 1 s, 3 bytes]\n[audio, 3 bytes]',
    );
    expect(fetched).toHaveLength(3);
  });

  test('an endless transcript is cut, with the marker', async () => {
    const { take } = await setUp({ transcriber: saying('word '.repeat(10_000)) });
    const { text } = await take([attachment({ kind: 'voice' })], 'OggS');
    expect(text.length).toBeLessThan(20_200);
    expect(text).toContain('<<truncated due to transcript-max-chars=20000>>');
  });

  test('a text is read, a drawing too; anything else is kept and named', async () => {
    const { take, media, kept } = await setUp();
    const contents: Record<string, string> = { notes: 'tea, rain', logo: '<svg/>', archive: 'PK\x03\x04\0' };
    const taken = await take(
      [
        attachment({ source: 'notes', name: 'notes.txt', mimeType: 'text/plain' }),
        attachment({ source: 'logo', kind: 'image', mimeType: 'image/svg+xml' }),
        attachment({ source: 'archive', name: 'a.zip', mimeType: 'application/zip' }),
        attachment({ source: 'archive', kind: 'video', seconds: 65, mimeType: 'video/mp4' }),
      ],
      async ({ source }) => ({ kind: 'fetched', bytes: Buffer.from(contents[source] ?? '') }),
    );
    expect(taken.text).toBe(
      [
        '[document notes.txt, 9 bytes]\n```\ntea, rain\n```',
        '[image, 6 bytes]\n```\n<svg/>\n```',
        '[document a.zip, 5 bytes]',
        '[video, 1 min 5 s, 5 bytes]',
      ].join('\n'),
    );
    expect(taken.notice).toBe(null);
    expect(await kept()).toEqual(['id-1.txt', 'id-2.svg', 'id-3.zip', 'id-4.mp4']);
    expect(await media.images(taken.attachments)).toEqual([]);
  });

  test('what has an outcome is not looked at again', async () => {
    const { take, fetched } = await setUp();
    const done = attachment({ outcome: { kind: 'left', why: 'not to be had any more' } });
    const taken = await take([done, attachment()], 'new');
    expect(fetched).toHaveLength(1);
    expect(taken.attachments[0]).toEqual(done);
    expect(taken.text).toContain('[document: not to be had any more]\n[document, 3 bytes]');
  });
});

describe('voices first', () => {
  test('only they are looked at, and later not again', async () => {
    let heard = 0;
    const transcriber: Transcriber = { transcribe: async () => `heard ${++heard}` };
    const { take, media, fetched } = await setUp({ transcriber });
    const files = [attachment({ name: 'a.txt' }), attachment({ kind: 'voice', seconds: 3 })];
    expect(media.mayAddress(files)).toBe(true);
    const first = await take(files, 'words', { only: 'voice' });
    expect(first.text).toBe('[document a.txt]\n[voice message, 3 s, transcribed] heard 1');
    expect(first.attachments[0]).toEqual(files[0]);
    expect(media.mayAddress(first.attachments)).toBe(false);

    const second = await take(first.attachments, 'words');
    expect(second.text).toBe(
      '[document a.txt, 5 bytes]\n```\nwords\n```\n[voice message, 3 s, transcribed] heard 1',
    );
    expect(fetched).toHaveLength(2);
  });

  test('in the message replied to call nobody: they wait until somebody asks about them', async () => {
    const { take, media, fetched } = await setUp({ transcriber: { transcribe: async () => 'heard' } });
    const files = [attachment({ kind: 'voice', seconds: 3, ofReply: true })];
    expect(media.mayAddress(files)).toBe(false);
    expect((await take(files, 'OggS', { only: 'voice' })).attachments).toEqual(files);
    expect(fetched).toEqual([]);
    const { text } = await take(files, 'OggS');
    expect(text).toBe('In the message replied to: [voice message, 3 s, transcribed] heard');
  });

  test('need nobody to look where nobody can listen', async () => {
    const { media, take, fetched } = await setUp();
    const voice = attachment({ kind: 'voice', seconds: 3 });
    expect(media.mayAddress([voice])).toBe(false);
    const taken = await take([voice], 'OggS');
    expect(taken).toMatchObject({ text: '[voice message, 3 s: cannot be listened to here]', notice: null });
    expect(fetched).toEqual([]);
  });

  test('and before anybody looked, a message reads like this', async () => {
    const { media } = await setUp();
    expect(media.tell('Hi', [attachment({ kind: 'voice', seconds: 3 })])).toBe('Hi\n[voice message, 3 s]');
  });
});

describe('what is larger than its sender said', () => {
  test('is fetched anew, with as much room in memory as it may need', async () => {
    const { take } = await setUp();
    const bytes = Buffer.alloc(3_000_000, 'a');
    const asked: number[] = [];
    const fetch: Fetch = async (_file, { maxBytes }) => {
      asked.push(maxBytes);
      return bytes.length > maxBytes ? { kind: 'too large' } : { kind: 'fetched', bytes };
    };
    const taken = await take([attachment({ bytes: 100 })], fetch);
    expect(asked).toEqual([1_000_000, MAX]);
    expect(taken.attachments).toMatchObject([{ bytes: bytes.length, outcome: { kind: 'kept' } }]);
  });

  test('is not taken where it is larger than may be', async () => {
    const { take, kept } = await setUp();
    const taken = await take([attachment({ bytes: 2_000_000 })], { kind: 'too large' });
    expect(outcomes(taken)).toEqual([{ kind: 'left', why: 'larger than 20 MB, not taken' }]);
    expect(await kept()).toEqual([]);
  });
});

describe('what is too large', () => {
  test('a document of 30 MB, as its platform says: not one byte of it is fetched', async () => {
    const { take, fetched } = await setUp();
    const taken = await take([attachment({ name: 'big.zip', bytes: 30_000_000 })], 'x');
    expect(taken.text).toBe('[document big.zip, 30.0 MB: larger than 20 MB, not taken]');
    expect(taken.notice).toBe('I take files up to 20 MB, so I did not open `big.zip` (30.0 MB).');
    expect(fetched).toEqual([]);
  });

  test.each<[string, FetchResult]>([
    ['as only its channel finds out', { kind: 'too large' }],
    ['as only its bytes say', { kind: 'fetched', bytes: Buffer.alloc(1_501) }],
  ])('%s', async (_name, result) => {
    const { take, kept } = await setUp({ maxBytes: 1_500 });
    const taken = await take([attachment({ name: 'a`b.zip' })], result);
    expect(taken.text).toBe('[document a`b.zip: larger than 2 kB, not taken]');
    expect(taken.notice).toBe("I take files up to 2 kB, so I did not open `a'b.zip`.");
    expect(await kept()).toEqual([]);
  });
});

describe('trouble', () => {
  test('a damaged picture is told, to the persona and to the sender', async () => {
    const { take, kept, log } = await setUp();
    const bytes = (await noise(100, 100).jpeg().toBuffer()).subarray(0, 1_000);
    const taken = await take([attachment({ kind: 'image', name: 'cat.jpg' })], bytes, { words: 'My cat' });
    expect(taken.text).toBe('My cat\n[image cat.jpg, 1 kB: damaged, or no picture that can be read]');
    expect(taken.notice).toContain('I cannot read `cat.jpg`');
    expect(await kept()).toEqual([]);
    expect(log.lines.join()).toContain('picture is unreadable; not taken');
  });

  test('the transcription server is down', async () => {
    const { take, log } = await setUp({ transcriber: failing });
    const taken = await take([attachment({ kind: 'voice', seconds: 3 })], 'OggS');
    expect(taken.text).toBe('[voice message, 3 s: could not be transcribed]');
    expect(taken.notice).toContain('I could not listen to your recording');
    expect(log.lines.join()).toContain('the transcription server is down');
  });

  test.each([
    ['fails', failing],
    ['makes nothing out', saying(' ')],
  ])(
    'a recording that is no voice note is kept all the same where transcription %s',
    async (_name, transcriber) => {
      const { take, kept } = await setUp({ transcriber });
      const song = attachment({ kind: 'audio', name: 'Song', seconds: 200, mimeType: 'audio/mpeg' });
      expect(await take([song], 'ID3')).toMatchObject({
        text: '[audio Song, 3 min 20 s, 3 bytes]',
        notice: null,
      });
      expect(await kept()).toEqual(['id-1.mp3']);
    },
  );

  test('nothing can be made out', async () => {
    const { take } = await setUp({ transcriber: saying(' \n') });
    const taken = await take([attachment({ kind: 'voice', seconds: 3 })], 'OggS');
    expect(taken).toMatchObject({
      text: '[voice message, 3 s: no words could be made out in it]',
      notice: null,
    });
  });

  test('a file that is not there any more is not asked for again', async () => {
    const { take, fetched } = await setUp();
    const taken = await take([attachment({ name: 'a.txt' })], { kind: 'gone', reason: 'HTTP 404' });
    expect(taken.text).toBe('[document a.txt: not to be had any more]');
    expect(taken.notice).toBe('I could not get `a.txt`: it is not there any more. Please send it again.');
    expect(fetched).toHaveLength(1);
  });

  test('a connection that breaks is tried twice more', async () => {
    const { media, ask, clock, fetched } = await setUp();
    let left = 2;
    const taking = media.take(
      ask([attachment()], async () =>
        left-- > 0
          ? { kind: 'unreachable', reason: 'ECONNRESET' }
          : { kind: 'fetched', bytes: Buffer.from('here') },
      ),
    );
    await clock.asleep(1_000);
    await clock.advance(1_000);
    await clock.asleep(4_000);
    await clock.advance(4_000);
    expect(whole(await taking).text).toContain('here');
    expect(fetched).toHaveLength(3);
  });

  test('and then given up', async () => {
    const { media, ask, clock, log } = await setUp();
    const taking = media.take(
      ask([attachment()], () => Promise.reject(new Error('a channel that throws, against its word'))),
    );
    await clock.asleep(1_000);
    await clock.advance(1_000);
    await clock.asleep(4_000);
    await clock.advance(4_000);
    const taken = whole(await taking);
    expect(taken.text).toBe('[document: could not be fetched]');
    expect(taken.notice).toBe('I could not fetch the document just now. Please send it again in a moment.');
    expect(log.lines.join()).toContain('against its word');
  });

  test.each<[string, Fetch]>([
    ['even when told', () => new Promise(() => {})],
    [
      'until it is told',
      (_file, { signal }) =>
        new Promise((resolve) => {
          signal.addEventListener('abort', () => resolve({ kind: 'unreachable', reason: 'aborted' }));
        }),
    ],
  ])(
    'a link that never answers (%s) is given up after a minute, for all files together',
    async (_name, hanging) => {
      const { media, ask, clock } = await setUp();
      let calls = 0;
      const taking = media.take(
        ask(
          [attachment({ name: 'a' }), attachment({ name: 'b' }), attachment({ name: 'c' })],
          (file, limits) =>
            calls++ === 0
              ? Promise.resolve({ kind: 'fetched', bytes: Buffer.from('quick') })
              : hanging(file, limits),
        ),
      );
      await clock.advance(59_000);
      expect(await Promise.race([taking, Promise.resolve('still waiting')])).toBe('still waiting');
      await clock.advance(2_000);
      const taken = whole(await taking);
      expect(taken.text).toBe(
        '[document a, 5 bytes]\n```\nquick\n```\n[document b: did not arrive in time]\n[document c: did not arrive in time]',
      );
      expect(taken.notice?.split('\n')).toHaveLength(2);
    },
  );

  test('a transcription that never comes, too', async () => {
    const { media, ask, clock } = await setUp({ transcriber: { transcribe: () => new Promise(() => {}) } });
    const taking = media.take(ask([attachment({ kind: 'voice', seconds: 3 })], 'OggS'));
    await clock.advance(61_000);
    expect(whole(await taking).text).toBe('[voice message, 3 s: did not arrive in time]');
  });

  test('stopped by whoever waits: nothing is decided', async () => {
    const { media, ask, clock } = await setUp();
    const caller = new AbortController();
    const taking = media.take(ask([attachment()], () => new Promise(() => {}), { signal: caller.signal }));
    caller.abort();
    expect(await taking).toBe(null);
    expect(await media.take(ask([attachment()], 'x', { signal: caller.signal }))).toBe(null);
    expect(clock.sleeping()).toEqual([]);
  });

  test('a disk that takes nothing', async () => {
    const { take, folder, log } = await setUp();
    await writeFile(join(folder, CHAT), 'a file stands in the way');
    const taken = await take([attachment({ name: 'a.txt' })], 'words');
    expect(taken.text).toBe('[document a.txt, 5 bytes: could not be stored]');
    expect(taken.notice).toContain('I could not store `a.txt`');
    expect(log.lines.join()).toMatch(/EEXIST|ENOTDIR/);
  });

  test('a channel that cannot fetch', async () => {
    const { take } = await setUp();
    const taken = await take([attachment()], 'x', { fetch: undefined });
    expect(taken).toMatchObject({ text: '[document: cannot be fetched here]', notice: null });
  });
});

describe('pictures for a model', () => {
  async function withPictures(count: number, bytesOf: (n: number) => Promise<Buffer>) {
    const setting = await setUp();
    const attachments: StoredAttachment[] = [];
    for (let n = 0; n < count; n++) {
      const taken = await setting.take([attachment({ kind: 'image' })], await bytesOf(n));
      attachments.push(...taken.attachments);
    }
    return { ...setting, attachments };
  }

  test('are made ready once, and again when many others came between', async () => {
    const flat = (n: number) => ({
      width: 550 + n,
      height: 550,
      channels: 3 as const,
      background: 'red',
    });
    const { media, attachments, folder } = await withPictures(10, (n) =>
      sharp({ create: flat(n) })
        .png({ compressionLevel: 0 })
        .toBuffer(),
    );
    expect(await media.images(attachments)).toHaveLength(10);
    await rm(join(folder, CHAT), { recursive: true });
    const still = await Promise.all(attachments.map((each) => media.images([each])));
    expect(still.map(({ length }) => length)).toEqual([0, 0, 1, 1, 1, 1, 1, 1, 1, 1]);
  });

  test('that are gone, or damaged since, are left out, and the log says so', async () => {
    const { media, attachments, files, folder, log } = await withPictures(3, () =>
      noise(20, 20).png().toBuffer(),
    );
    const paths = attachments.map(({ outcome }) =>
      outcome?.kind === 'kept' ? files.path(outcome.file) : '',
    );
    await rm(paths[0] ?? folder);
    await writeFile(paths[1] ?? folder, 'no picture any more');
    expect(await media.images(attachments)).toHaveLength(1);
    expect(log.lines.filter((line) => line.includes('left out of the request'))).toHaveLength(2);
  });

  test('are not what was left, or is none', async () => {
    const { media } = await setUp();
    const files: StoredAttachment[] = [
      attachment({ kind: 'image' }),
      attachment({ kind: 'image', outcome: { kind: 'left', why: 'damaged' } }),
      attachment({ outcome: { kind: 'kept', file: 'telegram_1/a.pdf', mimeType: 'application/pdf' } }),
    ];
    expect(await media.images(files)).toEqual([]);
  });
});
