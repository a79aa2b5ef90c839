/** The body of a request, no more of it than may be, and what is JSON in it. */
import type { IncomingMessage } from 'node:http';
import { isNestedDeeper } from '../core/network.js';
import { MOST_BODY_BYTES } from './door.js';

/** Counted, for what a client declares need not be so. Rejects when it breaks off. */
export async function bodyOf(request: IncomingMessage): Promise<Buffer | 'too large'> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  // Where it is too much, its connection still has to bear the answer.
  for await (const piece of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    bytes += piece.length;
    if (bytes > MOST_BODY_BYTES) return 'too large';
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

/** undefined: it is not JSON, or not UTF-8, or nested deeper than anything may be that goes through it level by level. */
export function parsed(body: Buffer): unknown {
  try {
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
    return isNestedDeeper(value) ? undefined : value;
  } catch {
    return undefined;
  }
}
