/** What was said in a recording, in words, or why there are none. */
import { cutWithMarker } from '../core/cut.js';
import { describe } from '../core/errors.js';
import type { ChatId } from '../core/ids.js';
import type { Log } from '../core/log.js';
import type { Transcriber } from '../core/media.js';
import type { Attachment } from '../core/message.js';
import { orAborted } from './abort.js';
import { LATE, NO_TRANSCRIBER, type Refusal, SILENT, UNHEARD } from './refusals.js';
import { extensionOf } from './types.js';

type Heard = { kind: 'words'; words: string } | { kind: 'nothing'; refusal: Refusal };

/** Recordings are listened to up to this length; music and lectures are not what was said here. */
const MOST_SECONDS = 600;
/** What transcription servers take. */
const MOST_BYTES = 25_000_000;
const MOST_CHARS = 20_000;

/** Never throws. */
export async function hear(
  { transcriber, log }: { transcriber: Transcriber | null; log: Log },
  { kind, seconds, mimeType }: Attachment & { mimeType: string },
  bytes: Buffer,
  { chatId, signal }: { chatId: ChatId; signal: AbortSignal },
): Promise<Heard> {
  if (transcriber === null) return nothing(NO_TRANSCRIBER);
  const short = kind === 'voice' || (seconds !== null && seconds <= MOST_SECONDS);
  if (!short || bytes.length > MOST_BYTES) return nothing(UNHEARD);
  const recording = { name: `recording.${extensionOf(mimeType)}`, mimeType, signal };
  try {
    const words = await orAborted(transcriber.transcribe(bytes, recording), signal);
    if (words === null) return nothing(LATE);
    if (words.trim() === '') return nothing(SILENT);
    return { kind: 'words', words: cutWithMarker(words.trim(), MOST_CHARS, 'transcript-max-chars') };
  } catch (error) {
    log.warn({ chat: chatId, error: describe(error) }, 'a recording could not be transcribed');
    return nothing(UNHEARD);
  }
}

function nothing(refusal: Refusal): Heard {
  return { kind: 'nothing', refusal };
}
