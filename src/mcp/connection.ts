/**
 * One connection to one MCP server, through the official client: it negotiates the revision of the protocol, lists tools,
 * calls them and hears of changes. Loaded only where a server is configured, with the client's library.
 */
import {
  Client,
  ClientCredentialsProvider,
  type FetchLike,
  ProtocolError,
  ProtocolErrorCode,
  StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client';
import * as z from 'zod';
import type { Clock } from '../core/clock.js';
import { describe } from '../core/errors.js';
import type { Log } from '../core/log.js';
import type { LookupFor, Outward } from '../core/network.js';
import { type OfferedTool, offerOf } from './offered.js';
import { oneLine, TOO_LARGE, tooLarge } from './results.js';
import {
  MOST_LISTED,
  MOST_MESSAGE_BYTES,
  MOST_PAGES,
  type RemoteSettings,
  type ServerSettings,
} from './settings.js';
import { createStdioTransport, type Processes } from './stdio.js';

export interface Connection {
  /** As in `2025-11-25`. */
  revision: string;
  /** As the server lists them, unchecked. */
  listTools(signal: AbortSignal): Promise<unknown[]>;
  /** Throws the client's errors; `failureOf` says what they mean. */
  call(
    tool: OfferedTool,
    given: Record<string, unknown>,
    signal: AbortSignal,
    timeoutMs: number,
  ): Promise<unknown>;
  /** Resolves when the server says that its tools changed; a new promise after each. */
  changed(): Promise<void>;
  /** Resolves when the connection is over. */
  closed: Promise<void>;
  close(): Promise<void>;
}

/** What every connection uses of the gateway. */
export interface McpHost {
  version: string;
  outward: Outward;
  /** Checks an address that a server names beside its own. */
  reach: LookupFor;
  clock: Clock;
  log: Log;
  /** Cuts secrets out of a text. */
  redact(text: string): string;
}

/** A package may be downloaded first. */
const CONNECT_MS = 60_000;
const LIST_MS = 30_000;
/** An old server may not answer the probe. */
const PROBE_MS = { process: 5_000, remote: 20_000 };
const CLOSE_MS = 1_000;
const LISTEN_AGAIN_MS = 30_000;
const CHECK_MS = 30_000;
/** Different messages of one connection that go to the log. */
const MOST_LOGGED = 20;
const LINE_END = 0x0a;

/** Tools are checked one by one later, so that a wrong one does not spoil the others. */
const page = z.looseObject({ tools: z.array(z.unknown()), nextCursor: z.string().optional() });

export async function connect(
  settings: ServerSettings,
  host: McpHost,
  processes: Processes,
  signal: AbortSignal,
): Promise<Connection> {
  try {
    return await connectOnce(settings, host, processes, signal, false);
  } catch (error) {
    // Some old servers end when they are asked anything before `initialize`.
    const { code } = error as { code?: unknown };
    if (!('command' in settings) || code !== 'ERA_NEGOTIATION_FAILED' || signal.aborted) throw error;
    return await connectOnce(settings, host, processes, signal, true);
  }
}

async function connectOnce(
  settings: ServerSettings,
  host: McpHost,
  processes: Processes,
  signal: AbortSignal,
  isOld: boolean,
): Promise<Connection> {
  signal.throwIfAborted();
  const { clock, log, redact } = host;
  const client = createClient(settings, host);
  const over = new AbortController();
  const closed = new Promise<void>((resolve) => over.signal.addEventListener('abort', () => resolve()));
  client.onclose = () => over.abort();
  let oversized: Error | null = null;
  const logError = client.onerror;
  client.onerror = (error) => {
    logError?.(error);
    if (oversized !== null || (error as { code?: unknown }).code !== TOO_LARGE) return;
    oversized = error;
    log.warn({ mcp: settings.name, why: describe(error) }, 'MCP connection closed');
    void close();
  };
  const local = 'command' in settings ? createStdioTransport(settings, clock, log, processes, redact) : null;
  const remote =
    'url' in settings ? remoteTransport(settings, host, (error) => client.onerror?.(error)) : null;

  async function close(): Promise<void> {
    over.abort();
    if (remote !== null) await endSession(remote, clock);
    await (local ?? remote)?.close();
  }

  const abort = () => void close();
  signal.addEventListener('abort', abort, { once: true });
  try {
    const options = { timeout: CONNECT_MS, signal, ...(isOld && { prior: { kind: 'legacy' as const } }) };
    await client.connect(local ?? (remote as StreamableHTTPClientTransport), options);
  } catch (error) {
    await close();
    throw withLastWords(oversized ?? error, local?.lastWords() ?? null);
  } finally {
    signal.removeEventListener('abort', abort);
  }
  return {
    revision: client.getNegotiatedProtocolVersion() ?? 'unknown',
    listTools: (until) => listTools(client, until),
    async call({ own, inputSchema }, given, until, timeoutMs) {
      // Without the schema of its results: nobody checks what a server says of itself.
      const toolDefinition = { name: own, inputSchema: { ...inputSchema, type: 'object' as const } };
      try {
        const options = { signal: until, timeout: timeoutMs, toolDefinition };
        return await client.callTool({ name: own, arguments: given }, options);
      } catch (error) {
        throw oversized ?? error;
      }
    },
    changed: watchTools(client, clock, over.signal),
    closed,
    close,
  };
}

function createClient(settings: ServerSettings, { version, log }: McpHost): Client {
  const timeoutMs = 'command' in settings ? PROBE_MS.process : PROBE_MS.remote;
  const client = new Client(
    { name: 'coterie', version },
    {
      capabilities: {},
      // A server gets nothing that it asks for in the middle of a call.
      inputRequired: { autoFulfill: false },
      versionNegotiation: { mode: 'auto', probe: { timeoutMs } },
    },
  );
  const refused = new Set<string>();
  client.fallbackRequestHandler = async ({ method }) => {
    const asked = oneLine(method, 60);
    if (refused.size < MOST_LOGGED && !refused.has(asked)) {
      refused.add(asked);
      log.warn({ mcp: settings.name, asked }, 'MCP server request refused');
    }
    throw new ProtocolError(ProtocolErrorCode.MethodNotFound, 'Not offered here');
  };
  const errors = new Set<string>();
  client.onerror = (error) => {
    const why = oneLine(describe(error), 200);
    if (errors.size >= MOST_LOGGED || errors.has(why)) return;
    errors.add(why);
    log.debug({ mcp: settings.name, why }, 'MCP connection failed');
  };
  return client;
}

async function listTools(client: Client, signal: AbortSignal): Promise<unknown[]> {
  if (client.getServerCapabilities()?.tools === undefined) return [];
  const tools: unknown[] = [];
  let cursor: string | undefined;
  for (let pages = 0; pages < MOST_PAGES && tools.length < MOST_LISTED; pages += 1) {
    const request = { method: 'tools/list', params: cursor === undefined ? {} : { cursor } };
    const found = await client.request(request, page, { signal, timeout: LIST_MS });
    tools.push(...found.tools.slice(0, MOST_LISTED - tools.length));
    cursor = found.nextCursor;
    if (cursor === undefined) break;
  }
  return tools;
}

/** Returns what waits for the next change. In the newer revision changes are subscribed to; after a gap all is listed anew. */
function watchTools(client: Client, clock: Clock, until: AbortSignal): () => Promise<void> {
  let tell = () => {};
  let change = nextChange();
  client.setNotificationHandler('notifications/tools/list_changed', () => tell());
  const isModern = client.getProtocolEra() === 'modern' && client.getServerCapabilities()?.tools?.listChanged;
  if (isModern) void subscribe();
  return async () => {
    await change;
    change = nextChange();
  };

  function nextChange(): Promise<void> {
    return new Promise((resolve) => {
      tell = resolve;
    });
  }

  async function subscribe(): Promise<void> {
    for (let n = 0; !until.aborted; n += 1) {
      try {
        const options = { signal: until, timeout: LIST_MS };
        const subscription = await client.listen({ toolsListChanged: true }, options);
        if (n > 0) tell();
        await subscription.closed;
      } catch (error) {
        if (until.aborted) return;
        client.onerror?.(error as Error);
      }
      await clock.sleep(LISTEN_AGAIN_MS, until);
    }
  }
}

/** The client's own message (`Connection closed`) helps nobody to mend a server. */
function withLastWords(error: unknown, words: string | null): unknown {
  if (words === null) return error;
  const { code } = error as { code?: unknown };
  return Object.assign(new Error(`${describe(error)}; ${words}`), { code });
}

/** A server may keep something for the session; one that does not answer is not waited for. */
async function endSession(remote: StreamableHTTPClientTransport, clock: Clock): Promise<void> {
  const patience = new AbortController();
  const told = remote.terminateSession().catch(() => {});
  await Promise.race([told, clock.sleep(CLOSE_MS, patience.signal)]);
  patience.abort();
}

function remoteTransport(
  { url, headers, oauth }: RemoteSettings,
  { outward, reach }: McpHost,
  isTooLarge: (error: Error) => void,
): StreamableHTTPClientTransport {
  // The operator named its address and the issuer's. Any other comes from the server: in a redirect, or in metadata.
  const configured = [url, ...(oauth === undefined ? [] : [oauth.issuer])].map(hostIn);
  const lookupFor: LookupFor = async (to) =>
    configured.includes(`${to.host}:${to.port}`) ? undefined : reach(to);
  return new StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers: { ...headers } },
    fetch: bounded(outward.fetch({ lookupFor }), isTooLarge),
    // The secret goes to the configured issuer alone.
    ...(oauth && {
      authProvider: new ClientCredentialsProvider({
        clientId: oauth.clientId,
        clientSecret: oauth.clientSecret,
        expectedIssuer: oauth.issuer,
        ...(oauth.scope !== undefined && { scope: oauth.scope }),
      }),
    }),
  });
}

