/**
 * A wire to a server on loopback that may be held, slowed, cut or taken away: TCP from a port of its own to the server's.
 * A held one takes connections and bytes and passes nothing on, as a network does that loses every packet.
 */
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { listenAt } from '../fakes/http-server.js';

export interface Wire {
  port: number;
  /** Nothing is passed on until `heal`. */
  hold(): void;
  /** Every piece takes so long, in both directions. */
  delay(ms: number): void;
  /** Breaks the connections there are; new ones are made. */
  cut(): void;
  /** Breaks them, and listens no more until `heal`. */
  refuse(): void;
  heal(): Promise<void>;
  close(): Promise<void>;
}

/** `note` is given what clients send, piece by piece. */
export async function startWire(target: number, note: (sent: Buffer) => void = () => {}): Promise<Wire> {
  const open = new Set<Socket>();
  let isRefusing = false;
  let delayMs = 0;
  let healed: Promise<void> | null = null;
  let heal = () => {};

  const server = createServer((client) => {
    const there = connect({ host: '127.0.0.1', port: target });
    for (const socket of [client, there]) {
      open.add(socket);
      socket.on('error', () => socket.destroy());
      socket.on('close', () => open.delete(socket));
    }
    client.on('data', note);
    pass(client, there);
    pass(there, client);
  });

  /** In order, whatever happens to the wire meanwhile. */
  function pass(from: Socket, to: Socket): void {
    let last: Promise<unknown> = Promise.resolve();
    const later = (work: () => void) => {
      const ready = [healed, delayMs > 0 ? after(delayMs) : null];
      last = Promise.all([last, ...ready]).then(work);
    };
    from.on('data', (piece) => later(() => to.destroyed || to.write(piece)));
    from.on('close', () => later(() => to.destroy()));
  }

  function cut(): void {
    for (const socket of open) socket.destroy();
  }

  await listenAt(server as never, 0);
  const { port } = server.address() as AddressInfo;
  return {
    port,
    hold() {
      healed ??= new Promise((resolve) => {
        heal = resolve;
      });
    },
    delay(ms) {
      delayMs = ms;
    },
    cut,
    refuse() {
      isRefusing = true;
      server.close();
      cut();
    },
    async heal() {
      delayMs = 0;
      healed = null;
      heal();
      if (isRefusing) await listenAt(server as never, port);
      isRefusing = false;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        heal();
        cut();
      }),
  };
}

function after(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
