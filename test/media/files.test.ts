import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { platformId } from '../../src/core/ids.js';
import { createMediaFiles } from '../../src/media/files.js';
import { tempFolder } from './support.js';

async function setUp() {
  const folder = await tempFolder();
  let made = 0;
  const newId = () => `id-${++made}`;
  return { folder, files: createMediaFiles({ folder, newId }) };
}

describe('a file', () => {
  test('lies in the folder of its chat, under a new name with the extension of its type', async () => {
    const { folder, files } = await setUp();
    const bytes = Buffer.from([0, 255, 10]);
    expect(await files.keep('telegram_-1001', bytes, 'image/jpeg')).toBe('telegram_-1001/id-1.jpg');
    expect(await files.keep('telegram_-1001', bytes, 'audio/ogg; codecs=opus')).toBe(
      'telegram_-1001/id-2.ogg',
    );
    expect(await files.read('telegram_-1001/id-1.jpg')).toEqual(bytes);
    expect(files.path('telegram_-1001/id-1.jpg')).toBe(join(folder, 'telegram_-1001/id-1.jpg'));
    expect(await readdir(join(folder, 'telegram_-1001'))).toEqual(['id-1.jpg', 'id-2.ogg']);
  });

  test.each(['', 'nonsense', '../../evil', 'text/../../x', 'constructor', '__proto__', 'application/x-sh'])(
    'of the type %j is called .bin',
    async (type) => {
      const { files } = await setUp();
      expect(await files.keep('telegram_1', Buffer.from('x'), type)).toBe('telegram_1/id-1.bin');
    },
  );

  test('of 20 MB, to the last byte', async () => {
    const { files } = await setUp();
    const bytes = Buffer.alloc(20_000_000, 'to the last byte');
    expect((await files.read(await files.keep('a_1', bytes, 'video/mp4'))).equals(bytes)).toBe(true);
  });

  test('of any platform id stays in the folder', async () => {
    const { folder, files } = await setUp();
    const address = fc.oneof(fc.string(), fc.constantFrom('..', '../..', '/etc', 'a/b', '\\', '.', '', '\0'));
    await fc.assert(
      fc.asyncProperty(address, async (platforms) => {
        fc.pre(Buffer.byteLength(platforms) < 60);
        const file = await files.keep(platformId('telegram', platforms), Buffer.from('x'), 'text/plain');
        expect(files.path(file).startsWith(`${folder}/telegram_`)).toBe(true);
        expect((await files.read(file)).toString()).toBe('x');
      }),
      { numRuns: 40 },
    );
  });
});

describe('trouble', () => {
  test.each([
    '../secret',
    'a/../../secret',
    '/etc/passwd',
    'a',
    'a/b/c',
    'a/..',
    '.a/b',
    'a/.b',
    'a\\b/c',
    'a/b\0',
  ])('%j names no file', async (file) => {
    const { files } = await setUp();
    expect(() => files.path(file)).toThrow('names no file of the media folder');
  });

  test('what is not there any more is thrown', async () => {
    const { files } = await setUp();
    await expect(files.read('telegram_1/gone.jpg')).rejects.toThrow('ENOENT');
  });

  test('a disk that takes nothing: thrown, and nothing half is left behind', async () => {
    const { folder, files } = await setUp();
    await writeFile(join(folder, 'telegram_1'), 'a file stands in the way');
    await expect(files.keep('telegram_1', Buffer.from('x'), 'image/png')).rejects.toThrow(/EEXIST|ENOTDIR/);
    expect(await readFile(join(folder, 'telegram_1'), 'utf8')).toBe('a file stands in the way');
  });

  test('another one in the making under the same name is left alone', async () => {
    const { folder } = await setUp();
    await mkdir(join(folder, 'telegram_1'));
    const other = join(folder, `telegram_1/.same.png.${process.pid}-1.tmp`);
    await writeFile(other, 'of another');
    const files = createMediaFiles({ folder, newId: () => 'same' });
    await files.keep('telegram_1', Buffer.from('x'), 'image/png');
    expect(await readFile(join(folder, 'telegram_1/same.png'), 'utf8')).toBe('x');
    expect(await readFile(other, 'utf8')).toBe('of another');
  });
});