function hostIn(address: string): string {
  const { protocol, hostname, port } = new URL(address);
  return `${hostname.replace(/^\[|\]$/g, '')}:${port || (protocol === 'https:' ? 443 : 80)}`;
}

/** Breaks off a response whose document, or one event of it, is larger than a message may be. */
function bounded(ask: typeof fetch, isTooLarge: (error: Error) => void): FetchLike {
  return async (url, init) => {
    const response = await ask(url, init);
    const { body, status, statusText, headers } = response;
    if (body === null || status < 200 || (status >= 300 && status < 400)) return response;
    const isStream = headers.get('content-type')?.includes('text/event-stream') === true;
    let bytes = 0;
    const counting = new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        const lineEnd = isStream ? chunk.lastIndexOf(LINE_END) : -1;
        bytes = lineEnd < 0 ? bytes + chunk.length : chunk.length - lineEnd - 1;
        if (bytes <= MOST_MESSAGE_BYTES) return controller.enqueue(chunk);
        isTooLarge(tooLarge());
        controller.error(tooLarge());
      },
    });
    return new Response(body.pipeThrough(counting), { status, statusText, headers });
  };
}

export type Check =
  /** `tools`: as personas have them. */
  { state: 'ok'; text: string; remarks: string[]; tools: string[] } | { state: 'failed'; text: string };

