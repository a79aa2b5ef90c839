/**
 * The way out of this machine: straight to a server, or through a proxy; which addresses others may send us to; and bounds
 * of what comes back.
 */
import type { Agent, IncomingMessage } from 'node:http';
import { BlockList, isIPv4, isIPv6, type LookupFunction, type Socket } from 'node:net';
import { PassThrough, pipeline, type Readable } from 'node:stream';
import { constants, createBrotliDecompress, createInflateRaw, createUnzip } from 'node:zlib';
import type { Dispatcher } from 'undici';

export interface Outward {
  /**
   * For requests of Node's own HTTP client, and for `ws`. `secure`: the servers speak TLS. Each connection is for one request
   * only unless `idleMs` is given: then it is kept open for so long.
   */
  agent(secure: boolean, options?: { idleMs?: number; lookup?: LookupFunction }): Agent;
  /** A connection of its own; in the end its own errors tell that it could not be made. Rejects where the proxy refuses it. */
  connect(to: Destination, signal: AbortSignal): Promise<Socket>;
  /** As the global one, but without timeouts of its own. `lookupFor` is asked wherever it leads on, too. */
  fetch(options?: { lookupFor?: LookupFor }): typeof fetch;
  /** For libraries that ask with undici; of an answer it reads no more than one document of a server may hold. */
  dispatcher(): Promise<Dispatcher>;
  /** The proxy that a connection to this server takes, without its login; null: none. */
  proxyFor(to: Destination): string | null;
}

export interface Destination {
  /** A name, or the address itself; for the certificate, too. */
  host: string;
  port: number;
  secure: boolean;
  /**
   * Gives the addresses that may be reached, or fails. Asked before a proxy is. A proxy is then told the name where a
   * certificate proves who is there, and otherwise the address.
   */
  lookup?: LookupFunction | undefined;
}

/** How the name of a server is looked up; undefined: as the system does it. Throws where the server may not be reached. */
export type LookupFor = (to: Destination) => Promise<LookupFunction | undefined>;

/** A proxy did not make the connection: nothing of the request has left. Its message names the proxy without its login. */
export class ProxyRefusal extends Error {
  override readonly name = 'ProxyRefusal';
  readonly code = 'EPROXY';
}

// Which addresses somebody else may send us to: whoever writes in a chat, or a server that redirects, must not reach
// through the gateway what stands beside it (this machine, its network, the metadata of its cloud). Pure; who connects
// also asks of the address that a name led to, so that the name cannot lead elsewhere a moment later.

/** What the registries of special addresses name; all of it is nobody's public server. */
const SPECIAL_V4 = [
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12'],
  ...['192.0.0.0/24', '192.0.2.0/24', '192.88.99.0/24', '192.168.0.0/16', '198.18.0.0/15'],
  ...['198.51.100.0/24', '203.0.113.0/24', '224.0.0.0/4', '240.0.0.0/4'],
  // Azure's own server for its machines, on a public address.
  '168.63.129.16/32',
];
/** All that is given to networks of the world; what lies beside it is local, multicast or undefined. */
const GLOBAL_V6 = ['2000::/3'];
/** Protocols (Teredo, benchmarks), documentation, and 6to4, which leads to any address of version 4. */
const SPECIAL_V6 = ['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20'];

const specialV4 = ranges(SPECIAL_V4, 'ipv4');
const globalV6 = ranges(GLOBAL_V6, 'ipv6');
const specialV6 = ranges(SPECIAL_V6, 'ipv6');

/** Whether an address, as a socket has it, is a public server's. */
export function isPublicAddress(address: string): boolean {
  const reached = reachedBy(address);
  if (isIPv4(reached)) return !specialV4.check(reached);
  return isIPv6(reached) && globalV6.check(reached, 'ipv6') && !specialV6.check(reached, 'ipv6');
}

/** Where an address leads: in its shortest form, or the one of version 4 that it stands for; empty for what is none. */
export function reachedBy(address: string): string {
  if (isIPv4(address)) return address;
  if (!isIPv6(address) || !URL.canParse(`http://[${address}]`)) return '';
  const shortest = new URL(`http://[${address}]`).hostname.slice(1, -1);
  return innerAddress(shortest) ?? shortest;
}

/**
 * Why an address from outside is not followed; null where it may be. `trusted`: origins that the configuration names,
 * to which anything may lead. A name passes here; what it leads to is asked of `isPublicAddress`.
 */
export function refusalOf(url: URL, trusted: readonly string[]): string | null {
  if (url.username !== '' || url.password !== '') return 'it holds a login';
  if (trusted.includes(url.origin)) return null;
  if (url.protocol !== 'https:') return 'it is not https';
  const host = hostOf(url);
  if (isIPv4(host) || isIPv6(host)) return isPublicAddress(host) ? null : PRIVATE;
  return isLocalName(host) ? PRIVATE : null;
}

/** The name or the address in a URL as a socket takes it: without brackets, and without the dot of a whole name. */
export function hostOf(url: URL): string {
  return url.hostname.replace(/(?<!\.)\.+$/, '').replace(/^\[|\]$/g, '');
}

/** Whether a name means this machine, whatever it is looked up as. */
export function isLocalName(host: string): boolean {
  return host === '' || /(?:^|\.)localhost$/.test(host);
}

/** What is said of an address that no public server has. */
export const PRIVATE = 'it leads into a private network';

/** The address of version 4 that one of version 6 stands for: mapped, or through NAT64. Given in its shortest form. */
function innerAddress(address: string): string | null {
  const found = /^(?:::ffff:|64:ff9b::)(?:([\da-f]{1,4}):)?([\da-f]{1,4})$/.exec(address);
  if (found === null) return null;
  const [high, low] = [found[1] ?? '0', found[2] ?? '0'].map((group) => Number.parseInt(group, 16));
  return [high, low].flatMap((group = 0) => [group >> 8, group & 255]).join('.');
}

