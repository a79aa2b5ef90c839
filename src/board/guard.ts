/**
 * Decides on a request by its head alone, before a byte of its body is read: `Origin` and `Host`, token or session, the
 * webhook's secret, type and size of the body.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import { type IncomingHttpHeaders, type IncomingMessage, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Webhook } from '../core/channel.js';
import { EVERYWHERE } from './headers.js';
import type { Sessions } from './sessions.js';
import { isOfThePage } from './static.js';
import { createWays, isOwn, originIn, type Way } from './way.js';

/** Maximum size of a body, declared or counted. */
export const MOST_BODY_BYTES = 2_000_000;
/** To be let in, one may send only this much. */
export const MOST_SIGN_IN_BYTES = 10_000;
/** More headers could hide the relevant one. */
const MOST_HEADERS = 100;
const WITH_BODY = ['POST', 'PUT', 'PATCH'];
const CHANGING = [...WITH_BODY, 'DELETE'];
const OPEN_PATHS = ['/health', '/ready'];
export const SESSION_PATH = '/api/session';
/** Takes files that a message will name, up to a size of their own. */
export const UPLOADS = '/api/board/files';
const UPLOAD_TYPES = ['application/octet-stream', 'multipart/form-data'];

export interface DoorRefusal {
  status: number;
  error: string;
  headers?: Record<string, string>;
}

export interface DoorOptions {
  host: string;
  /** Expected as `Authorization: Bearer`, or once to begin a session; null: none is needed. */
  token: string | null;
  /** Further origins under which the page is reached. */
  origins?: readonly string[] | undefined;
  /** Addresses and networks whose `X-Forwarded-…` is believed. */
  trustedProxies?: readonly string[] | undefined;
  webhook?: Webhook | undefined;
  pageFiles?: string | undefined;
  uploadBytes?: number | undefined;
}

export type Door = ReturnType<typeof createDoor>;

export function createDoor(options: DoorOptions, sessions: Sessions) {
  const { host, token, webhook, pageFiles } = options;
  const origins = (options.origins ?? []).map((origin) => new URL(origin).origin);
  const hosts = origins.map((origin) => new URL(origin).host);
  const wayOf = createWays(options.trustedProxies ?? []);
  const { sessionOf, cookieOf, accessRefusal } = createKeys(token, sessions, wayOf);

  function foreignRefusal(request: IncomingMessage, isProbe: boolean): DoorRefusal | null {
    const { method = '', headers } = request;
    const way = wayOf(request);
    const site = headers['sec-fetch-site'] ?? 'none';
    if (CHANGING.includes(method) && site !== 'same-origin' && site !== 'none') {
      return { status: 403, error: 'the page of another site may not change anything' };
    }
    const { origin } = headers;
    if (origin !== undefined && !isOwn(origin, way) && !origins.includes(originIn(origin) ?? '')) {
      return { status: 403, error: foreignOrigin(originIn(origin)) };
    }
    // Against DNS rebinding: a page's own host name could resolve to a loopback address. With a token, it gets no further.
    if (isProbe || token !== null || !isLoopback(host)) return null;
    const name = way.host === null ? '' : new URL(`http://${way.host}`).hostname;
    if (isLoopback(name) || hosts.includes(way.host ?? '')) return null;
    return {
      status: 403,
      error:
        'foreign host; without board.token, only names of this machine and those in board.origins are answered',
    };
  }

  return {
    /** null if the request may go on. */
    refusalOf(request: IncomingMessage): DoorRefusal | null {
      const { method = '', headers, rawHeaders } = request;
      if (rawHeaders.length > 2 * MOST_HEADERS) return { status: 431, error: 'too many headers' };
      const path = pathOf(request);
      const isWebhook = path === webhook?.path;
      const isProbe = isWebhook || OPEN_PATHS.includes(path);
      const isOpen =
        isProbe ||
        (pageFiles !== undefined && (isOfThePage(path) || (path === SESSION_PATH && method === 'POST')));
      const refusal = foreignRefusal(request, isProbe) ?? (isOpen ? null : accessRefusal(request));
      if (refusal !== null) return refusal;
      if (webhook !== undefined && isWebhook) {
        const secret = headers[webhook.secretHeader];
        if (!webhook.admits(typeof secret === 'string' ? secret : null)) {
          return { status: 401, error: 'the secret is missing or wrong' };
        }
      }
      return bodyRefusal(request, path, options);
    },
    /** It may be told everything. */
    isTrusted: (request: IncomingMessage): boolean =>
      (foreignRefusal(request, false) ?? accessRefusal(request)) === null,
    sessionOf,
    cookieOf,
    /** By what a trusted proxy says, or by the page that asks: it has the same host. */
    isEncrypted: (request: IncomingMessage): boolean =>
      wayOf(request).protocol === 'https' || request.headers.origin?.startsWith('https:') === true,
    /** The address that asks. */
    sourceOf: (request: IncomingMessage): string => wayOf(request).from,
  };
}

