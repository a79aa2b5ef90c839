/** The network as `web_fetch` uses it: names are looked up by us, and a connection goes to what was looked up. */
import type { LookupAddress } from 'node:dns';
import { lookup, Resolver } from 'node:dns/promises';
import type { LookupFunction, Socket } from 'node:net';
import { networkInterfaces } from 'node:os';
import type { Outward } from '../../core/outward.js';

export interface Network {
  /**
   * Every address of a name; none if there is none. `asSystem`: as this machine does it, with its own list of hosts, for
   * names that the operator allowed.
   */
  addressesOf(name: string, asSystem: boolean, signal: AbortSignal): Promise<LookupAddress[]>;
  /** The addresses of this machine: a public one of them leads behind its firewall. */
  own(): string[];
  /** Connects to one of the addresses and to nothing else; behind a proxy to a name whose addresses these were. */
  connect(to: Destination, signal: AbortSignal): Promise<Socket>;
}

export interface Destination {
  /** A name, or the address itself; for the certificate. */
  host: string;
  port: number;
  secure: boolean;
  /** At least one. */
  addresses: readonly LookupAddress[];
}

export function systemNetwork(outward: Pick<Outward, 'connect'>): Network {
  return {
    addressesOf,
    own,
    connect: ({ addresses, ...to }, signal) => outward.connect({ ...to, lookup: onlyTo(addresses) }, signal),
  };
}

const DNS_TIMEOUT_MS = 4_000;
const DNS_TRIES = 2;

/**
 * Not through the system's lookup, which holds one of the few threads that also read every file: a name whose servers
 * are silent would stop the whole gateway.
 */
async function addressesOf(name: string, asSystem: boolean, signal: AbortSignal): Promise<LookupAddress[]> {
  if (asSystem) return lookup(name, { all: true }).catch(() => []);
  const resolver = new Resolver({ timeout: DNS_TIMEOUT_MS, tries: DNS_TRIES });
  const cancel = () => resolver.cancel();
  signal.addEventListener('abort', cancel, { once: true });
  // A name without addresses of one kind is an error of that kind.
  const [v4, v6] = await Promise.all([
    resolver.resolve4(name).catch(() => []),
    resolver.resolve6(name).catch(() => []),
  ]);
  signal.removeEventListener('abort', cancel);
  return [...v4.map((address) => ({ address, family: 4 })), ...v6.map((address) => ({ address, family: 6 }))];
}

function own(): string[] {
  return Object.values(networkInterfaces()).flatMap((each) => each?.map(({ address }) => address) ?? []);
}

/** The socket asks nobody else; of a host that is an address it asks nobody at all. */
export function onlyTo(addresses: readonly LookupAddress[]): LookupFunction {
  const [first] = addresses;
  return (_name, { all }, done) => {
    if (all) done(null, [...addresses]);
    else done(null, first?.address ?? '', first?.family);
  };
}
