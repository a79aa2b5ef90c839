/**
 * A way to the gateway for the library, which always connects straight to the address that it is given: where that would
 * have to go through a proxy, it is given one on this machine, and from there the connection is passed on. Nobody else knows
 * the path.
 */
import { createServer, request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { describe } from '../../core/errors.js';
import type { Outward } from '../../core/network.js';

export interface Relay {
  /** As the library is to be told: it adds a query to it. */
  url: string;
  /** Why the last connection was not passed on; null where nothing was wrong. */
  fault(): string | null;
  close(): void;
}

/** `gateway`: `wss://…`. `secret`: nobody can guess it. */
export async function openRelay(gateway: string, secret: string, outward: Outward): Promise<Relay> {
  const open = new Set<Duplex>();
  let fault: string | null = null;
  const server = createServer((_, response) => void response.writeHead(404).end());
  server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    hold(socket);
    const [path, query] = (request.url ?? '').split('?');
    if (path !== `/${secret}/`) return void socket.destroy();
    passOn(request, socket, head, query ?? '');
  });

  /** One end that is lost ends the other. */
  function hold(socket: Duplex): void {
    open.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => open.delete(socket));
  }

  function passOn(request: IncomingMessage, socket: Socket, head: Buffer, query: string): void {
    const url = new URL(gateway);
    const secure = url.protocol === 'wss:';
    url.protocol = secure ? 'https:' : 'http:';
    url.search = query;
    const asked = (secure ? httpsRequest : httpRequest)(url, {
      agent: outward.agent(secure),
      headers: { ...request.headers, host: url.host },
    });
    const lost = (why: string) => {
      fault = why;
      socket.destroy();
    };
    socket.on('close', () => asked.destroy());
    asked.on('error', (error) => lost(describe(error)));
    asked.on('response', ({ statusCode }) => lost(`it answers with HTTP ${statusCode}`));
    asked.on('upgrade', (response, there, first) => {
      fault = null;
      hold(there);
      socket.write(
        ['HTTP/1.1 101 Switching Protocols', ...headerLines(response.rawHeaders), '', ''].join('\r\n'),
      );
      there.unshift(first);
      socket.unshift(head);
      there.pipe(socket).pipe(there);
      there.on('close', () => socket.destroy());
      socket.on('close', () => there.destroy());
    });
    asked.end();
  }

  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `ws://127.0.0.1:${port}/${secret}/`,
    fault: () => fault,
    close() {
      server.close();
      for (const socket of open) socket.destroy();
    },
  };
}

function headerLines(raw: string[]): string[] {
  return raw.flatMap((name, n) => (n % 2 === 0 ? [`${name}: ${raw[n + 1]}`] : []));
}