/** Token and session, and what is refused without one. */
function createKeys(token: string | null, sessions: Sessions, wayOf: (request: IncomingMessage) => Way) {
  /** Its sessions: a neighbour port of the same host can add a cookie of the same name, but not a session. */
  function sessionOf(request: IncomingMessage): string | null {
    if (token === null) return null;
    const name = cookieOf(request);
    const given = (request.headers.cookie ?? '').split(';').map((pair) => pair.trim().split('='));
    const values = given.flatMap(([key, value]) => (key === name && value !== undefined ? [value] : []));
    return values.find((value) => sessions.isOpen(value, token)) ?? null;
  }

  /** Two gateways on one host have different ports, inside or as the browser sees them. */
  function cookieOf(request: IncomingMessage): string {
    const inside = String(request.socket.localPort);
    const outside = /:(\d+)$/.exec(wayOf(request).host ?? '')?.[1] ?? inside;
    return `coterie_${[...new Set([inside, outside])].join('_')}`;
  }

  function hasToken({ headers: { authorization } }: IncomingMessage): boolean {
    const given = /^Bearer +(.+)$/i.exec(authorization ?? '')?.[1]?.trim() ?? '';
    return token !== null && areEqual(given, token);
  }

  function accessRefusal(request: IncomingMessage): DoorRefusal | null {
    if (token === null || hasToken(request) || sessionOf(request) !== null) return null;
    return { status: 401, error: 'a bearer token is needed', headers: { 'www-authenticate': 'Bearer' } };
  }

  return { sessionOf, cookieOf, accessRefusal };
}

/** The exact spelling: any other form of an open path is not open. */
export function pathOf({ url = '' }: IncomingMessage): string {
  return url.split('?', 1)[0] ?? '';
}

function foreignOrigin(origin: string | null): string {
  const remedy = origin === null ? '' : `; if the page is reached there, name ${origin} in board.origins`;
  return `foreign origin${remedy}`;
}

function bodyRefusal(
  { method = '', headers }: IncomingMessage,
  path: string,
  { webhook, uploadBytes = MOST_BODY_BYTES }: DoorOptions,
): DoorRefusal | null {
  const isUpload = path === UPLOADS && method === 'POST';
  if (isUpload && headers['x-coterie'] !== '1')
    return { status: 415, error: 'the header X-Coterie: 1 is missing' };
  const { 'content-length': length, 'transfer-encoding': transfer } = headers;
  const declared = Number(length ?? 0);
  if (transfer === undefined && declared === 0) return null;
  if (!WITH_BODY.includes(method)) return { status: 400, error: 'a body is not expected here' };
  const strange = path === webhook?.path ? null : strangeType(headers, isUpload);
  if (strange !== null) return { status: 415, error: strange };
  if (transfer !== undefined && transfer.toLowerCase() !== 'chunked') {
    return { status: 415, error: 'the transfer encoding is not supported' };
  }
  const { 'content-encoding': encoding } = headers;
  if (encoding !== undefined && encoding !== 'identity') {
    return { status: 415, error: 'a compressed body is not accepted' };
  }
  const most = isUpload ? uploadBytes : path === SESSION_PATH ? MOST_SIGN_IN_BYTES : MOST_BODY_BYTES;
  return declared > most ? { status: 413, error: isUpload ? tooLarge(most) : 'too large' } : null;
}

export function tooLarge(most: number): string {
  return `The file has more than ${most / 1_000_000} MB; media.max_bytes allows no more.`;
}

function strangeType(headers: IncomingHttpHeaders, isUpload: boolean): string | null {
  const [type = ''] = (headers['content-type'] ?? '').split(';', 1);
  const known = isUpload ? UPLOAD_TYPES : ['application/json'];
  return known.includes(type.trim().toLowerCase()) ? null : `the body must be ${known.join(' or ')}`;
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

/** Takes constant time. */
export function areEqual(a: string, b: string): boolean {
  const hash = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(hash(a), hash(b));
}
