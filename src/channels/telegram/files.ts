/** Fetches the files of messages. */
import { readFile, stat } from 'node:fs/promises';
import { isAbsolute } from 'node:path';
import type { FetchResult } from '../../core/channel.js';
import { describe } from '../../core/errors.js';
import type { Outward } from '../../core/network.js';
import { download } from '../kit/download.js';
import type { Bots } from './bots.js';

/** HTTP statuses of a file that is permanently gone. */
const GONE = [404, 410];

/**
 * Asks Telegram for a file's path, then downloads it. `source`: as in an attachment; only the bot that received it
 * may fetch it. Never throws.
 */
export async function fetchFile(
  bots: Bots,
  source: string,
  { maxBytes, signal, outward }: { maxBytes: number; signal: AbortSignal; outward: Outward },
): Promise<FetchResult> {
  const [, id, fileId = source] = /^(\d{1,15}):(.*)$/s.exec(source) ?? [];
  const api = bots.withId(id === undefined ? null : Number(id))?.api;
  if (api === undefined) {
    return { kind: 'gone', reason: 'the bot that received it is not configured any more' };
  }
  const found = await api.attempt((raw, ended) => raw.getFile({ file_id: fileId }, ended), { signal });
  if ('failure' in found) {
    const { reason, code, description } = found.failure;
    // Telegram limits what bots may fetch, whatever our own limit.
    if (code === 400 && /file is too big/i.test(description)) return { kind: 'too large' };
    return { kind: code === 400 || code === 403 ? 'gone' : 'unreachable', reason };
  }
  const { file_path: path, file_size: size }: { file_path?: unknown; file_size?: unknown } = found.answer;
  if (typeof path !== 'string') return { kind: 'gone', reason: 'Telegram does not say where the file is' };
  if (typeof size === 'number' && size > maxBytes) return { kind: 'too large' };

  if (isAbsolute(path)) {
    // Telegram's own server never gives a local path, and a man in the middle must not read our disk.
    if (api.isPublic) return { kind: 'gone', reason: 'Telegram names a file on a disk' };
    return readLocal(path, maxBytes);
  }

  const address = api.fileAddress(path);
  const trusted = [new URL(address).origin];
  const server = "Telegram's file server";
  const loaded = await api.call(
    (_raw, ended) => download(address, { server, maxBytes, signal: ended, trusted, outward }),
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

/**
 * An operator's own Bot API server run with `--local` has saved it to its disk, with no other way to get it. It may
 * run on another machine or as another user; the operator has to fix that.
 */
async function readLocal(path: string, maxBytes: number): Promise<FetchResult> {
  try {
    const { size } = await stat(path);
    if (size > maxBytes) return { kind: 'too large' };
    const bytes = await readFile(path);
    return bytes.length > maxBytes ? { kind: 'too large' } : { kind: 'fetched', bytes };
  } catch (error) {
    const where = `the Bot API server has put the file on its own disk, at ${path}`;
    const what = 'that folder must be readable for the gateway under the same path';
    return { kind: 'unreachable', reason: `${where}; ${what} (${describe(error)})` };
  }
}
