/** A file that is sent: as what it is, where Telegram takes it so (a voice note, a photo), else as a document. */
import { InputFile } from 'grammy/web';
import type { OutgoingFile } from '../../core/channel.js';
import type { BotApi } from './api.js';
import { type Failure, isKindRefused, isUnwanted } from './failure.js';
import { MAX_CAPTION, type SendRequest } from './outbound.js';
import { isPhoto } from './picture.js';

/** With the text of the request below it. Never rejects. */
export async function sendFile(
  api: BotApi,
  request: SendRequest,
  file: OutgoingFile,
  { bytes, signal }: { bytes: Buffer; signal: AbortSignal },
): Promise<{ answer: { message_id?: unknown } } | { failure: Failure }> {
  const limits = { signal, bytes: bytes.length, mostText: MAX_CAPTION };
  // Each upload needs its own.
  const input = () => new InputFile(bytes, formName(file.name));
  if (file.voiceSeconds !== undefined) {
    const duration = Math.max(1, Math.round(file.voiceSeconds));
    const spoken = await api.send(
      request,
      (raw, each, ended) =>
        raw.sendVoice({ ...captionRequest(each), voice: new InputFile(bytes, file.name), duration }, ended),
      limits,
    );
    if (!('failure' in spoken) || !isKindRefused(spoken.failure)) return spoken;
    // Who wants no voice notes wants them of no other bot either; but the words below one are not lost with it.
    const isWordless = request.text.trim() === '';
    if (isUnwanted(spoken.failure) && isWordless) return spoken;
  } else if (isPhoto(bytes)) {
    const shown = await api.send(
      request,
      (raw, each, ended) => raw.sendPhoto({ ...captionRequest(each), photo: input() }, ended),
      limits,
    );
    if (!('failure' in shown && isKindRefused(shown.failure))) return shown;
  }
  return api.send(
    request,
    (raw, each, ended) => raw.sendDocument({ ...captionRequest(each), document: input() }, ended),
    limits,
  );
}

/** The payload of what sends a file, but for that: the text is its caption, of which Telegram fetches no links. */
function captionRequest({ text, entities, link_preview_options: _, ...rest }: SendRequest) {
  if (text.trim() === '') return rest;
  return { ...rest, caption: text, ...(entities === undefined ? {} : { caption_entities: entities }) };
}

/**
 * A file's name as it must be written in a form: Telegram decodes percent signs there, and cuts at semicolons. What is
 * not ASCII is left as it is.
 */
function formName(name: string): string {
  return name.trim().replace(/[\p{Cc}%;"\\]/gu, encodeURIComponent);
}
