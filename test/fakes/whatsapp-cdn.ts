/** WhatsApp's media servers on loopback: encrypted files go up and come down again, over https. */

import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { makeCertificates } from './certificate.js';
import { breakOff } from './http-server.js';
import type { FakeCdn, MediaFault } from './whatsapp-words.js';

export const MEDIA_HOSTS = ['media-fra3-1.cdn.whatsapp.net', 'mmg.whatsapp.net'] as const;

export interface Cdn extends FakeCdn {
  /** Puts a file there; its path. */
  put(bytes: Buffer): string;
  /** What lies at a path, whatever its query. */
  at(path: string): Buffer | null;
  close(): Promise<void>;
}

/** `look` is called after every request. */
export async function startCdn(look: () => void): Promise<Cdn> {
  const { ca, cert, key } = makeCertificates([...MEDIA_HOSTS]);
  const files = new Map<string, Buffer>();
  const requests: FakeCdn['requests'] = [];
  let faults: { what: 'download' | 'upload'; fault: MediaFault; times: number }[] = [];
  let next = 1;

  function put(bytes: Buffer): string {
    const path = `/v/t62.7118-24/${next++}_n.enc`;
    files.set(path, bytes);
    return path;
  }

  function takeFault(what: 'download' | 'upload'): MediaFault | null {
    const found = faults.find((each) => each.what === what && each.times > 0);
    if (found === undefined) return null;
    found.times -= 1;
    faults = faults.filter((each) => each.times > 0);
    return found.fault;
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = pathOf(request.url ?? '');
    const method = request.method === 'POST' ? 'POST' : 'GET';
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    requests.push({ method, path });
    const fault = takeFault(method === 'POST' ? 'upload' : 'download');
    if (fault === 'stall') return;
    if (typeof fault === 'number') {
      response.writeHead(fault).end();
    } else if (method === 'POST') {
      if (fault === null) uploaded(put(Buffer.concat(chunks)), response);
      else response.writeHead(200).end('<html>not an answer</html>');
    } else {
      const bytes = files.get(path);
      if (bytes === undefined) response.writeHead(404).end();
      else download(bytes, fault, response);
    }
  }

  const server: Server = createServer({ cert, key }, (request, response) => {
    serve(request, response).catch(breakOff(request)).finally(look);
  });
  server.keepAliveTimeout = 120_000;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });

  return {
    port: (server.address() as AddressInfo).port,
    ca,
    requests,
    put,
    at: (path) => files.get(pathOf(path)) ?? null,
    fail(what, fault, times = 1) {
      faults.push({ what, fault, times });
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function pathOf(address: string): string {
  return new URL(address, 'https://mmg.whatsapp.net').pathname;
}

function uploaded(path: string, response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ url: `https://mmg.whatsapp.net${path}?oh=1`, direct_path: `${path}?oh=1` }));
}

function download(bytes: Buffer, fault: 'garbage' | 'half' | null, response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'application/octet-stream', 'content-length': bytes.length });
  if (fault === 'half') {
    response.write(bytes.subarray(0, bytes.length >> 1), () => response.destroy());
  } else {
    response.end(fault === 'garbage' ? Buffer.alloc(bytes.length, 7) : bytes);
  }
}
