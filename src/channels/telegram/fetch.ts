/**
 * Fetches a file that came with a message: Telegram is asked where it is, and then for the file. An operator's own Bot
 * API server that runs with `--local` has put it on its disk and gives no other way to it.
 */
import { open } from 'node:fs/promises';
import { isAbsolute } from 'node:path';
import type { FetchResult } from '../../core/channel.js';
import { describe } from '../../core/errors.js';
import type { Outward } from '../../core/outward.js';
import { download } from '../kit/download.js';
import type { Bots } from './bots.js';

/** No longer there, and never again. */
const GONE = [404, 410];

/** `source`: as in an attachment, which only the bot that received it may fetch. Never throws. */
export async function fetchFile(
  bots: Pick<Bots, 'withId'>,
  source: string,
  { maxBytes, signal, outward }: { maxBytes: number; signal: AbortSignal; outward: Outward },
): Promise<FetchResult> {
  const { bot, fileId } = readSource(source);
  const api = bots.withId(bot)?.api;
  if (api === undefined) return { kind: 'gone', reason: 'the bot that was told of it is none of ours' };
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

  if (isAbsolute(path)) {
    // Telegram's own server never gives one, and whoever stood between it and us must not read our disk.
    if (api.isPublic) return { kind: 'gone', reason: 'Telegram names a file on a disk' };
    return readLocal(path, maxBytes);
  }

  const address = api.fileAddress(path);
  const loaded = await api.call(
    (_raw, ended) =>
      download(address, {
        server: "Telegram's file server",
        maxBytes,
        signal: ended,
        trusted: [new URL(address).origin],
        outward,
      }),
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

/** The bot in it, null for the main one, and the file's id for that bot. */
function readSource(source: string): { bot: number | null; fileId: string } {
  const [, bot, fileId] = /^(\d{1,15}):(.*)$/s.exec(source) ?? [];
  return bot === undefined || fileId === undefined
    ? { bot: null, fileId: source }
    : { bot: Number(bot), fileId };
}

/** The server may run on another machine, or as another user: that is the operator's to mend. */
async function readLocal(path: string, maxBytes: number): Promise<FetchResult> {
  try {
    const file = await open(path);
    try {
      const { size } = await file.stat();
      if (size > maxBytes) return { kind: 'too large' };
      const bytes = await file.readFile();
      return bytes.length > maxBytes ? { kind: 'too large' } : { kind: 'fetched', bytes };
    } finally {
      await file.close();
    }
  } catch (error) {
    const where = `the Bot API server has put the file on its own disk, at ${path}`;
    const what = 'that folder must be readable for the gateway under the same path';
    return { kind: 'unreachable', reason: `${where}; ${what} (${describe(error)})` };
  }
}
