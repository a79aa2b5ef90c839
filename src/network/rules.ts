/** Chooses a connection's proxy: `network.proxy` for all, else the environment's variable for the scheme, as curl reads it. Pure. */
import { BlockList, isIP, isIPv6 } from 'node:net';
import { type Destination, isLocalName, reachedBy } from '../core/network.js';

export interface NamedProxy {
  kind: 'http' | 'https' | 'socks5';
  host: string;
  port: number;
  user: string;
  password: string;
  /** The configuration key or variable that it comes from. */
  source: string;
  /** As it was written, including the login. */
  address: string;
}

/** null: no proxy. */
export interface Proxies {
  plain: NamedProxy | null;
  secure: NamedProxy | null;
  except: readonly string[];
  /** The source of that list. */
  exceptFrom: string;
}

type Environment = Record<string, string | undefined>;

export const PROXY_FORM = 'the address of a proxy, like http://user:password@proxy.lan:3128, or off';

const KINDS: Record<string, { kind: NamedProxy['kind']; port: number }> = {
  'http:': { kind: 'http', port: 80 },
  'https:': { kind: 'https', port: 443 },
  'socks5:': { kind: 'socks5', port: 1080 },
  'socks5h:': { kind: 'socks5', port: 1080 },
};

/** null if it is not a proxy's address. Without a scheme it means HTTP. */
export function proxyOf(written: string, source: string): NamedProxy | null {
  const address = written.trim();
  const url = /^[a-z][a-z\d+.-]*:\/\//i.test(address) ? address : `http://${address}`;
  if (!URL.canParse(url)) return null;
  const { protocol, hostname, port, username, password, pathname, search, hash } = new URL(url);
  const known = KINDS[protocol];
  const isBare = (pathname === '' || pathname === '/') && search === '' && hash === '';
  const login = [username, password].map(decoded);
  if (known === undefined || hostname === '' || !isBare || port === '0' || login.includes(null)) return null;
  const [user, secret] = login as [string, string];
  // SOCKS stores lengths in one byte.
  if (known.kind === 'socks5' && login.some((each) => Buffer.byteLength(each ?? '') > 255)) return null;
  const host = hostname.replace(/^\[|\]$/g, '');
  const at = { host, port: Number(port || known.port) };
  return { kind: known.kind, ...at, user, password: secret, source, address: url };
}

function decoded(part: string): string | null {
  try {
    return decodeURIComponent(part);
  } catch {
    return null;
  }
}

/** `proxy`: the configuration key; `off` disables proxies. Throws a fault naming the variable that is invalid. */
export function proxiesOf(
  { proxy, no_proxy }: { proxy: string | null; no_proxy: readonly string[] | null },
  environment: Environment,
  fault: (message: string) => Error,
): Proxies {
  const [exceptFrom, listed = ''] = variable(environment, 'no_proxy') ?? ['NO_PROXY'];
  const except = no_proxy ?? listed.split(/[\s,]+/).filter((each) => each !== '');
  const hosts = { except, exceptFrom: no_proxy === null ? exceptFrom : 'network.no_proxy' };
  if (proxy === 'off') return { plain: null, secure: null, ...hosts };
  if (proxy !== null) {
    const named = proxyOf(proxy, 'network.proxy');
    return { plain: named, secure: named, ...hosts };
  }
  const from = (...names: string[]): NamedProxy | null => {
    const found = names.map((name) => variable(environment, name)).find((each) => each !== null);
    if (!found) return null;
    const [source, value] = found;
    const named = proxyOf(value, source);
    const form = PROXY_FORM.replace(', or off', '');
    if (named === null) throw fault(`${source}, a variable of the environment: expected ${form}`);
    return named;
  };
  return { plain: from('http_proxy', 'all_proxy'), secure: from('https_proxy', 'all_proxy'), ...hosts };
}

/** A variable's name as found, and its value; empty counts as unset. Lower case comes first. */
function variable(environment: Environment, name: string): [string, string] | null {
  for (const each of [name, name.toUpperCase()]) {
    const value = environment[each]?.trim();
    if (value) return [each, value];
  }
  return null;
}

/** This machine is reached without a proxy, because a remote proxy could not reach it; a proxy on this machine is used. */
export function proxyFor(proxies: Proxies, { host, port, secure }: Destination): NamedProxy | null {
  const proxy = secure ? proxies.secure : proxies.plain;
  if (proxy === null || (isHere(host) && !isHere(proxy.host))) return null;
  return proxies.except.some((entry) => isNamed(entry.toLowerCase(), host.toLowerCase(), port))
    ? null
    : proxy;
}

function isHere(host: string): boolean {
  const address = reachedBy(host);
  return isLocalName(host.toLowerCase()) || address === '::1' || address.startsWith('127.');
}

/** `*`, `host`, `.host`, `*.host`, `host:port`, `10.0.0.0/8`; a host includes its subdomains. */
function isNamed(entry: string, host: string, port: number): boolean {
  if (entry === '*') return true;
  const [, bracketed, name = '', only] =
    /^(?:\[([^\]]*)\]|([^:]*|.*:.*:.*?))(?::(\d{1,5}))?$/.exec(entry) ?? [];
  const listed = bracketed ?? name;
  if (only !== undefined && Number(only) !== port) return false;
  if (isIP(host) !== 0) return holds(listed, reachedBy(host));
  const bare = listed.replace(/^\*?\./, '').replace(/\.$/, '');
  return bare !== '' && (host === bare || host.endsWith(`.${bare}`));
}

function holds(listed: string, address: string): boolean {
  const [network = '', bits] = listed.split('/');
  if (bits === undefined) return reachedBy(network) === address && address !== '';
  const most = isIPv6(network) ? 128 : 32;
  if (isIP(network) === 0 || isIPv6(network) !== isIPv6(address)) return false;
  if (!/^\d{1,3}$/.test(bits) || Number(bits) > most) return false;
  const family = isIPv6(network) ? 'ipv6' : 'ipv4';
  const list = new BlockList();
  list.addSubnet(network, Number(bits), family);
  return list.check(address, family);
}

/** Without the login. */
export function shownProxy({ kind, host, port }: NamedProxy): string {
  return `${kind}://${isIPv6(host) ? `[${host}]` : host}:${port}`;
}