/** For `coterie doctor`: whether a server can be used, and how. */
export async function checkServer(settings: ServerSettings, host: McpHost): Promise<Check> {
  const processes: Processes = new Set();
  const killAll = () => {
    for (const kill of processes) kill();
  };
  process.once('exit', killAll);
  const signal = AbortSignal.timeout(CHECK_MS);
  const where = `mcp.servers.${settings.name}`;
  try {
    const connection = await connect(settings, host, processes, signal);
    try {
      const { tools, remarks } = offerOf(settings, await connection.listTools(signal));
      const free = tools.filter(({ needsApproval }) => !needsApproval).length;
      const how = 'command' in settings ? 'a process' : 'over HTTP';
      const text = `${how}, revision ${connection.revision}, ${tools.length} tools, ${free} of them without approval`;
      if (tools.length === 0) remarks.push('it offers no tool that personas could use');
      return { state: 'ok', text, remarks, tools: tools.map(({ name }) => name) };
    } finally {
      await connection.close();
    }
  } catch (error) {
    const why = signal.aborted
      ? `it did not answer within ${CHECK_MS / 1000} s`
      : oneLine(host.redact(describe(error)));
    const advice =
      'command' in settings
        ? `start it by hand with the command of ${where} and see what it says`
        : `look at url, headers and oauth of ${where}, and whether the server is up`;
    return { state: 'failed', text: `${why}; ${advice}` };
  } finally {
    process.off('exit', killAll);
  }
}
