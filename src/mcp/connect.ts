/**
 * One connection to one server, through the official client: which revision of the protocol it speaks is negotiated, its
 * tools are listed, called and watched. Loaded only where a server is configured, with the client's library.
 */
import {
  Client,
  ClientCredentialsProvider,
  ProtocolError,
  ProtocolErrorCode,
  StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client';
import * as z from 'zod';
import type { Clock } from '../core/clock.js';
import { describe } from '../core/errors.js';
import type { Log } from '../core/log.js';
import type { LookupFor, Outward } from '../core/outward.js';
import { createBoundedFetch } from './bounded-fetch.js';
import { createProcessTransport, type Processes } from './process-transport.js';
import { MOST_LISTED, MOST_PAGES, type RemoteSettings, type ServerSettings } from './settings.js';
import { oneLine } from './words.js';

export interface Connection {
  /** As in `2025-11-25`. */
  revision: string;
  /** As the server lists them, unchecked; as many as are looked at. */
  listTools(signal: AbortSignal): Promise<unknown[]>;
  /** Throws whatever the client throws; `failure.ts` says what that means. */
  call(
    tool: CalledTool,
    given: Record<string, unknown>,
    signal: AbortSignal,
    timeoutMs: number,
  ): Promise<unknown>;
  /** Resolves when the server says that its tools are others now; a new promise after each. */
  changed(): Promise<void>;
  /** Resolves when it is over, whoever ended it. */
  closed: Promise<void>;
  close(): Promise<void>;
}

export interface CalledTool {
  own: string;
  inputSchema: Record<string, unknown>;
}

export interface ConnectParts {
  version: string;
  outward: Outward;
  /** Where a server leads us beside its own address. */
  reach: LookupFor;
  clock: Clock;
  log: Log;
  processes: Processes;
  /** Cuts secrets out of a text: before it is cut, so that no half of one stays. */
  redact(text: string): string;
}

/** A package that is fetched first takes its time. */
const CONNECT_MS = 60_000;
const LIST_MS = 30_000;
/** An old server may not answer what it does not know; a remote one that is silent is away. */
const PROBE_MS = { process: 5_000, remote: 20_000 };
const CLOSE_MS = 1_000;
const LISTEN_AGAIN_MS = 30_000;

/** What it lists is checked one by one: a tool that is wrong does not spoil the others. */
const page = z.looseObject({ tools: z.array(z.unknown()), nextCursor: z.string().optional() });

export async function connect(
  settings: ServerSettings,
  parts: ConnectParts,
  signal: AbortSignal,
): Promise<Connection> {
  try {
    return await connectOnce(settings, parts, signal, false);
  } catch (error) {
    // Some old servers end when they are asked anything before `initialize`.
    const { code } = error as { code?: unknown };
    if (!('command' in settings) || code !== 'ERA_NEGOTIATION_FAILED' || signal.aborted) throw error;
    return await connectOnce(settings, parts, signal, true);
  }
}

async function connectOnce(
  settings: ServerSettings,
  { version, outward, reach, clock, log, processes, redact }: ConnectParts,
  signal: AbortSignal,
  isOld: boolean,
): Promise<Connection> {
  signal.throwIfAborted();
  const isProcess = 'command' in settings;
  const client = new Client(
    { name: 'coterie', version },
    {
      capabilities: {},
      // What a server wants of us in the middle of a call, it does not get.
      inputRequired: { autoFulfill: false },
      versionNegotiation: {
        mode: 'auto',
        probe: { timeoutMs: isProcess ? PROBE_MS.process : PROBE_MS.remote },
      },
    },
  );
  const refused = new Set<string>();
  client.fallbackRequestHandler = async ({ method }) => {
    const asked = oneLine(method, 60);
    if (refused.size < 20 && !refused.has(asked)) {
      refused.add(asked);
      log.warn({ mcp: settings.name, asked }, 'a server of tools asked for something that it does not get');
    }
    throw new ProtocolError(ProtocolErrorCode.MethodNotFound, 'Not offered here');
  };
  const troubles = new Set<string>();
  client.onerror = (error) => {
    const why = oneLine(describe(error), 200);
    if (troubles.size >= 20 || troubles.has(why)) return;
    troubles.add(why);
    log.debug({ mcp: settings.name, why }, 'the connection to a server of tools had trouble');
  };

  const local = isProcess ? createProcessTransport(settings, { clock, log, processes, redact }) : null;
  const remote = isProcess ? null : remoteTransport(settings, { clock, outward, reach });
  const transport = local ?? remote;
  if (transport === null) throw new Error('unreachable');
  let end = () => {};
  const closed = new Promise<void>((resolve) => {
    end = resolve;
  });
  client.onclose = () => end();

  let tellChange = () => {};
  let change = Promise.resolve();
  const nextChange = () => {
    change = new Promise((resolve) => {
      tellChange = resolve;
    });
  };
  nextChange();
  client.setNotificationHandler('notifications/tools/list_changed', () => tellChange());

  const over = new AbortController();
  const close = async () => {
    over.abort();
    if (remote) await withdraw(remote, clock);
    await transport.close();
    end();
  };
  const abort = () => void close();
  signal.addEventListener('abort', abort, { once: true });
  try {
    await client.connect(transport, {
      ...{ timeout: CONNECT_MS, signal },
      ...(isOld && { prior: { kind: 'legacy' as const } }),
    });
  } catch (error) {
    await close();
    throw withLastWords(error, local?.lastWords() ?? null);
  } finally {
    signal.removeEventListener('abort', abort);
  }
  if (client.getProtocolEra() === 'modern' && client.getServerCapabilities()?.tools?.listChanged) {
    void listen(over.signal);
  }

  /** In the newer revision one has to subscribe; whoever missed something while that was broken lists again. */
  async function listen(until: AbortSignal): Promise<void> {
    for (let n = 0; !until.aborted; n += 1) {
      try {
        const subscription = await client.listen(
          { toolsListChanged: true },
          { signal: until, timeout: LIST_MS },
        );
        if (n > 0) tellChange();
        await subscription.closed;
      } catch (error) {
        if (until.aborted) return;
        client.onerror?.(error instanceof Error ? error : new Error(String(error)));
      }
      await clock.sleep(LISTEN_AGAIN_MS, until);
    }
  }

  return {
    revision: client.getNegotiatedProtocolVersion() ?? 'unknown',
    async listTools(until) {
      if (client.getServerCapabilities()?.tools === undefined) return [];
      const tools: unknown[] = [];
      let cursor: string | undefined;
      for (let pages = 0; pages < MOST_PAGES && tools.length < MOST_LISTED; pages += 1) {
        const request = { method: 'tools/list', params: cursor === undefined ? {} : { cursor } };
        const found = await client.request(request, page, { signal: until, timeout: LIST_MS });
        tools.push(...found.tools.slice(0, MOST_LISTED - tools.length));
        cursor = found.nextCursor;
        if (cursor === undefined) break;
      }
      return tools;
    },
    call: ({ own, inputSchema }, given, until, timeoutMs) =>
      client.callTool(
        { name: own, arguments: given },
        {
          ...{ signal: until, timeout: timeoutMs },
          // Without the schema of its results: what a server says of itself is checked by nobody.
          toolDefinition: { name: own, inputSchema: { ...inputSchema, type: 'object' } },
        },
      ),
    async changed() {
      await change;
      nextChange();
    },
    closed,
    close,
  };
}

/** What the client says of it (`Connection closed`) helps nobody to mend it. */
function withLastWords(error: unknown, words: string | null): unknown {
  if (words === null) return error;
  const { code } = error as { code?: unknown };
  return Object.assign(new Error(`${describe(error)}; ${words}`), { code });
}

/** A server may keep something for this session; one that does not answer is not waited for. */
async function withdraw(remote: StreamableHTTPClientTransport, clock: Clock): Promise<void> {
  const patience = new AbortController();
  const told = remote.terminateSession().catch(() => {});
  await Promise.race([told, clock.sleep(CLOSE_MS, patience.signal)]);
  patience.abort();
}

function remoteTransport(
  { url, headers, oauth }: RemoteSettings,
  { clock, outward, reach }: Pick<ConnectParts, 'clock' | 'outward' | 'reach'>,
): StreamableHTTPClientTransport {
  // Its own address, and that of the issuer, are the operator's words. Whatever else it names (in a redirect, in metadata for
  // the login) is somebody else's.
  const configured = [url, ...(oauth === undefined ? [] : [oauth.issuer])].map(serverIn);
  const lookupFor: LookupFor = async (to) =>
    configured.includes(`${to.host}:${to.port}`) ? undefined : reach(to);
  return new StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers: { ...headers } },
    fetch: createBoundedFetch(outward.fetch({ lookupFor }), clock),
    ...(oauth && { authProvider: loginOf(oauth) }),
  });
}

function serverIn(address: string): string {
  const { protocol, hostname, port } = new URL(address);
  return `${hostname.replace(/^\[|\]$/g, '')}:${port || (protocol === 'https:' ? 443 : 80)}`;
}

/** Its secret goes to the issuer that the operator named and to nobody else, whomever the server names. */
function loginOf({
  issuer,
  scope,
  ...client
}: NonNullable<RemoteSettings['oauth']>): ClientCredentialsProvider {
  return new ClientCredentialsProvider({
    ...{ ...client, expectedIssuer: issuer },
    ...(scope !== undefined && { scope }),
  });
}
