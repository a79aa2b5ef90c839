/**
 * Which addresses somebody else may send us to: whoever writes in a chat, or a server that redirects, must not reach
 * through the gateway what stands beside it (this machine, its network, the metadata of its cloud). Pure; who connects
 * also asks of the address that a name led to, so that the name cannot lead elsewhere a moment later.
 */
import { BlockList, isIPv4, isIPv6 } from 'node:net';

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
