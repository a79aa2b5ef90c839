/**
 * Voice messages on the fake Discord: flag 8192, one recording with a waveform and a length, nothing beside it; not to be
 * edited, and gated by the permission for them instead of that for files. Only the bot itself sends them: a webhook
 * may set other flags alone. (https://docs.discord.com/developers/resources/message, voice messages and flags; the codes:
 * 50159 to 50162 and 50173 of its table; discord/discord-api-docs#6082, #7267.)
 */
import { isPayload, type UploadedFile } from './discord-form.js';
import {
  invalid,
  NO_VOICE_HERE,
  type Outcome,
  VOICE_NEEDS_METADATA,
  VOICE_NEEDS_ONE_FILE,
  VOICE_WITH_MORE,
} from './discord-outcome.js';
import type { Payload } from './discord-words.js';
import type { Channel, World } from './discord-world.js';

const IS_VOICE_MESSAGE = 1 << 13;
/** What is drawn of a recording has at most so many points. */
const MOST_POINTS = 256;

export function isVoice({ flags }: Payload): boolean {
  return (Number(flags ?? 0) & IS_VOICE_MESSAGE) !== 0;
}

/** The refusal, or null. */
export function voiceRefusal(
  message: Payload,
  files: UploadedFile[],
  { world, channel }: { world: World; channel: Channel },
): Outcome | null {
  if (!world.may('sendVoiceMessages', channel)) return NO_VOICE_HERE;
  const [file] = files;
  if (file === undefined || files.length > 1 || !file.type.startsWith('audio/')) return VOICE_NEEDS_ONE_FILE;
  if (String(message.content ?? '') !== '' || message.embeds !== undefined) return VOICE_WITH_MORE;
  const described = detailsOf(message, file);
  const { duration_secs: seconds, waveform } = described;
  if (typeof seconds !== 'number' || seconds <= 0 || typeof waveform !== 'string')
    return VOICE_NEEDS_METADATA;
  const points = Buffer.from(waveform, 'base64').length;
  if (points === 0 || points > MOST_POINTS) {
    return invalid('attachments.0.waveform', 'BASE_TYPE_BAD_LENGTH', 'Must be between 1 and 256 in length.');
  }
  return null;
}

/** What the message says of a file beside its bytes. */
export function detailsOf({ attachments }: Payload, { id }: UploadedFile): Payload {
  const described = Array.isArray(attachments) ? attachments.filter(isPayload) : [];
  return described.find((one) => String(one.id) === id) ?? {};
}
