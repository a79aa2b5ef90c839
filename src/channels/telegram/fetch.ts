/** Fetches a file that came with a message: Telegram is asked where it is, and then for the file. */
import type { FetchResult } from '../../core/channel.js';
import { download } from '../kit/download.js';
import type { BotApi } from './api.js';

/** No longer there, and never again. */
const GONE = [404, 410];

/** Never throws. */
export async function fetchFile(
  api: BotApi,
  fileId: string,
  { maxBytes, signal }: { maxBytes: number; signal: AbortSignal },
): Promise<FetchResult> {
  let path: unknown;
  let size: unknown;
  try {
    const file = await api.call((raw, ended) => raw.getFile({ file_id: fileId }, ended), { signal });
    ({ file_path: path, file_size: size } = file);
  } catch (error) {
    const { reason, code, description } = api.failure(error);
    // Telegram limits what bots may fetch, whatever we would take.
    if (code === 400 && /file is too big/i.test(description)) return { kind: 'too large' };
    return { kind: code === 400 || code === 403 ? 'gone' : 'unreachable', reason };
  }
  if (typeof path !== 'string') return { kind: 'gone', reason: 'Telegram does not say where the file is' };
  if (typeof size === 'number' && size > maxBytes) return { kind: 'too large' };

  const address = api.fileAddress(path);
  const loaded = await api.call(
    (_raw, ended) => download(address, { server: "Telegram's file server", maxBytes, signal: ended }),
    { signal, bytes: maxBytes },
  );
  if (loaded.kind === 'refused') {
    return { kind: GONE.includes(loaded.status) ? 'gone' : 'unreachable', reason: loaded.reason };
  }
  if (loaded.kind === 'fetched' && typeof size === 'number' && loaded.bytes.length < size) {
    return { kind: 'unreachable', reason: `only ${loaded.bytes.length} of ${size} bytes arrived` };
  }
  return loaded;
}
