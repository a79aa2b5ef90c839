/** Pictures for models, decoded one at a time in a process with limits, so that a bad picture harms only its sender. Cached. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { LRUCache } from 'lru-cache';
import type { Clock } from '../core/clock.js';
import { describe } from '../core/errors.js';
import type { Log } from '../core/log.js';
import type { MediaFiles, StoredAttachment } from '../core/media.js';
import type { ModelImage } from '../core/model.js';
import { type Prepared, unreadable } from './decode.js';
import { pictureType } from './files.js';
import type { ImageAnswer, ImageRequest } from './image-process.js';

/** `idleMs`: an idle process, which holds some 60 MB, is killed after this time. */
const LIMITS = { ms: 15_000, megabytes: 500, idleMs: 60_000 };
const SHELL = '/bin/sh';
/** Reserved by Node itself and counted against the limit: 570 MB from version 24 on, below 100 before (measured). */
const NODE_MEGABYTES = Number(process.versions.node.split('.')[0]) >= 24 ? 600 : 100;
/** Pictures are stored outside the heap. */
const NODE_OPTIONS = ['--max-old-space-size=64'];

type ImageDecoder = ReturnType<typeof createImageDecoder>;

/** `entry`: `image-process.js`, next to the compiled gateway. */
export function createImageDecoder(
  clock: Clock,
  entry = new URL('./image-process.js', import.meta.url),
  limits = LIMITS,
) {
  let child: ChildProcess | null = null;
  let last: Promise<unknown> = Promise.resolve();
  let stopIdling = () => {};

  function ask(question: ImageRequest): Promise<ImageAnswer> {
    stopIdling();
    child ??= start(fileURLToPath(entry), limits.megabytes);
    const running = child;
    return new Promise((resolve) => {
      const stopWaiting = clock.after(limits.ms, () => {
        settle({ prepared: unreadable(`it takes longer than ${limits.ms / 1000} seconds to decode`) });
      });
      const onMessage = (answer: ImageAnswer) => settle({ ...answer, prepared: withBuffer(answer.prepared) });
      const onEnd = () => {
        settle({ prepared: unreadable(`it needs more than ${limits.megabytes} MB, or breaks its decoder`) });
      };
      function settle(answer: ImageAnswer): void {
        stopWaiting();
        running.off('message', onMessage).off('exit', onEnd).off('error', onEnd);
        // A decoder that ran out of memory may have survived; the next picture gets a fresh process.
        if (answer.prepared.kind === 'unreadable') end(running);
        else rest(running);
        resolve(answer);
      }
      running.on('message', onMessage).on('exit', onEnd).on('error', onEnd);
      running.ref();
      running.channel?.ref();
      // Sending to a process that has just exited fails; its exit event settles the request.
      running.send(question, () => {});
    });
  }

  /** An idle process does not keep the gateway alive. */
  function rest(idle: ChildProcess): void {
    idle.unref();
    idle.channel?.unref();
    stopIdling = clock.after(limits.idleMs, () => end(idle));
  }

  function end(running: ChildProcess): void {
    if (child === running) child = null;
    running.kill('SIGKILL');
  }

  return {
    /** `type`: as detected from the bytes. Never throws. */
    decode(bytes: Buffer, type: string, form?: ImageRequest['form']): Promise<ImageAnswer> {
      const answer = last.then(() => ask({ bytes, type, form }));
      last = answer;
      return answer;
    },
  };
}

/** The memory limit (RLIMIT_DATA, set by a shell because Node cannot) works only on Linux; elsewhere the pixel limits must do. */
function start(entry: string, megabytes: number): ChildProcess {
  const command = [...NODE_OPTIONS, entry];
  const options = {
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'] as ('ignore' | 'ipc')[],
    serialization: 'advanced' as const,
    // No environment of the gateway: it may hold secrets.
    env: { PATH: process.env.PATH ?? '' },
  };
  if (!existsSync(SHELL)) return spawn(process.execPath, command, options);
  const limited = `ulimit -d ${(megabytes + NODE_MEGABYTES) * 1024} 2>/dev/null; exec "$0" "$@"`;
  return spawn(SHELL, ['-c', limited, process.execPath, ...command], options);
}

/** Structured clone turns a Buffer into a Uint8Array. */
function withBuffer(prepared: Prepared): Prepared {
  if (prepared.kind === 'unreadable') return prepared;
  const { image } = prepared;
  return { kind: 'image', image: { ...image, bytes: Buffer.from(image.bytes) } };
}

/** null: it is no picture that can be read. */
export async function toPng(decoder: ImageDecoder, picture: Buffer): Promise<Buffer | null> {
  const type = pictureType(picture);
  if (type === null) return null;
  const { prepared } = await decoder.decode(picture, type, 'png');
  return prepared.kind === 'image' && prepared.image.mimeType === 'image/png' ? prepared.image.bytes : null;
}

/** A square JPEG of a PNG, or the reason why there is none. */
export async function toFace(decoder: ImageDecoder, picture: Buffer): Promise<Buffer | string> {
  const type = pictureType(picture);
  if (type !== 'image/png') return 'it is not a PNG';
  const { prepared, missing } = await decoder.decode(picture, type, 'face');
  if (prepared.kind === 'unreadable') return prepared.reason;
  // Without sharp it comes back as it was.
  return missing === undefined ? prepared.image.bytes : 'it cannot be made smaller without sharp';
}

export type Images = ReturnType<typeof createImages>;

export function createImages({ log, decoder }: { log: Log; decoder: ImageDecoder }) {
  let isMissing = false;
  return {
    /** Never throws. */
    async prepare(bytes: Buffer): Promise<Prepared> {
      const type = pictureType(bytes);
      if (type === null) return unreadable('it is no picture of a kind that can be read');
      const { prepared, missing: error } = await decoder.decode(bytes, type);
      if (error !== undefined && !isMissing) {
        isMissing = true;
        log.warn({ error }, 'loading sharp failed; sending pictures to models as they came, up to 4 MB');
      }
      return prepared;
    },
  };
}

const MOST_BYTES_IN_MEMORY = 8_000_000;

export function createModelImages(files: MediaFiles, images: Images, log: Log) {
  const prepared = new LRUCache<string, ModelImage>({
    maxSize: MOST_BYTES_IN_MEMORY,
    sizeCalculation: ({ bytes }) => bytes.length,
  });

  async function load(file: string): Promise<ModelImage | null> {
    try {
      const found = await images.prepare(await files.read(file));
      if (found.kind === 'image') return found.image;
      log.warn({ file, reason: found.reason }, 'picture no longer readable; left out of the request');
    } catch (error) {
      log.warn({ file, error: describe(error) }, 'picture file is missing; left out of the request');
    }
    return null;
  }

  return async function imagesOf(attachments: StoredAttachment[]): Promise<ModelImage[]> {
    const found: ModelImage[] = [];
    for (const { kind, outcome } of attachments) {
      if (kind !== 'image' || outcome?.kind !== 'kept' || outcome.read !== undefined) continue;
      const image = prepared.get(outcome.file) ?? (await load(outcome.file));
      if (image === null) continue;
      prepared.set(outcome.file, image);
      found.push(image);
    }
    return found;
  };
}
