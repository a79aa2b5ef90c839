/**
 * Pictures for models, decoded in a process of its own: one at a time, within a time and an amount of memory, so that a picture can
 * cost its sender an answer and nobody else anything. Those of the last requests stay in memory.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Clock } from '../core/clock.js';
import { describe } from '../core/errors.js';
import type { Log } from '../core/log.js';
import type { MediaFiles, StoredAttachment } from '../core/media.js';
import type { ModelImage } from '../core/model.js';
import { type Prepared, unchanged, unreadable } from './decode.js';
import { pictureType } from './files.js';
import type { ImageAnswer, ImageRequest } from './image-process.js';

interface ImageDecoder {
  /** `type` is what the bytes begin like. Never throws. `missing`: why the library could not be loaded. */
  decode(bytes: Buffer, type: string): Promise<{ prepared: Prepared; missing?: string }>;
}

interface ImageLimits {
  /** For one picture. */
  ms: number;
  megabytes: number;
  /** An idle process is ended: it holds some 60 MB. */
  idleMs: number;
}

const LIMITS: ImageLimits = { ms: 15_000, megabytes: 500, idleMs: 60_000 };
const SHELL = '/bin/sh';
/** What Node reserves before it does anything, and counts, too: 570 MB from version 24 on, below 100 before (measured). */
const NODE_MEGABYTES = Number(process.versions.node.split('.')[0]) >= 24 ? 600 : 100;
/** Pictures lie outside of the heap. */
const NODE_OPTIONS = ['--max-old-space-size=64'];

/** `entry` is `image-process.js`, which lies beside the compiled gateway. */
export function createImageDecoder(
  clock: Clock,
  entry = new URL('./image-process.js', import.meta.url),
  limits = LIMITS,
): ImageDecoder {
  let child: ChildProcess | null = null;
  let last: Promise<unknown> = Promise.resolve();
  let stopIdling = () => {};

  function ask(question: ImageRequest): ReturnType<ImageDecoder['decode']> {
    stopIdling();
    child ??= start(fileURLToPath(entry), limits.megabytes);
    const running = child;
    return new Promise((resolve) => {
      const stopWaiting = clock.after(limits.ms, () => {
        settle({ prepared: unreadable(`it takes longer than ${limits.ms / 1000} seconds to decode`) });
      });
      const onMessage = (answer: ImageAnswer) =>
        settle({ ...answer, prepared: completed(answer.prepared, question) });
      const onEnd = () => {
        settle({ prepared: unreadable(`it needs more than ${limits.megabytes} MB, or breaks its decoder`) });
      };
      function settle(answer: Awaited<ReturnType<ImageDecoder['decode']>>): void {
        stopWaiting();
        running.off('message', onMessage).off('exit', onEnd).off('error', onEnd);
        // A decoder that ran out of memory may have come back without it: the next picture is not to pay for that.
        if (answer.prepared.kind === 'unreadable') end(running);
        else rest(running);
        resolve(answer);
      }
      running.on('message', onMessage).on('exit', onEnd).on('error', onEnd);
      running.ref();
      running.channel?.ref();
      // A process that has just ended takes nothing; its end says so.
      running.send(question, () => {});
    });
  }

  /** It keeps nobody from ending the gateway. */
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
    decode(bytes, type) {
      const answer = last.then(() => ask({ bytes, type }));
      last = answer;
      return answer;
    },
  };
}

/**
 * The limit holds for what a process writes to (RLIMIT_DATA), which counts on Linux alone; elsewhere the numbers of
 * pixels in `decode.ts` have to do. It is set by a shell, since Node has no call for it.
 */
function start(entry: string, megabytes: number): ChildProcess {
  const command = [...NODE_OPTIONS, entry];
  const options = {
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'] as ('ignore' | 'ipc')[],
    serialization: 'advanced' as const,
    // Nothing of the gateway's environment: its secrets stand there.
    env: { PATH: process.env.PATH ?? '' },
  };
  if (!existsSync(SHELL)) return spawn(process.execPath, command, options);
  const limited = `ulimit -d ${(megabytes + NODE_MEGABYTES) * 1024} 2>/dev/null; exec "$0" "$@"`;
  return spawn(SHELL, ['-c', limited, process.execPath, ...command], options);
}

/** With the bytes that were not sent back; structured clones turn a Buffer into plain bytes. */
function completed(prepared: ImageAnswer['prepared'], { bytes, type }: ImageRequest): Prepared {
  if (prepared.kind === 'unreadable') return prepared;
  if (prepared.kind === 'as it came') return unchanged(bytes, type);
  const { image } = prepared;
  return { kind: 'image', image: { ...image, bytes: Buffer.from(image.bytes) } };
}

/** Never throws. */
export interface Images {
  prepare(bytes: Buffer): Promise<Prepared>;
}

export function createImages({ log, decoder }: { log: Log; decoder: ImageDecoder }): Images {
  let isMissing = false;
  return {
    async prepare(bytes) {
      const type = pictureType(bytes);
      if (type === null) return unreadable('it is no picture of a kind that can be read');
      const { prepared, missing } = await decoder.decode(bytes, type);
      if (missing !== undefined && !isMissing) {
        isMissing = true;
        log.warn(
          { error: missing },
          'loading sharp failed; sending pictures to models as they came, up to 4 MB',
        );
      }
      return prepared;
    },
  };
}

const MOST_BYTES_IN_MEMORY = 8_000_000;

export function createModelImages(files: MediaFiles, images: Images, log: Log) {
  /** By file; what was asked for last stands last. */
  const prepared = new Map<string, ModelImage>();

  async function load(file: string): Promise<ModelImage | null> {
    try {
      const found = await images.prepare(await files.read(file));
      if (found.kind === 'image') return found.image;
      const { reason } = found;
      log.warn({ file, reason }, 'picture no longer readable; left out of the request');
    } catch (error) {
      const fields = { file, error: describe(error) };
      log.warn(fields, 'picture file is missing; left out of the request');
    }
    return null;
  }

  function remember(file: string, image: ModelImage): void {
    prepared.delete(file);
    prepared.set(file, image);
    let total = 0;
    for (const { bytes } of prepared.values()) total += bytes.length;
    for (const [oldest, { bytes }] of prepared) {
      if (total <= MOST_BYTES_IN_MEMORY) break;
      prepared.delete(oldest);
      total -= bytes.length;
    }
  }

  return async function imagesOf(attachments: StoredAttachment[]): Promise<ModelImage[]> {
    const found: ModelImage[] = [];
    for (const { kind, outcome } of attachments) {
      if (kind !== 'image' || outcome?.kind !== 'kept' || outcome.read !== undefined) continue;
      const image = prepared.get(outcome.file) ?? (await load(outcome.file));
      if (image === null) continue;
      remember(outcome.file, image);
      found.push(image);
    }
    return found;
  };
}
