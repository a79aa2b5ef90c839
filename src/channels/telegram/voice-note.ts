/** A recording as Telegram's own voice note: OGG with Opus, and how long it is. Pure. */
import { InputFile } from 'grammy/web';
import type { OutgoingFile } from '../../core/channel.js';
import { captionRequest, type SendRequest } from './outbound.js';

export type VoiceNote = OutgoingFile & { voiceSeconds: number };

export function isVoiceNote(file: OutgoingFile): file is VoiceNote {
  return file.voiceSeconds !== undefined;
}

/** The payload of sendVoice. */
export function voiceRequest(request: SendRequest, bytes: Buffer, { name, voiceSeconds }: VoiceNote) {
  const duration = Math.max(1, Math.round(voiceSeconds));
  return { ...captionRequest(request), voice: new InputFile(bytes, name), duration };
}
