/** How a request came: the host and protocol of its sender, as far as they can be believed, and where it comes from. */
import type { IncomingMessage } from 'node:http';
import { BlockList, isIPv6 } from 'node:net';

export interface Way {
  /** With its port, in lower case; null: it has none, or what it has is none. */
  host: string | null;
  /** null: only a trusted proxy could say. */
  protocol: string | null;
  from: string;
}

/** Only what these addresses and networks say in `X-Forwarded-…` is believed, and of that what the nearest one wrote. */
export function createWays(trustedProxies: readonly string[]): (request: IncomingMessage) => Way {
  const proxies = listOf(trustedProxies);
  return ({ headers, socket }) => {
    const peer = plainAddress(socket.remoteAddress ?? '');
    if (!isIn(proxies, peer)) return { host: hostIn(headers.host), protocol: null, from: peer };
    const hops = valuesOf(headers['x-forwarded-for']).reverse().map(plainAddress);
    return {
      host: hostIn(valuesOf(headers['x-forwarded-host']).at(-1) ?? headers.host),
      protocol: valuesOf(headers['x-forwarded-proto']).at(-1)?.toLowerCase() ?? null,
      from: hops.find((hop) => !isIn(proxies, hop)) ?? hops.at(-1) ?? peer,
    };
  };
}

/** The port counts: another one of the same host belongs to somebody else. */
export function isOwn(origin: string, { host, protocol }: Way): boolean {
  const given = originIn(origin);
  if (given === null || host === null) return false;
  const own = `${protocol ?? new URL(given).protocol.slice(0, -1)}://${host}`;
  return URL.canParse(own) && new URL(own).origin === given;
}

/** null: it is none of a web page. */
export function originIn(origin: string): string | null {
  return /^https?:\/\//i.test(origin) && URL.canParse(origin) ? new URL(origin).origin : null;
}

function hostIn(header: string | undefined): string | null {
  const isHost = /^([\w.-]+|\[[\da-f:.]+\])(:\d{1,5})?$/i.test(header ?? '');
  return isHost && URL.canParse(`http://${header}`) ? (header ?? '').toLowerCase() : null;
}

function valuesOf(header: string | string[] | undefined): string[] {
  return [header ?? []]
    .flat()
    .join(',')
    .split(',')
    .map((value) => value.trim())
    .filter((value) => value !== '');
}

/** Without the brackets of IPv6, a zone, a port or the prefix of IPv4 in IPv6. */
function plainAddress(address: string): string {
  const bare = /^\[(.*)\](?::\d+)?$/.exec(address)?.[1] ?? address.replace(/^([\d.]+):\d+$/, '$1');
  return bare.replace(/%.*$/, '').replace(/^::ffff:(?=[\d.]+$)/i, '');
}

function listOf(networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [address = '', bits] = network.split('/');
    const family = isIPv6(address) ? 'ipv6' : 'ipv4';
    if (bits === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(bits), family);
  }
  return list;
}

function isIn(list: BlockList, address: string): boolean {
  return list.check(address, isIPv6(address) ? 'ipv6' : 'ipv4');
}
