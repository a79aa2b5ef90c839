/** Around the media parts under test: pictures made on the spot, a folder, and attachments of every kind. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import sharp from 'sharp';
import { onTestFinished } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import type { Log } from '../../src/core/log.js';
import type { StoredAttachment } from '../../src/core/media.js';
import { createImageDecoder } from '../../src/media/images.js';

export function keptLog(): Log & { lines: string[] } {
  const lines: string[] = [];
  const note = (fields: object, message: string) => {
    lines.push(`${message} ${JSON.stringify(fields)}`);
  };
  return { lines, debug: note, info: note, warn: note, error: note };
}

/** The process as it was compiled; it ends soon after its test. */
export function imageDecoder(limits = { ms: 15_000, megabytes: 500, idleMs: 1_000 }) {
  return createImageDecoder(systemClock, new URL('../../dist/image-process.js', import.meta.url), limits);
}

export async function tempFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'coterie-media-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

export function attachment(more: Partial<StoredAttachment> = {}): StoredAttachment {
  return {
    kind: 'document',
    source: 'source-1',
    name: null,
    mimeType: null,
    bytes: null,
    seconds: null,
    ...more,
  };
}

/** Noise, so that it does not shrink to nothing. */
export function noise(width: number, height: number) {
  const kind = { type: 'gaussian', mean: 128, sigma: 30 } as const;
  return sharp({ create: { width, height, channels: 3, background: 'red', noise: kind } });
}

/** A picture of a few bytes whose header promises any number of pixels. */
export function bomb(side: number): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(side, 0);
  header.writeUInt32BE(side, 4);
  header.set([8, 2, 0, 0, 0], 8);
  const signature = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1');
  return Buffer.concat([signature, chunk('IHDR', header), chunk('IDAT', Buffer.alloc(64)), chunk('IEND')]);
}

function chunk(name: string, data: Buffer = Buffer.alloc(0)): Buffer {
  const body = Buffer.concat([Buffer.from(name, 'latin1'), data]);
  const framed = Buffer.alloc(body.length + 8);
  framed.writeUInt32BE(data.length, 0);
  framed.set(body, 4);
  framed.writeUInt32BE(crc32(body), body.length + 4);
  return framed;
}
