/** Outgoing connections, direct or by proxy; the addresses that others may send us to; and limits on responses. */
import type { Agent, IncomingHttpHeaders } from 'node:http';
import { BlockList, isIPv4, isIPv6, type LookupFunction, type Socket } from 'node:net';
import type { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';

export interface Outward {
  /** For Node's HTTP client and `ws`. Connections are reused only with `idleMs`. */
  agent(secure: boolean, options?: { idleMs?: number; lookup?: LookupFunction }): Agent;
  /** A separate connection. Errors come as its own events; rejects if the proxy refuses. */
  connect(to: Destination, signal: AbortSignal): Promise<Socket>;
  /** Without time-outs and redirects. Resolves when the head of the response is there; rejects with Node's own errors. */
  request(url: URL, ask: OutgoingRequest): Promise<ServerResponse>;
  /** As the global `fetch`, without its time-outs. `lookupFor` also applies to redirects. */
  fetch(options?: { lookupFor?: LookupFor }): typeof fetch;
  /** For libraries that use undici. */
  dispatcher(): Promise<Dispatcher>;
  /** Without its login; null: direct. */
  proxyFor(to: Destination): string | null;
}

export interface OutgoingRequest {
  method?: 'GET' | 'POST';
  headers: Record<string, string>;
  /** With a stream, the headers hold its length. */
  body?: string | Buffer | Readable;
  signal: AbortSignal;
}

export interface ServerResponse {
  status: number;
  headers: IncomingHttpHeaders;
  /** Decompressed. */
  body: Readable;
}

export interface Destination {
  /** Also checked against the certificate. */
  host: string;
  port: number;
  secure: boolean;
  /**
   * Resolves to permitted addresses, or fails, before a proxy is asked. The proxy gets the name if a certificate will
   * prove it, otherwise the address.
   */
  lookup?: LookupFunction | undefined;
}

/** Undefined: as the system does. Throws if the server is off limits. */
export type LookupFor = (to: Destination) => Promise<LookupFunction | undefined>;

/** Nothing was sent. The message names the proxy without its login. */
export class ProxyRefusal extends Error {
  override readonly name = 'ProxyRefusal';
  readonly code = 'EPROXY';
}

// SSRF protection: nobody in a chat and no redirecting server may reach through the gateway what is next to it.
// Connections also check the resolved address, so that a name cannot change its target.

/** Special-purpose addresses of the IANA registries. */
const SPECIAL_V4 = [
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12'],
  ...['192.0.0.0/24', '192.0.2.0/24', '192.88.99.0/24', '192.168.0.0/16', '198.18.0.0/15'],
  ...['198.51.100.0/24', '203.0.113.0/24', '224.0.0.0/4', '240.0.0.0/4'],
  // Azure's platform server, on a public address.
  '168.63.129.16/32',
];
/** Globally routed; everything else is local, multicast or undefined. */
const GLOBAL_V6 = ['2000::/3'];
/** Teredo, benchmarks, documentation, and 6to4, which embeds any IPv4 address. */
const SPECIAL_V6 = ['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20'];

const specialV4 = ranges(SPECIAL_V4, 'ipv4');
const globalV6 = ranges(GLOBAL_V6, 'ipv6');
const specialV6 = ranges(SPECIAL_V6, 'ipv6');

export function isPublicAddress(address: string): boolean {
  const reached = reachedBy(address);
  if (isIPv4(reached)) return !specialV4.check(reached);
  return isIPv6(reached) && globalV6.check(reached, 'ipv6') && !specialV6.check(reached, 'ipv6');
}

/** The shortest form of an address, or the IPv4 address embedded in it; empty if invalid. */
export function reachedBy(address: string): string {
  if (isIPv4(address)) return address;
  if (!isIPv6(address) || !URL.canParse(`http://[${address}]`)) return '';
  const shortest = new URL(`http://[${address}]`).hostname.slice(1, -1);
  return innerAddress(shortest) ?? shortest;
}

/**
 * Why an untrusted URL is not followed; null if it may be. `trusted`: configured origins. Names pass; check their
 * addresses with `isPublicAddress`.
 */
export function refusalOf(url: URL, trusted: readonly string[]): string | null {
  if (url.username !== '' || url.password !== '') return 'it holds a login';
  if (trusted.includes(url.origin)) return null;
  if (url.protocol !== 'https:') return 'it is not https';
  const host = hostOf(url);
  if (isIPv4(host) || isIPv6(host)) return isPublicAddress(host) ? null : PRIVATE;
  return isLocalName(host) ? PRIVATE : null;
}

/** The host for a socket: without brackets and the trailing dot. */
export function hostOf(url: URL): string {
  return url.hostname.replace(/(?<!\.)\.+$/, '').replace(/^\[|\]$/g, '');
}

export function isLocalName(host: string): boolean {
  return host === '' || /(?:^|\.)localhost$/.test(host);
}

export const PRIVATE = 'it leads into a private network';

/** Mapped, or NAT64. */
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

/** Factor on `limits.answer_bytes` for one line, event or document of a model server. */
export const TIMES_AN_ANSWER = 8;
export const MOST_DOCUMENT_BYTES = 16_000_000;

/**
 * JSON.parse reads any depth, but JSON.stringify, zod and other recursive code overflow the stack at a few thousand.
 */
export const MOST_LEVELS = 100;

/** Whether objects and lists are nested deeper than `most`, without recursion. */
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

/** The base keeps its query. A login becomes a header, because `fetch` rejects it in a URL. */
export function addressOf(baseUrl: string, path: string): { url: URL; headers: Record<string, string> } {
  const url = new URL(baseUrl);
  const login = `${decoded(url.username)}:${decoded(url.password)}`;
  url.username = '';
  url.password = '';
  url.pathname = `${url.pathname.replace(/(?<!\/)\/+$/, '')}${path}`;
  const headers = login === ':' ? {} : { authorization: `Basic ${Buffer.from(login).toString('base64')}` };
  return { url, headers: headers as Record<string, string> };
}

/** Unchanged if it is not valid percent-encoding. */
export function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The innermost cause: `connect ECONNREFUSED 127.0.0.1:11434`. */
export function rootCause(error: unknown): unknown {
  let inner = error;
  while (inner instanceof Error && inner.cause instanceof Error) inner = inner.cause;
  return inner instanceof AggregateError && inner.errors.length > 0 ? inner.errors[0] : inner;
}
