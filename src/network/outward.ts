/** All outgoing connections: through the proxy that the rules choose, or direct. */
import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { isIP, type LookupFunction, connect as plainConnect, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type ConnectionOptions, connect as secureConnect } from 'node:tls';
import type { Dispatcher } from 'undici';
import { type Destination, type LookupFor, MOST_DOCUMENT_BYTES, type Outward } from '../core/network.js';
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

  /** For an agent; with TLS, resolves after the handshake. */
  async function made(secure: boolean, wanted: Wanted, raw: Promise<Socket>): Promise<Socket> {
    const socket = await raw;
    // Node does the same on its own sockets: small writes are sent at once.
    socket.setNoDelay(true);
    return secure ? encrypted(socket, wanted) : socket;
  }

  const serverOf = (secure: boolean, { host, port, lookup }: Wanted): Destination => ({
    host: (host ?? 'localhost').replace(/^\[|\]$/g, ''),
    secure,
    lookup,
    port: Number(port ?? (secure ? 443 : 80)),
  });

  class PlainAgent extends HttpAgent {
    override createConnection(wanted: Wanted, done: Made): Duplex | null | undefined {
      const raw = throughProxy(serverOf(false, wanted));
      if (raw === null) return super.createConnection(wanted as never, done as never);
      made(false, wanted, raw).then((socket) => done(null, socket), done);
      return undefined;
    }
  }

  class SecureAgent extends HttpsAgent {
    override createConnection(wanted: Wanted, done: Made): Duplex | null | undefined {
      const raw = throughProxy(serverOf(true, wanted));
      if (raw === null) return super.createConnection(wanted as never, done as never);
      made(true, wanted, raw).then((socket) => done(null, socket), done);
      return undefined;
    }
  }

  async function connect(to: Destination, signal: AbortSignal): Promise<Socket> {
    const { host, port, secure, lookup } = to;
    const raw = throughProxy(to, signal);
    const wanted = isIP(host) === 0 ? { host, servername: host } : { host };
    if (raw !== null) return made(secure, wanted, raw);
    const there = { ...wanted, port, ...(lookup === undefined ? {} : { lookup }) };
    return secure ? secureConnect(there) : plainConnect(there);
  }

  return {
    agent: (secure, { idleMs, lookup } = {}) =>
      new (secure ? SecureAgent : PlainAgent)({
        ...(idleMs === undefined ? { keepAlive: false } : { keepAlive: true, timeout: idleMs }),
        ...(lookup === undefined ? {} : { lookup }),
      }),
    connect,
    fetch: ({ lookupFor }: { lookupFor?: LookupFor } = {}) =>
      createFetch(async (to, signal) => {
        const lookup = await lookupFor?.(to);
        return connect({ ...to, lookup }, signal);
      }),
    dispatcher: createDispatcher(connect, { maxResponseSize: MOST_DOCUMENT_BYTES }),
    proxyFor(to) {
      const proxy = proxyFor(proxies, to);
      return proxy === null ? null : shownProxy(proxy);
    },
  };
}

function encrypted(socket: Socket, wanted: Wanted): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const { servername, ...options } = wanted;
    // SNI allows no IP addresses.
    const named = servername !== undefined && isIP(servername) === 0 ? { servername } : {};
    const secure = secureConnect({ ...options, ...named, socket });
    const failed = (error: Error) => {
      socket.destroy();
      reject(error);
    };
    secure.once('error', failed);
    secure.once('secureConnect', () => {
      secure.off('error', failed);
      resolve(secure);
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

type Connect = (to: Destination, signal: AbortSignal) => Promise<Socket>;
type Done = (error: Error | null, socket: Socket | null) => void;

/** For undici, the library behind Node's `fetch`; loaded on first use. */
function createDispatcher(
  connect: Connect,
  limits: { maxResponseSize?: number; headersTimeout?: number; bodyTimeout?: number },
): () => Promise<Dispatcher> {
  let loading: Promise<Dispatcher> | undefined;
  return () => {
    loading ??= import('undici').then(
      ({ Agent }) =>
        new Agent({
          ...limits,
          connect({ hostname, port, protocol }, done) {
            const secure = protocol === 'https:';
            const host = hostname.replace(/^\[|\]$/g, '');
            const to = { host, secure, port: Number(port || (secure ? 443 : 80)) };
            connect(to, new AbortController().signal).then(
              (socket) => whenOpen(socket, secure, done as Done),
              (error) => done(error, null),
            );
          },
        }),
    );
    return loading;
  };
}

/** Without limits: callers limit size and time themselves. */
function createFetch(connect: Connect): typeof fetch {
  const dispatcher = createDispatcher(connect, { headersTimeout: 0, bodyTimeout: 0 });
  const ask = async (input: unknown, init: unknown) => {
    const { fetch: undiciFetch } = await import('undici');
    return undiciFetch(input as never, { ...(init as object), dispatcher: await dispatcher() });
  };
  return ask as unknown as typeof fetch;
}

/** undici writes immediately, so the socket must be open. */
function whenOpen(socket: Socket, secure: boolean, done: Done): void {
  const failed = (error: Error) => done(error, null);
  const open = () => {
    socket.setNoDelay(true);
    socket.off('error', failed);
    done(null, socket);
  };
  socket.once('error', failed);
  const isOpening = socket.connecting || ('secureConnecting' in socket && socket.secureConnecting === true);
  if (isOpening) socket.once(secure ? 'secureConnect' : 'connect', open);
  else open();
}
