/** What the fake servers have in common: a free port on 127.0.0.1, its connections, and waiting for requests. */
import type { IncomingMessage, Server } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Listening {
  /** `http://127.0.0.1:PORT` */
  url: string;
  /** Sockets that were opened. */
  connections(): number;
  close(): Promise<void>;
}

/** 0 takes a free port. */
export async function listen(server: Server, port = 0): Promise<Listening> {
  let connections = 0;
  server.on('connection', () => {
    connections += 1;
  });
  // Longer than any test, so that a reused connection is never closed just when it is used.
  server.keepAliveTimeout = 120_000;
  await listenAt(server, port);
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    connections: () => connections,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/**
 * Ends the connection of a request that could not be served. A client that hangs up while it asks is no concern of the
 * others; anything else is a fault of the fake, which the client would take for one of the network.
 */
export function breakOff({ socket, method, url }: IncomingMessage): (error: unknown) => void {
  return (error) => {
    const cause = error instanceof Error ? error.stack : error;
    if (!socket.destroyed) process.stderr.write(`A fake server failed at ${method} ${url}: ${cause}\n`);
    socket.destroy();
  };
}

/** For a server that goes away and comes back at the same port. */
export function listenAt(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', () => {
      server.off('error', reject);
      resolve();
    });
  });
}

export interface Counter {
  count(): number;
  /** One more; its number, from 0. */
  next(): number;
  /** Resolves when there were that many. */
  reached(count: number): Promise<void>;
}

export function counter(): Counter {
  let count = 0;
  let waiting: { count: number; seen(): void }[] = [];
  return {
    count: () => count,
    next() {
      count += 1;
      for (const one of waiting) if (one.count <= count) one.seen();
      waiting = waiting.filter((one) => one.count > count);
      return count - 1;
    },
    reached: (wanted) =>
      new Promise((resolve) => {
        if (count >= wanted) resolve();
        else waiting.push({ count: wanted, seen: resolve });
      }),
  };
}
