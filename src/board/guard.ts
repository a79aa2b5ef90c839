/**
 * Decides on a request by its head alone, before a byte of its body is read: token, `Origin` and `Host`, the webhook's
 * secret, body size.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import { type IncomingHttpHeaders, type IncomingMessage, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Webhook } from '../core/channel.js';
import { EVERYWHERE } from './headers.js';
import { isOfThePage } from './static.js';

/** Maximum size of a body, declared or counted. */
export const MOST_BODY_BYTES = 2_000_000;
/** Takes files that a message will name. */
export const UPLOADS = '/api/board/files';
export const MOST_UPLOAD_BYTES = 20_000_000;
/** More headers could hide the relevant one. */
const MOST_HEADERS = 100;
const WITH_BODY = ['POST', 'PUT', 'PATCH'];
const OPEN_PATHS = ['/health', '/ready'];

export interface DoorRefusal {
  status: number;
  error: string;
  headers?: Record<string, string>;
}

interface HttpListener {
  host: string;
  /** Expected as `Authorization: Bearer`; null: no token is needed. */
  token: string | null;
  webhook?: Webhook | undefined;
  pageFiles?: string;
}

/** null if the request may go on. */
export function refusalOf(request: IncomingMessage, listener: HttpListener): DoorRefusal | null {
  const { method = '', headers, rawHeaders } = request;
  if (rawHeaders.length > 2 * MOST_HEADERS) return { status: 431, error: 'too many headers' };
  const path = pathOf(request);
  const isWebhook = path === listener.webhook?.path;
  const isOpen =
    isWebhook || OPEN_PATHS.includes(path) || (listener.pageFiles !== undefined && isOfThePage(path));
  const refusal = accessRefusal(listener, isOpen, headers);
  if (refusal !== null) return refusal;
  if (listener.webhook !== undefined && isWebhook) {
    const secret = headers[listener.webhook.secretHeader];
    if (!listener.webhook.admits(typeof secret === 'string' ? secret : null)) {
      return { status: 401, error: 'the secret is missing or wrong' };
    }
  }
  const most = pathOf(request) === UPLOADS ? MOST_UPLOAD_BYTES : MOST_BODY_BYTES;
  return bodyRefusal(method, headers, most);
}

/** The exact spelling: any other form of an open path is not open. */
export function pathOf({ url = '' }: IncomingMessage): string {
  return url.split('?', 1)[0] ?? '';
}

/** `isOpen` paths need no token: probes, and the webhook, which has its own secret. */
export function accessRefusal(
  listener: HttpListener,
  isOpen: boolean,
  { host, origin, authorization }: IncomingHttpHeaders,
): DoorRefusal | null {
  if (origin !== undefined && partOf(origin, 'host') !== host?.toLowerCase()) {
    return { status: 403, error: 'foreign origin' };
  }
  if (isOpen) return null;
  if (listener.token !== null) {
    const given = /^Bearer +(.+)$/i.exec(authorization ?? '')?.[1]?.trim() ?? '';
    if (areEqual(given, listener.token)) return null;
    return { status: 401, error: 'a bearer token is needed', headers: { 'www-authenticate': 'Bearer' } };
  }
  // Against DNS rebinding: a page's own host name could resolve to a loopback address.
  if (isLoopback(listener.host) && !isLoopback(partOf(`http://${host}`, 'hostname') ?? '')) {
    return { status: 403, error: 'foreign host' };
  }
  return null;
}

function bodyRefusal(method: string, headers: IncomingHttpHeaders, most: number): DoorRefusal | null {
  const { 'content-length': length, 'transfer-encoding': transfer, 'content-encoding': encoding } = headers;
  const declared = Number(length ?? 0);
  if (transfer === undefined && declared === 0) return null;
  if (!WITH_BODY.includes(method)) return { status: 400, error: 'a body is not expected here' };
  if (transfer !== undefined && transfer.toLowerCase() !== 'chunked') {
    return { status: 415, error: 'the transfer encoding is not supported' };
  }
  if (encoding !== undefined && encoding !== 'identity') {
    return { status: 415, error: 'a compressed body is not accepted' };
  }
  return declared > most ? { status: 413, error: 'too large' } : null;
}

/** Before the handshake of a socket, when there is no response to write to. */
export function refuseUpgrade(socket: Duplex, { status, error, headers = {} }: DoorRefusal): void {
  const body = JSON.stringify({ error });
  const lines = Object.entries({
    ...EVERYWHERE,
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    connection: 'close',
    ...headers,
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  const text = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`;
  socket.end(text, () => socket.destroy());
}

/** Names and addresses that only this machine can reach. */
export function isLoopback(host: string): boolean {
  const name = host
    .toLowerCase()
    .replace(/^\[|\]$/g, '')
    .replace(/^::ffff:/, '');
  return (
    name === 'localhost' || name.endsWith('.localhost') || name === '::1' || /^127(\.\d{1,3}){3}$/.test(name)
  );
}

function partOf(address: string, part: 'host' | 'hostname'): string | null {
  return URL.canParse(address) ? new URL(address)[part] : null;
}

/** Takes constant time. */
function areEqual(a: string, b: string): boolean {
  const hash = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(hash(a), hash(b));
}
