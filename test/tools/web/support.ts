/** `web_fetch` against servers on loopback, over a network of the test's own making. */

import type { LookupAddress } from 'node:dns';
import { createServer as createHttpServer, type RequestListener } from 'node:http';
import {
  type AddressInfo,
  createServer,
  isIPv6,
  connect as realConnect,
  type Server,
  type Socket,
} from 'node:net';
import { onTestFinished } from 'vitest';
import { systemClock } from '../../../src/core/clock.js';
import type { AnyTool, ToolContext, ToolResult } from '../../../src/core/tool.js';
import { type Network, type PageDestination, systemNetwork } from '../../../src/tools/web/request.js';
import { createPageReader, type WebFetchParts, webFetch } from '../../../src/tools/web/web-fetch.js';
import { askerWho } from '../../harness/asker.js';
import { quietLog } from '../../harness/quiet.js';
import { straight } from '../../harness/straight.js';

/** The compiled thread. */
export const PAGE_WORKER = new URL('../../../dist/page-worker.js', import.meta.url);

export const reader = createPageReader(systemClock, PAGE_WORKER);

export interface Site {
  port: number;
  /** `127.0.0.1:PORT` */
  host: string;
  url: string;
  /** The paths that were asked for. */
  asked: string[];
  connections(): number;
}

async function opened(server: Server, asked: string[]): Promise<Site> {
  let connections = 0;
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    connections++;
    sockets.add(socket);
    socket.on('error', () => {});
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  const { port } = server.address() as AddressInfo;
  const host = `127.0.0.1:${port}`;
  return { port, host, url: `http://${host}`, asked, connections: () => connections };
}

/** An HTTP server. */
export function serve(answer: RequestListener): Promise<Site> {
  const asked: string[] = [];
  const server = createHttpServer((request, response) => {
    asked.push(request.url ?? '');
    answer(request, response);
  });
  return opened(server, asked);
}

/** A server that says whatever it likes to whoever connects. */
export function serveRaw(answer: (socket: Socket) => void): Promise<Site> {
  return opened(
    createServer((socket) => {
      socket.once('data', () => answer(socket));
    }),
    [],
  );
}

export const page = (type: string, body: string | Buffer, status = 200): RequestListener => {
  return (_, response) => void response.writeHead(status, { 'content-type': type }).end(body);
};

export const sendTo = (location: string, status = 302): RequestListener => {
  return (_, response) => void response.writeHead(status, { location }).end();
};

/**
 * A network with names of its own. Connections to what is public in it end at a server on loopback; every connection is
 * noted, by the addresses that were given for it.
 */
export function networkOf(
  names: Record<string, string[] | (() => string[])>,
  site?: Pick<Site, 'port'>,
): Network & { connected: PageDestination[]; looked: string[] } {
  const connected: PageDestination[] = [];
  const looked: string[] = [];
  return {
    connected,
    looked,
    own: () => [],
    async addressesOf(name): Promise<LookupAddress[]> {
      looked.push(name);
      const found = names[name] ?? [];
      const addresses = typeof found === 'function' ? found() : found;
      return addresses.map((address) => ({ address, family: isIPv6(address) ? 6 : 4 }));
    },
    async connect(to) {
      connected.push(to);
      return realConnect({ host: '127.0.0.1', port: site?.port ?? 9 });
    },
  };
}

export interface Fetching extends Partial<Omit<WebFetchParts, 'settings'>> {
  settings?: Partial<WebFetchParts['settings']>;
  context?: Partial<ToolContext>;
}

export function toolWith({ settings, network, ...rest }: Omit<Fetching, 'context'> = {}) {
  return webFetch({
    ...{ network: network ?? systemNetwork(straight), reader, clock: systemClock, ...rest },
    settings: { timeoutSeconds: 20, maxBytes: 2_000_000, allowHosts: [], ...settings },
  });
}

export async function fetchPage(url: string, { context, ...parts }: Fetching = {}): Promise<ToolResult> {
  const tool: AnyTool = toolWith(parts);
  const result = await tool.execute({ url } as never, { ...contextOf(), ...context });
  if ('waitsFor' in result) throw new Error('it waits for something');
  return result;
}

/** From a server that the operator allowed. */
export function fetchFrom(site: Site, path = '/', parts: Fetching = {}): Promise<ToolResult> {
  return fetchPage(`${site.url}${path}`, {
    ...parts,
    settings: { allowHosts: [site.host], ...parts.settings },
  });
}

export function contextOf(): ToolContext {
  return {
    authorisation: {
      ...{ chatId: 'test_1', personaId: 'default', senderId: 'test_7', channel: 'test', controlChats: [] },
      asker: askerWho(),
    },
    ...{ room: 'test_1', turnId: 'turn-1', callId: 'call-1', signal: new AbortController().signal },
    ...{ now: 0, timezone: 'UTC', log: quietLog, seen: new Map() },
    cause: { kind: 'turn', personaId: 'default', turnId: 'turn-1' },
  };
}
