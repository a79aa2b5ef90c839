/** `fetch`, and the dispatcher of libraries that use undici, over our own connections. */
import type { Socket } from 'node:net';
import type { Dispatcher } from 'undici';
import { once } from '../core/concurrency.js';
import type { Destination } from '../core/network.js';

type Connect = (to: Destination, signal: AbortSignal) => Promise<Socket>;

/** Without limits: callers limit size and time themselves. */
export function createFetch(connect: Connect): typeof fetch {
  const dispatcher = createDispatcher(connect, { headersTimeout: 0, bodyTimeout: 0 });
  const ask = async (input: unknown, init: unknown) => {
    const { fetch: undiciFetch } = await import('undici');
    return undiciFetch(input as never, { ...(init as object), dispatcher: await dispatcher() });
  };
  return ask as unknown as typeof fetch;
}

/** undici is loaded on first use. */
export function createDispatcher(
  connect: Connect,
  limits: { maxResponseSize?: number; headersTimeout?: number; bodyTimeout?: number },
): () => Promise<Dispatcher> {
  return once(async () => {
    const { Agent } = await import('undici');
    return new Agent({
      ...limits,
      connect({ hostname, port, protocol }, done) {
        const secure = protocol === 'https:';
        const host = hostname.replace(/^\[|\]$/g, '');
        const to = { host, secure, port: Number(port || (secure ? 443 : 80)) };
        connect(to, new AbortController().signal)
          .then((socket) => opened(socket, secure))
          .then(
            (socket) => done(null, socket as never),
            (error) => done(error, null),
          );
      },
    });
  });
}

/** undici writes immediately, so the socket must be open. */
function opened(socket: Socket, secure: boolean): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const open = () => {
      socket.setNoDelay(true);
      socket.off('error', reject);
      resolve(socket);
    };
    socket.once('error', reject);
    const isOpening = socket.connecting || ('secureConnecting' in socket && socket.secureConnecting === true);
    if (isOpening) socket.once(secure ? 'secureConnect' : 'connect', open);
    else open();
  });
}
