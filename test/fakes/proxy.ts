/**
 * A proxy on loopback that notes whom it was asked for: HTTP with CONNECT and requests in absolute form (RFC 9110, 7.1 and
 * 9.3.6), or SOCKS 5 (RFC 1928, with the login of RFC 1929). It may demand a login.
 */
import { createServer, request as httpRequest } from 'node:http';
import { connect, createServer as createPlainServer, type Server, type Socket } from 'node:net';
import { listenAt } from './http-server.js';

interface ProxyWishes {
  kind?: 'http' | 'socks5';
  /** `user:password`; without it everybody is served. */
  login?: string;
  /** Where a name, `host:port`, leads on loopback; what is not in it is taken for loopback's own. */
  ports?: Record<string, number>;
  /** What every CONNECT is answered with instead. */
  status?: number;
}

export interface FakeProxy {
  /** `127.0.0.1:PORT` */
  host: string;
  /** `host:port` of each connection and request, in order. */
  targets: string[];
  /** Logins that were wrong or missing. */
  refused(): number;
  close(): Promise<void>;
}

export async function startFakeProxy(wishes: ProxyWishes = {}): Promise<FakeProxy> {
  const { kind = 'http', login, ports = {}, status } = wishes;
  const targets: string[] = [];
  const open = new Set<Socket>();
  let refused = 0;

  const hold = (socket: Socket) => {
    open.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => open.delete(socket));
    return socket;
  };
  const join = (one: Socket, other: Socket) => {
    one.pipe(other).pipe(one);
    one.on('close', () => other.destroy());
    other.on('close', () => one.destroy());
  };
  /** Only loopback is ever connected to. */
  const reach = (target: string) =>
    hold(
      connect({
        host: '127.0.0.1',
        port: ports[target] ?? Number(target.slice(target.lastIndexOf(':') + 1)),
      }),
    );
  const isLetIn = (given: string | undefined) => {
    if (login === undefined || given === `Basic ${Buffer.from(login).toString('base64')}`) return true;
    refused += 1;
    return false;
  };

  function http(): Server {
    const server = createServer((asked, answer) => {
      if (!isLetIn(asked.headers['proxy-authorization'])) return void answer.writeHead(407).end();
      const url = new URL(asked.url ?? '', 'http://nowhere.invalid');
      targets.push(`${url.hostname}:${url.port || 80}`);
      const { port } = url;
      const on = httpRequest(
        {
          host: '127.0.0.1',
          port: ports[url.host] ?? port,
          method: asked.method,
          path: url.pathname + url.search,
          headers: asked.headers,
        },
        (response) => {
          answer.writeHead(response.statusCode ?? 502, response.headers);
          response.pipe(answer);
        },
      );
      on.on('error', () => answer.destroy());
      asked.pipe(on);
    });
    server.on('connect', ({ url = '', headers }, socket: Socket, head) => {
      hold(socket);
      if (!isLetIn(headers['proxy-authorization'])) {
        socket.end(
          'HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm="proxy"\r\n\r\n',
        );
        return;
      }
      targets.push(url);
      if (status !== undefined) return void socket.end(`HTTP/1.1 ${status} No\r\n\r\n`);
      const there = reach(url);
      there.on('connect', () => {
        socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
        there.write(head);
        join(socket, there);
      });
    });
    return server;
  }

  function socks(): Server {
    return createPlainServer(async (socket) => {
      hold(socket);
      const read = async (bytes: number): Promise<Buffer> => {
        for (;;) {
          const found: Buffer | null = bytes === 0 ? Buffer.alloc(0) : socket.read(bytes);
          if (found !== null) return found;
          await new Promise((resolve) => socket.once('readable', resolve));
        }
      };
      const word = async () => (await read((await read(1))[0] ?? 0)).toString();
      await read(1);
      const ways = [...(await read((await read(1))[0] ?? 0))];
      const wanted = login === undefined ? 0 : 2;
      if (!ways.includes(wanted)) {
        refused += 1;
        return void socket.end(Buffer.from([5, 255]));
      }
      socket.write(Buffer.from([5, wanted]));
      if (login !== undefined) {
        await read(1);
        const isRight = `${await word()}:${await word()}` === login;
        socket.write(Buffer.from([1, isRight ? 0 : 1]));
        if (!isRight) {
          refused += 1;
          return void socket.end();
        }
      }
      const [, , , form] = await read(4);
      const host =
        form === 3
          ? await word()
          : form === 1
            ? [...(await read(4))].join('.')
            : `[${(await read(16)).toString('hex')}]`;
      const target = `${host}:${(await read(2)).readUInt16BE()}`;
      targets.push(target);
      if (status !== undefined) return void socket.end(Buffer.from([5, status, 0, 1, 0, 0, 0, 0, 0, 0]));
      const there = reach(target);
      there.on('connect', () => {
        socket.write(Buffer.from([5, 0, 0, 1, 127, 0, 0, 1, 0, 0]));
        join(socket, there);
      });
    });
  }

  const server = kind === 'http' ? http() : socks();
  server.on('connection', hold);
  await listenAt(server as never, 0);
  const { port } = server.address() as { port: number };
  return {
    host: `127.0.0.1:${port}`,
    targets,
    refused: () => refused,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of open) socket.destroy();
      }),
  };
}
