/** A proxy between the gateway and an HTTP server by other authors that records requests and answers. */
import { createServer, type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Exchange {
  method: string;
  /** Including the query. */
  path: string;
  asked: Buffer;
  status: number;
  answered: Buffer;
  /** Time at which the answer was complete, ms. */
  at: number;
}

export interface Passthrough {
  /** `http://127.0.0.1:PORT` */
  url: string;
  close(): Promise<void>;
}

/** Calls back when an exchange begins (`begun`), and when its answer is complete, before the gateway has it. */
export async function passThrough(
  target: string,
  note: (exchange: Exchange) => void,
  begun: (path: string) => void = () => {},
): Promise<Passthrough> {
  const server = createServer(async (incoming, outgoing) => {
    const { method = 'GET', url: path = '/' } = incoming;
    const asked = await bytesOf(incoming);
    begun(path);
    const headers = { ...incoming.headers, host: new URL(target).host };
    const forwarded = request(`${target}${path}`, { method, headers });
    forwarded.on('error', () => outgoing.destroy());
    forwarded.on('response', async (response) => {
      const answered = await bytesOf(response);
      const status = response.statusCode ?? 502;
      note({ method, path, asked, status, answered, at: Date.now() });
      outgoing.writeHead(status, { ...response.headers, 'content-length': answered.length });
      outgoing.end(answered);
    });
    outgoing.on('close', () => forwarded.destroy());
    forwarded.end(asked);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

async function bytesOf(stream: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks);
}
