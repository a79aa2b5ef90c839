/**
 * What the head of a request decides, before one byte of its body is read: whether the listener deals with it at all.
 * Who is refused here cannot make it read anything.
 */
import type { IncomingMessage } from 'node:http';
import type { Webhook } from '../core/channel.js';
import { allowed } from './guard.js';

export interface Refusal {
  status: number;
  error: string;
  headers?: Record<string, string>;
}

/** The contract's limit for bodies, declared or counted. */
export const MOST_BODY_BYTES = 2_000_000;
/** No client of ours sends so many; among more, the one that matters could be hidden. */
const MOST_HEADERS = 100;
const WITH_BODY = ['POST', 'PUT', 'PATCH'];

export function refusalOf(
  { method = '', url = '', headers, rawHeaders }: IncomingMessage,
  listener: { host: string; token: string | null; webhook?: Webhook | undefined },
): Refusal | null {
  if (rawHeaders.length > 2 * MOST_HEADERS) return { status: 431, error: 'too many headers' };
  // Exactly as it was written: another spelling of an open path is not open.
  const [path = ''] = url.split('?', 1);
  const { webhook } = listener;
  const open = ['/health', '/ready', webhook?.path].includes(path);
  const verdict = allowed(listener, open, headers);
  if (verdict !== 'yes') {
    const asks = verdict.status === 401 ? { 'www-authenticate': 'Bearer' } : {};
    return { ...verdict, headers: asks };
  }
  if (webhook !== undefined && path === webhook.path) {
    const secret = headers[webhook.secretHeader];
    if (!webhook.admits(typeof secret === 'string' ? secret : null)) {
      return { status: 401, error: 'the secret is missing or wrong' };
    }
  }
  return ofBody(method, headers);
}

function ofBody(method: string, headers: IncomingMessage['headers']): Refusal | null {
  const { 'content-length': length, 'transfer-encoding': transfer, 'content-encoding': encoding } = headers;
  const declared = Number(length ?? 0);
  if (transfer === undefined && declared === 0) return null;
  if (!WITH_BODY.includes(method)) return { status: 400, error: 'a body is not expected here' };
  if (transfer !== undefined && transfer.toLowerCase() !== 'chunked') {
    return { status: 415, error: 'the body is sent in a way that is not understood' };
  }
  if (encoding !== undefined && encoding !== 'identity') {
    return { status: 415, error: 'a compressed body is not accepted' };
  }
  return declared > MOST_BODY_BYTES ? { status: 413, error: 'too large' } : null;
}
