/** All outgoing connections: through the proxy that the rules choose, or direct. */
import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { isIP, type LookupFunction, connect as plainConnect, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type ConnectionOptions, connect as secureConnect } from 'node:tls';
import { type Destination, MOST_DOCUMENT_BYTES, type Outward } from '../core/network.js';
import { createDispatcher, createFetch } from './fetch.js';
import { createRequest } from './request.js';
import { type Proxies, proxyFor, shownProxy } from './rules.js';
import { tunnel } from './tunnel.js';

/** Without a proxy, a failed DNS look-up is final. */
const UNKNOWN_HERE = ['ENOTFOUND', 'EAI_AGAIN'];

/** The options that both of Node's agents pass to createConnection. */
interface Wanted extends ConnectionOptions {
  lookup?: LookupFunction;
}

type Made = (error: Error | null, socket?: Duplex) => void;

export function createOutward(proxies: Proxies): Outward {
  /** null: connect directly. */
  function throughProxy(to: Destination, signal?: AbortSignal): Promise<Socket> | null {
    const proxy = proxyFor(proxies, to);
    if (proxy === null) return null;
    return targetOf(to).then((host) => tunnel(proxy, { host, port: to.port }, signal));
  }

  const serverOf = (secure: boolean, { host, port, lookup }: Wanted): Destination => ({
    host: (host ?? 'localhost').replace(/^\[|\]$/g, ''),
    secure,
    lookup,
    port: Number(port ?? (secure ? 443 : 80)),
  });

  /** For an agent; false: no proxy, so it connects directly. */
  function createConnection(secure: boolean, wanted: Wanted, done: Made): boolean {
    const raw = throughProxy(serverOf(secure, wanted));
    raw?.then((socket) => made(secure, wanted, socket)).then((socket) => done(null, socket), done);
    return raw !== null;
  }

  class PlainAgent extends HttpAgent {
    override createConnection(wanted: Wanted, done: Made): Duplex | null | undefined {
      if (createConnection(false, wanted, done)) return undefined;
      return super.createConnection(wanted as never, done as never);
    }
  }

  class SecureAgent extends HttpsAgent {
    override createConnection(wanted: Wanted, done: Made): Duplex | null | undefined {
      if (createConnection(true, wanted, done)) return undefined;
      return super.createConnection(wanted as never, done as never);
    }
  }

  async function connect(to: Destination, signal: AbortSignal): Promise<Socket> {
    const { host, port, secure, lookup } = to;
    const raw = throughProxy(to, signal);
    const wanted = isIP(host) === 0 ? { host, servername: host } : { host };
    if (raw !== null) return made(secure, wanted, await raw);
    const there = { ...wanted, port, ...(lookup && { lookup }) };
    return secure ? secureConnect(there) : plainConnect(there);
  }

  const agent: Outward['agent'] = (secure, { idleMs, lookup } = {}) =>
    new (secure ? SecureAgent : PlainAgent)({
      ...(idleMs === undefined ? { keepAlive: false } : { keepAlive: true, timeout: idleMs }),
      ...(lookup && { lookup }),
    });

  return {
    agent,
    connect,
    request: createRequest(agent),
    fetch: ({ lookupFor } = {}) =>
      createFetch(async (to, signal) => connect({ ...to, lookup: await lookupFor?.(to) }, signal)),
    dispatcher: createDispatcher(connect, { maxResponseSize: MOST_DOCUMENT_BYTES }),
    proxyFor(to) {
      const proxy = proxyFor(proxies, to);
      return proxy === null ? null : shownProxy(proxy);
    },
  };
}

/** The socket for requests; with TLS, after the handshake. */
async function made(secure: boolean, wanted: Wanted, socket: Socket): Promise<Socket> {
  // Node does the same on its own sockets: small writes are sent at once.
  socket.setNoDelay(true);
  if (!secure) return socket;
  return new Promise((resolve, reject) => {
    const { servername, ...options } = wanted;
    // SNI allows no IP addresses.
    const named = servername !== undefined && isIP(servername) === 0 ? { servername } : {};
    const encrypted = secureConnect({ ...options, ...named, socket });
    const failed = (error: Error) => {
      socket.destroy();
      reject(error);
    };
    encrypted.once('error', failed);
    encrypted.once('secureConnect', () => {
      encrypted.off('error', failed);
      resolve(encrypted);
    });
  });
}

/** The host that the proxy is given: the name, or an address already looked up. */
async function targetOf({ host, secure, lookup }: Destination): Promise<string> {
  if (lookup === undefined || isIP(host) !== 0) return host;
  const found = await new Promise<string | null>((resolve, reject) => {
    lookup(host, { all: false }, (error, address) => {
      if (error === null) resolve(typeof address === 'string' ? address : (address[0]?.address ?? null));
      // Behind some proxies DNS does not work; the certificate still proves the host.
      else if (secure && UNKNOWN_HERE.includes(error.code ?? '')) resolve(null);
      else reject(error);
    });
  });
  return secure || found === null ? host : found;
}
