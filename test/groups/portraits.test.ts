/** Pictures of personas as platforms take them, and files that are none. Decoded by the process as it was compiled. */
import { mkdir, symlink, truncate, utimes, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import sharp from 'sharp';
import { describe, expect, test } from 'vitest';
import { CARD_LIMITS } from '../../src/core/cards.js';
import type { Portrait } from '../../src/core/persona.js';
import { createPersonas } from '../../src/groups/personas.js';
import { createPortraits } from '../../src/groups/portraits.js';
import { toFace } from '../../src/media/images.js';
import { bomb, imageDecoder, noise, tempFolder } from '../media/support.js';
import { groupsFolder, listeningLog } from './support.js';

const CHAT = 'discord_1';
const png = (width: number, height: number) => noise(width, height).png().toBuffer();

async function setUp() {
  const groups = await groupsFolder();
  const log = listeningLog();
  const decoder = imageDecoder();
  const portraits = createPortraits({ groupsDir: groups, toFace: (bytes) => toFace(decoder, bytes), log });
  const personas = createPersonas({ groupsDir: groups, log, clock: { now: () => 0 } });
  async function put(path: string, content: string | Buffer): Promise<string> {
    const file = join(groups, path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, content);
    return file;
  }
  await put(`${CHAT}/luna/PERSONA.md`, '---\nname: Luna\n---\n');
  async function face(): Promise<Portrait | null> {
    const luna = await personas.get(CHAT, 'luna');
    return luna && portraits.of(luna);
  }
  const warned = () => log.warnings.filter((each) => JSON.stringify(each).includes('portrait'));
  return { groups, portraits, put, face, warned };
}

describe('a face', () => {
  test.each([
    ['tall', 400, 600],
    ['wide', 900, 300],
    ['small', 20, 20],
  ])('of a %s picture is a square JPEG below 256 kB', async (_kind, width, height) => {
    const { put, face, warned } = await setUp();
    await put(`${CHAT}/luna/portrait.png`, await png(width, height));
    const bytes = (await face())?.bytes ?? Buffer.alloc(0);
    expect(await sharp(bytes).metadata()).toMatchObject({ format: 'jpeg', width: 512, height: 512 });
    expect(bytes.length).toBeLessThanOrEqual(256_000);
    expect(warned()).toEqual([]);
  });

  test('of as many pixels as a camera takes is one, too', async () => {
    const { put, face } = await setUp();
    const large = sharp({ create: { width: 6_000, height: 8_000, channels: 3, background: 'red' } });
    await put(`${CHAT}/luna/portrait.png`, await large.png().toBuffer());
    expect(await face()).not.toBeNull();
  });

  test('shows the upper part of a tall picture', async () => {
    const { put, face } = await setUp();
    const blue = { create: { width: 100, height: 100, channels: 3, background: 'blue' } } as const;
    const tall = sharp({ create: { width: 100, height: 300, channels: 3, background: 'red' } });
    const input = await sharp(blue).png().toBuffer();
    await put(
      `${CHAT}/luna/portrait.png`,
      await tall
        .composite([{ input, top: 0, left: 0 }])
        .png()
        .toBuffer(),
    );
    const { dominant } = await sharp((await face())?.bytes).stats();
    expect(dominant.b).toBeGreaterThan(dominant.r);
  });

  test('is another when the file is another, and the same over and over', async () => {
    const { put, face } = await setUp();
    const file = await put(`${CHAT}/luna/portrait.png`, await png(64, 64));
    await utimes(file, 1_000, 1_000);
    const first = await face();
    expect((await face())?.hash).toBe(first?.hash);
    await put(`${CHAT}/luna/portrait.png`, await png(65, 64));
    expect((await face())?.hash).not.toBe(first?.hash);
  });

  test('comes from the library where the chat has none', async () => {
    const { put, face, portraits } = await setUp();
    await put('personas/luna/portrait.png', await png(64, 64));
    expect((await face())?.hash).toBe((await portraits.shared('luna'))?.hash);
    expect(await portraits.shared('max')).toBeNull();
    expect(await portraits.shared('../luna')).toBeNull();
  });

  test('is not needed where the persona has the address of one', async () => {
    const { put, face } = await setUp();
    await put(`${CHAT}/luna/portrait.png`, await png(64, 64));
    await put(`${CHAT}/luna/PERSONA.md`, '---\nname: Luna\navatar: https://example.org/l.png\n---\n');
    expect(await face()).toBeNull();
  });
});

describe('no face, told once', () => {
  const jpeg = () => noise(64, 64).jpeg().toBuffer();
  const cut = async () => (await png(640, 640)).subarray(0, 40_000);

  test.each<[string, () => Buffer | Promise<Buffer>]>([
    ['a text', () => Buffer.from('<script>alert(1)</script>')],
    ['a JPEG by that name', jpeg],
    ['empty', () => Buffer.alloc(0)],
    ['of 20,000 by 20,000 pixels', () => bomb(20_000)],
    ['cut off', cut],
  ])('%s', async (_kind, content) => {
    const { put, face, warned } = await setUp();
    await put(`${CHAT}/luna/portrait.png`, await content());
    expect(await face()).toBeNull();
    expect(await face()).toBeNull();
    expect(warned()).toHaveLength(1);
  });

  test('larger than 16 MB', async () => {
    const { put, face, warned } = await setUp();
    const file = await put(`${CHAT}/luna/portrait.png`, await png(64, 64));
    await truncate(file, CARD_LIMITS.portraitBytes + 1);
    expect(await face()).toBeNull();
    expect(await face()).toBeNull();
    expect(warned()).toHaveLength(1);
  });

  test('a link out of the groups, a folder, a link to itself', async () => {
    const { groups, face, put, warned } = await setUp();
    const outside = join(await tempFolder(), 'secret.png');
    await writeFile(outside, await png(64, 64));
    await symlink(outside, join(groups, CHAT, 'luna', 'portrait.png'));
    expect(await face()).toBeNull();
    expect(await face()).toBeNull();
    expect(JSON.stringify(warned())).toContain('outside');
    expect(warned()).toHaveLength(1);

    await put(`${CHAT}/max/PERSONA.md`, '---\nname: Max\n---\n');
    const { portraits } = await setUp();
    await mkdir(join(groups, CHAT, 'max', 'portrait.png'));
    expect(
      await portraits.of({ avatar: null, portrait: join(groups, CHAT, 'max', 'portrait.png') }),
    ).toBeNull();
    const loop = join(groups, CHAT, 'loop.png');
    await symlink(loop, loop);
    expect(await portraits.of({ avatar: null, portrait: loop })).toBeNull();
  });

  test('and told again when it is another fault, or when it was mended in between', async () => {
    const { put, face, warned } = await setUp();
    await put(`${CHAT}/luna/portrait.png`, 'text');
    await face();
    await put(`${CHAT}/luna/portrait.png`, await png(64, 64));
    expect(await face()).not.toBeNull();
    await put(`${CHAT}/luna/portrait.png`, 'text');
    await face();
    expect(warned()).toHaveLength(2);
  });
});
