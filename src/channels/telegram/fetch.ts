/** Fetches a file that came with a message: where it lies, from Telegram's own mouth, and then the file. */
import type { FetchResult } from '../../core/channel.js';
import type { Attachment } from '../../core/message.js';
import type { BotApi } from './api.js';
import { TransportError } from './transport.js';

/** Never throws. */
export async function fetchFile(
  api: BotApi,
  { source }: Pick<Attachment, 'source'>,
  { maxBytes, signal }: { maxBytes: number; signal: AbortSignal },
): Promise<FetchResult> {
  try {
    const { file_path: path, file_size: size } = await api.call(
      (raw, ended) => raw.getFile({ file_id: source }, ended),
      { signal },
    );
    if (typeof path !== 'string')
      return { kind: 'gone', reason: 'Telegram does not say where the file lies' };
    if (typeof size === 'number' && size > maxBytes) return { kind: 'too large' };
    const bytes = await api.download(path, { maxBytes, signal });
    if (bytes === null) return { kind: 'too large' };
    if (typeof size === 'number' && bytes.length < size) {
      return { kind: 'unreachable', reason: `only ${bytes.length} of ${size} bytes arrived` };
    }
    return { kind: 'fetched', bytes };
  } catch (error) {
    return failed(error, api);
  }
}

function failed(error: unknown, api: BotApi): FetchResult {
  const { reason, code, description } = api.failure(error);
  // What bots may fetch is limited, whatever we would take.
  if (code === 400 && /file is too big/i.test(description)) return { kind: 'too large' };
  const status = error instanceof TransportError ? error.status : null;
  const forGood = code === 400 || code === 403 || status === 404 || status === 410;
  return { kind: forGood ? 'gone' : 'unreachable', reason };
}
