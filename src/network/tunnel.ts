/** A connection through a proxy: HTTP `CONNECT` (RFC 9110, 9.3.6) or SOCKS 5 (RFC 1928 and 1929). The proxy looks up names. */
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { isIP, connect as plainConnect, type Socket } from 'node:net';
import { ProxyRefusal } from '../core/network.js';
import { type NamedProxy, shownProxy } from './rules.js';

/** Time-out for connecting, in ms. */
const PATIENCE_MS = 30_000;

/** Rejects with ProxyRefusal, also if the proxy cannot be reached. */
export async function tunnel(
  proxy: NamedProxy,
  { host, port }: { host: string; port: number },
  signal: AbortSignal | undefined,
): Promise<Socket> {
  signal?.throwIfAborted();
  try {
    const open = proxy.kind === 'socks5' ? throughSocks : throughHttp;
    return await open(proxy, host, port, signal);
  } catch (error) {
    if (signal?.aborted || error instanceof ProxyRefusal) throw error;
    const why = error instanceof AggregateError ? (error.errors[0] as Error) : (error as Error);
    throw refusal(proxy, `cannot be used: ${why.message}`);
  }
}

function throughHttp(
  proxy: NamedProxy,
  host: string,
  port: number,
  signal: AbortSignal | undefined,
): Promise<Socket> {
  const target = `${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
  const login = `${proxy.user}:${proxy.password}`;
  return new Promise((resolve, reject) => {
    const asked = (proxy.kind === 'https' ? httpsRequest : httpRequest)({
      host: proxy.host,
      port: proxy.port,
      agent: false,
      method: 'CONNECT',
      path: target,
      headers: {
        host: target,
        ...(login !== ':' && { 'proxy-authorization': `Basic ${Buffer.from(login).toString('base64')}` }),
      },
      signal,
    });
    asked.setTimeout(PATIENCE_MS, () => asked.destroy(new Error(`no answer within ${PATIENCE_MS / 1000} s`)));
    asked.on('error', reject);
    asked.on('connect', ({ statusCode = 0 }, socket: Socket, head) => {
      if (statusCode < 200 || statusCode > 299) {
        socket.destroy();
        const hint = statusCode === 407 ? ': it wants a user and a password, or other ones' : '';
        return reject(refusal(proxy, `refuses ${target} with HTTP ${statusCode}${hint}`));
      }
      socket.setTimeout(0);
      // The server's first bytes may have come with the proxy's answer.
      if (head.length > 0) socket.unshift(head);
      resolve(socket);
    });
    asked.end();
  });
}

function refusal(proxy: NamedProxy, why: string): ProxyRefusal {
  return new ProxyRefusal(`the proxy ${shownProxy(proxy)} (${proxy.source}) ${why}`);
}

async function throughSocks(
  proxy: NamedProxy,
  host: string,
  port: number,
  signal: AbortSignal | undefined,
): Promise<Socket> {
  const socket = plainConnect({ host: proxy.host, port: proxy.port, signal });
  const late = () => socket.destroy(new Error(`no answer within ${PATIENCE_MS / 1000} s`));
  socket.setTimeout(PATIENCE_MS, late);
  const { read, release } = reader(socket);
  try {
    const hasLogin = proxy.user !== '' || proxy.password !== '';
    socket.write(Buffer.from(hasLogin ? [5, 2, 0, 2] : [5, 1, 0]));
    const [version, way] = await read(2);
    if (version !== 5) throw new Error('it does not speak SOCKS 5');
    if (way === 2 && hasLogin) {
      socket.write(Buffer.concat([Buffer.from([1]), counted(proxy.user), counted(proxy.password)]));
      const [, isWrong] = await read(2);
      if (isWrong !== 0) throw new Error('it refuses the user and the password');
    } else if (way !== 0) throw new Error('it wants a login of another kind, or one at all');
    socket.write(
      Buffer.concat([Buffer.from([5, 1, 0]), addressBytes(host), Buffer.from([port >> 8, port & 255])]),
    );
    const [, answer = 255, , kind = 0] = await read(4);
    if (answer !== 0)
      throw new Error(`it refuses ${host}:${port}: ${SOCKS_ANSWERS[answer] ?? `answer ${answer}`}`);
    // The proxy's own outgoing address; unused.
    const length = kind === 1 ? 4 : kind === 4 ? 16 : ((await read(1))[0] ?? 0);
    await read(length + 2);
    // The new owner reads the socket with its own listeners.
    release();
    socket.setTimeout(0, late);
    return socket;
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

const SOCKS_ANSWERS: Record<number, string> = {
  1: 'it failed',
  2: 'its rules do not allow that',
  3: 'the network cannot be reached',
  4: 'the host cannot be reached',
  5: 'the connection was refused',
  6: 'it took too long',
};

function counted(text: string): Buffer {
  const bytes = Buffer.from(text);
  return Buffer.concat([Buffer.from([bytes.length]), bytes]);
}

function addressBytes(host: string): Buffer {
  const family = isIP(host);
  if (family === 0) return Buffer.concat([Buffer.from([3]), counted(host.slice(0, 255))]);
  if (family === 4) return Buffer.from([1, ...host.split('.').map(Number)]);
  const { hostname } = new URL(`http://[${host}]`);
  const [head = '', tail] = hostname.slice(1, -1).split('::');
  const groups = (part: string | undefined) => (part ? part.split(':') : []);
  const [before, after] = [groups(head), groups(tail)];
  const all = [...before, ...new Array<string>(8 - before.length - after.length).fill('0'), ...after];
  return Buffer.from([
    4,
    ...all.flatMap((group) => [Number.parseInt(group, 16) >> 8, Number.parseInt(group, 16) & 255]),
  ]);
}

/** Reads exactly as many bytes as asked for and leaves the rest in the socket. */
function reader(socket: Socket) {
  let failed: Error | null = null;
  let wake = () => {};
  const onReadable = () => wake();
  const onError = (error: Error) => {
    failed = error;
    wake();
  };
  const onEnd = () => onError(failed ?? new Error('it closed the connection'));
  socket.on('readable', onReadable).on('error', onError).on('end', onEnd);
  return {
    async read(bytes: number): Promise<Buffer> {
      for (;;) {
        if (failed !== null) throw failed;
        const found: unknown = bytes === 0 ? Buffer.alloc(0) : socket.read(bytes);
        if (found instanceof Buffer) return found;
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
    release: () => void socket.off('readable', onReadable).off('error', onError).off('end', onEnd),
  };
}
