/** A recording as Discord's own voice message, which only the bot itself may send. Pure. */
import type { OutgoingFile } from '../../core/channel.js';

/** The flag of voice messages: one recording, and no text. */
export const IS_VOICE_MESSAGE = 1 << 13;
/** Of what is drawn, Discord shows a point for each tenth of a second, and at most so many. */
const MOST_POINTS = 256;
/** How loud it was is not known: a line of one height. */
const HEIGHT = 64;

export interface VoiceForm {
  flags: number;
  attachments: [{ id: '0'; filename: string; duration_secs: number; waveform: string }];
}

/** What goes beside the file; null for one that is no voice note. */
export function voiceForm({ name, voiceSeconds }: OutgoingFile): VoiceForm | null {
  if (voiceSeconds === undefined) return null;
  const points = Math.min(MOST_POINTS, Math.max(1, Math.round(voiceSeconds * 10)));
  const waveform = Buffer.alloc(points, HEIGHT).toString('base64');
  return {
    flags: IS_VOICE_MESSAGE,
    attachments: [{ id: '0', filename: name, duration_secs: voiceSeconds, waveform }],
  };
}
