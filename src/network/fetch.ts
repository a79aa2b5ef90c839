/**
 * `fetch`, and what its library calls a dispatcher, over connections of our own making. The library is the one that Node's
 * own `fetch` is made of, and that Discord's brings along; it is loaded when it is used.
 */
import type { Socket } from 'node:net';
import type { Dispatcher } from 'undici';
import type { Destination } from '../core/network.js';

type Connect = (to: Destination, signal: AbortSignal) => Promise<Socket>;
type Done = (error: Error | null, socket: Socket | null) => void;

/** `mostBytes`: of an answer; -1: any number, and whoever reads it counts. */
export function createDispatcher(connect: Connect, mostBytes: number): () => Promise<Dispatcher> {
  let loading: Promise<Dispatcher> | undefined;
  return () => {
    loading ??= import('undici').then(
      ({ Agent }) =>
        new Agent({
          maxResponseSize: mostBytes,
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

export function createFetch(connect: Connect): typeof fetch {
  const dispatcher = createDispatcher(connect, -1);
  const ask = async (input: unknown, init: unknown) => {
    const { fetch: undiciFetch } = await import('undici');
    return undiciFetch(input as never, { ...(init as object), dispatcher: await dispatcher() });
  };
  return ask as unknown as typeof fetch;
}

/** The library writes at once. */
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
