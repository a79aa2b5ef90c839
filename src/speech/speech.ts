/** Makes the voice notes of spoken replies, and keeps each file until it is sent, so that a retry sends the same one. */
import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type Clock, OVER } from '../core/clock.js';
import { Fault } from '../core/errors.js';
import { isMissing } from '../core/file-access.js';
import type { Log } from '../core/log.js';
import type { Speaker, Speech, SpeechRules, VoiceNote } from '../core/media.js';
import { writeWhole } from '../core/write-whole.js';

const PAGE_HEADER_BYTES = 27;
const OPUS_HEAD = 'OpusHead';
/** Position of a page on which no packet ends. */
const NO_POSITION = 0xffff_ffff_ffff_ffffn;
/** Positions count samples at this rate, whatever the recording's rate (RFC 7845). */
const SAMPLES_PER_SECOND = 48_000;

/** Duration; null if it is not OGG with Opus, or has no sound. */
export function oggSeconds(bytes: Buffer): number | null {
  let opus: { serial: number; skipped: number } | null = null;
  let last: bigint | null = null;
  for (const { serial, position, body } of pagesOf(bytes)) {
    if (opus === null) {
      if (body.toString('latin1', 0, OPUS_HEAD.length) !== OPUS_HEAD || body.length < 12) return null;
      opus = { serial, skipped: body.readUInt16LE(10) };
    } else if (serial === opus.serial && position !== NO_POSITION) {
      last = position;
    }
  }
  if (opus === null || last === null) return null;
  const seconds = (Number(last) - opus.skipped) / SAMPLES_PER_SECOND;
  return seconds > 0 && seconds < LONGEST_SECONDS ? seconds : null;
}

/** A longer duration means that the position is nonsense. */
const LONGEST_SECONDS = 86_400;

/** The complete pages at the beginning; stops at anything else. */
function* pagesOf(bytes: Buffer) {
  let at = 0;
  while (at + PAGE_HEADER_BYTES <= bytes.length) {
    if (bytes.toString('latin1', at, at + 4) !== 'OggS' || bytes[at + 4] !== 0) return;
    const segments = bytes[at + 26] ?? 0;
    const begin = at + PAGE_HEADER_BYTES + segments;
    const lengths = bytes.subarray(at + PAGE_HEADER_BYTES, begin);
    const end = begin + lengths.reduce((sum, length) => sum + length, 0);
    if (end > bytes.length) return;
    yield {
      serial: bytes.readUInt32LE(at + 14),
      position: bytes.readBigUInt64LE(at + 6),
      body: bytes.subarray(begin, end),
    };
    at = end;
  }
}

/** Pause after a time-out, in ms: else every reply would wait for the server. */
const AWAY_MS = 60_000;
/** Older files belong to outbox entries that no longer exist. */
const LEFT_BEHIND_MS = 86_400_000;

/** `tidy` removes files left by earlier runs; never rejects. */
export function createSpeech(parts: {
  speaker: Speaker;
  options: SpeechRules & { timeoutSeconds: number };
  /** Used only for these files. */
  folder: string;
  clock: Clock;
  log: Log;
}): Speech & { tidy(): Promise<void> } {
  const { speaker, folder, clock, log } = parts;
  const { timeoutSeconds, ...options } = parts.options;
  let awayUntil = 0;
  let tidiedAt = clock.now();

  async function speak({ text, voice, signal }: VoiceNote): Promise<Buffer> {
    if (clock.now() < awayUntil)
      throw new Fault('model_unreachable', 'the speech server was too slow a moment ago');
    const late = new AbortController();
    const cancel = clock.after(timeoutSeconds * 1000, () => late.abort(OVER));
    try {
      return await speaker.speak({ text, voice, signal: AbortSignal.any([signal, late.signal]) });
    } catch (error) {
      if (!late.signal.aborted) throw error;
      awayUntil = clock.now() + AWAY_MS;
      throw new Fault('model_silent', `the speech server took longer than ${timeoutSeconds} seconds`);
    } finally {
      cancel();
    }
  }

  async function tidy(): Promise<void> {
    tidiedAt = clock.now();
    try {
      for (const name of await readdir(folder)) {
        const place = join(folder, name);
        const isOld = (await stat(place)).mtimeMs < clock.now() - LEFT_BEHIND_MS;
        if (isOld) await rm(place, { recursive: true, force: true });
      }
    } catch (error) {
      if (isMissing(error)) return;
      log.warn({ err: error, folder }, 'removing old voice notes failed');
    }
  }

  const placeOf = (key: string) => join(folder, digest(key));

  return {
    ...options,

    async make(note) {
      if (clock.now() > tidiedAt + LEFT_BEHIND_MS) await tidy();
      const place = placeOf(note.key);
      const path = join(place, `${digest(JSON.stringify([note.voice, note.text]))}.ogg`);
      const made = await readFile(path).catch(() => null);
      const known = made && oggSeconds(made);
      if (known !== null) return { path, name: NAME, voiceSeconds: known };
      const bytes = await speak(note);
      const seconds = oggSeconds(bytes);
      if (seconds === null) {
        throw new Fault('model_unreachable', 'the speech server sent something else than OGG with Opus');
      }
      // Removes older recordings, whose words may have been forgotten since.
      await rm(place, { recursive: true, force: true });
      await mkdir(place, { recursive: true });
      await writeWhole(path, bytes);
      return { path, name: NAME, voiceSeconds: seconds };
    },

    discard: (key) => rm(placeOf(key), { recursive: true, force: true }),

    tidy,
  };
}

const NAME = 'voice.ogg';

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 32);
}
