/** The way out of this machine, for whatever connects to a server: straight there, or through a proxy. */
import type { Agent } from 'node:http';
import type { LookupFunction, Socket } from 'node:net';
import type { Dispatcher } from 'undici';

export interface Outward {
  /**
   * For requests of Node's own HTTP client, and for `ws`. `secure`: the servers speak TLS. Each connection is for one request
   * only unless `idleMs` is given: then it is kept open for so long.
   */
  agent(secure: boolean, options?: { idleMs?: number; lookup?: LookupFunction }): Agent;
  /** A connection of its own; in the end its own errors tell that it could not be made. Rejects where the proxy refuses it. */
  connect(to: Destination, signal: AbortSignal): Promise<Socket>;
  /** As the global one, also where it leads on. */
  fetch(wishes?: { lookupFor?: LookupFor }): typeof fetch;
  /** For libraries that ask with undici; of an answer it reads no more than one document of a server may hold. */
  dispatcher(): Promise<Dispatcher>;
  /** The proxy that a connection to this server takes, without its login; null: none. */
  proxyFor(to: Pick<Destination, 'host' | 'port' | 'secure'>): string | null;
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