function ranges(listed: string[], family: 'ipv4' | 'ipv6'): BlockList {
  const list = new BlockList();
  for (const range of listed) {
    const [network = '', prefix] = range.split('/');
    list.addSubnet(network, Number(prefix), family);
  }
  return list;
}

// What a server packed although nobody asked for it: the body of its response as it was before.

/** Says to a server that nothing is to be packed: what an answer holds is bounded as it comes. */
export const NOT_PACKED = { 'accept-encoding': 'identity' };

/**
 * Unpacks gzip, deflate and brotli as they come; a body in another form, or in several, comes as it is. Whoever reads
 * counts what is read, so that a small body that unpacks to a large one is bounded like any other. An error of either
 * stream is one of the result; destroying the result ends the response.
 */
export function unpacked(response: IncomingMessage): Readable {
  const form = (response.headers['content-encoding'] ?? '').trim().toLowerCase();
  if (!/^(x-)?gzip$|^deflate$|^br$/.test(form)) return response;
  const plain = new PassThrough();
  // Whoever reads gets the error; without a listener, one that nobody reads would end the process.
  plain.on('error', () => {});
  plain.once('close', () => response.destroy());
  response.once('error', (error) => plain.destroy(error));
  response.once('readable', () => {
    const first: Buffer | null = response.read();
    if (first !== null) response.unshift(first);
    pipeline(response, unpacker(form, first), plain, () => {});
  });
  return plain;
}

/**
 * Some servers call `deflate` what has no header (RFC 9110, 8.4.1.2): one of zlib is a multiple of 31, and where only its
 * first byte is there, that says 8 (RFC 1950, 2.2).
 */
function unpacker(form: string, first: Buffer | null) {
  if (form === 'br') return createBrotliDecompress({ flush: constants.BROTLI_OPERATION_FLUSH });
  if (form !== 'deflate') return createUnzip();
  const head = first !== null && first.length > 1 ? first.readUInt16BE(0) : (first?.[0] ?? 0) * 256;
  const isGzip = head >> 8 === 0x1f;
  const isZlib = (head & 0x0f00) === 0x0800 && (first?.length === 1 || head % 31 === 0);
  return isGzip || isZlib ? createUnzip() : createInflateRaw();
}

/** How many times as much as an answer may hold (`limits.answer_bytes`), one line, event or document of a model server may. */
export const TIMES_AN_ANSWER = 8;
/** The most that is read of one document of any other server. */
export const MOST_DOCUMENT_BYTES = 16_000_000;

/** All of a body. Rejects where it is larger than `most` bytes; the connection then ends. */
export async function wholeOf(body: AsyncIterable<Uint8Array>, most: number): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of body) {
    bytes += piece.length;
    if (bytes > most) throw new Error(`its answer is larger than ${most.toLocaleString('en')} bytes`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

// How deep objects and lists lie in one another. JSON.parse reads any depth; JSON.stringify, zod and whatever else calls
// itself for each level overflow the stack at a few thousand. So what comes from outside is looked at first, without a stack.

/** No honest arguments are nested deeper: those that are reach no tool. */
export const MOST_LEVELS = 100;

/** Whether something lies more than `most` objects and lists deep. `value` is as JSON.parse makes it. */
export function isNestedDeeper(value: unknown, most: number = MOST_LEVELS): boolean {
  let level: unknown[] = [value];
  for (let depth = 1; depth <= most; depth++) {
    const next: unknown[] = [];
    for (const each of level) {
      if (typeof each !== 'object' || each === null) continue;
      for (const inner of Object.values(each))
        if (typeof inner === 'object' && inner !== null) next.push(inner);
    }
    if (next.length === 0) return false;
    level = next;
  }
  return true;
}

/** A path below a server's base address, which keeps its query. A login in it becomes a header, since `fetch` takes none. */
export function addressOf(baseUrl: string, path: string): { url: URL; headers: Record<string, string> } {
  const url = new URL(baseUrl);
  const login = `${decoded(url.username)}:${decoded(url.password)}`;
  url.username = '';
  url.password = '';
  url.pathname = `${url.pathname.replace(/(?<!\/)\/+$/, '')}${path}`;
  const headers = login === ':' ? {} : { authorization: `Basic ${Buffer.from(login).toString('base64')}` };
  return { url, headers: headers as Record<string, string> };
}

/** As it is where nobody wrote it for an address. */
export function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** One request and its whole answer, whatever its status. Rejects where that is larger than `most` bytes; the connection then ends. */
export async function fetchWhole(
  ask: typeof fetch,
  url: URL,
  { headers, ...sent }: Omit<RequestInit, 'headers'> & { headers: Record<string, string> },
  most: number,
): Promise<{ status: number; headers: Headers; bytes: Buffer }> {
  const asked = { redirect: 'manual' as const, ...sent, headers: { ...NOT_PACKED, ...headers } };
  const { status, headers: received, body } = await ask(url, asked);
  return { status, headers: received, bytes: await wholeOf((body ?? []) as AsyncIterable<Uint8Array>, most) };
}

/** `fetch` says only that it failed; its innermost cause says why: `connect ECONNREFUSED 127.0.0.1:11434`. */
export function rootCause(error: unknown): unknown {
  let inner = error;
  while (inner instanceof Error && inner.cause instanceof Error) inner = inner.cause;
  return inner instanceof AggregateError && inner.errors.length > 0 ? inner.errors[0] : inner;
}
