/** One connection to one MCP server through the official client, loaded only if a server is configured. */
import {
  Client,
  ClientCredentialsProvider,
  type FetchLike,
  ProtocolError,
  ProtocolErrorCode,
  StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client';
import * as z from 'zod';
import { type Clock, onAbort, orAfter } from '../core/clock.js';
import { describe } from '../core/errors.js';
import type { Log } from '../core/log.js';
import type { LookupFor, Outward } from '../core/network.js';
import { type OfferedTool, offerOf } from './offered.js';
import { onceEach, oneLine, TOO_LARGE, tooLarge } from './results.js';
import { MOST_MESSAGE_BYTES, type RemoteSettings, type ServerSettings } from './settings.js';
import { createStdioTransport, type Processes } from './stdio.js';

export type McpConnection = Awaited<ReturnType<typeof connect>>;

/** The gateway's services for every connection. */
export interface McpHost {
  version: string;
  outward: Outward;
  /** Checks an address that the server names besides its own. */
  reach: LookupFor;
  clock: Clock;
  log: Log;
  redact(text: string): string;
}

/** Long, because a package may have to be downloaded. */
const CONNECT_MS = 60_000;
const LIST_MS = 30_000;
/** An old server may not answer the probe. */
const PROBE_MS = { process: 5_000, remote: 20_000 };
const CLOSE_MS = 1_000;
const LISTEN_AGAIN_MS = 30_000;
const CHECK_MS = 30_000;
/** Different messages that are logged per connection. */
const MOST_LOGGED = 20;
const LINE_END = 0x0a;
const MOST_LISTED = 1_000;
const MOST_PAGES = 50;

/** Tools are validated one by one later, so that an invalid one does not spoil the list. */
const page = z.looseObject({ tools: z.array(z.unknown()), nextCursor: z.string().optional() });

export async function connect(
  settings: ServerSettings,
  host: McpHost,
  processes: Processes,
  signal: AbortSignal,
) {
  try {
    return await connectOnce(settings, host, processes, signal, false);
  } catch (error) {
    // Some old servers exit on any request before `initialize`.
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
) {
  signal.throwIfAborted();
  const { clock, log, redact } = host;
  let oversized: Error | null = null;
  const client = createClient(settings, host, (error) => {
    if (oversized !== null || (error as { code?: unknown }).code !== TOO_LARGE) return;
    oversized = error;
    log.warn({ mcp: settings.name, why: describe(error) }, 'MCP connection closed');
    void close();
  });
  const over = new AbortController();
  const closed = new Promise<void>((resolve) => over.signal.addEventListener('abort', () => resolve()));
  client.onclose = () => over.abort();
  const local = 'command' in settings ? createStdioTransport(settings, clock, log, processes, redact) : null;
  const remote =
    'url' in settings ? remoteTransport(settings, host, (error) => client.onerror?.(error)) : null;

  async function close(): Promise<void> {
    over.abort();
    // Lets the server free its session, if it answers.
    const told = remote?.terminateSession().catch(() => {});
    if (told) await orAfter(told, CLOSE_MS, clock);
    await (local ?? remote)?.close();
  }

  const stopListening = onAbort(signal, () => void close());
  try {
    const options = { timeout: CONNECT_MS, signal, ...(isOld && { prior: { kind: 'legacy' as const } }) };
    await client.connect(local ?? (remote as StreamableHTTPClientTransport), options);
  } catch (error) {
    await close();
    throw withLastWords(oversized ?? error, local?.lastWords() ?? null);
  } finally {
    stopListening();
  }
  return {
    /** For example `2025-11-25`. */
    revision: client.getNegotiatedProtocolVersion() ?? 'unknown',
    /** As the server lists them, not validated. */
    listTools: (until: AbortSignal) => listTools(client, until),
    /** Throws the client's errors; `failureOf` interprets them. */
    async call(
      { own, inputSchema }: OfferedTool,
      given: Record<string, unknown>,
      until: AbortSignal,
      timeoutMs: number,
    ): Promise<unknown> {
      // Without the output schema: a server's results are not validated against its own schema.
      const toolDefinition = { name: own, inputSchema: { ...inputSchema, type: 'object' as const } };
      try {
        const options = { signal: until, timeout: timeoutMs, toolDefinition };
        return await client.callTool({ name: own, arguments: given }, options);
      } catch (error) {
        throw oversized ?? error;
      }
    },
    /** Resolves at the server's next announcement of changed tools; a new promise after each. */
    changed: watchTools(client, clock, over.signal),
    /** Resolves when the connection has ended. */
    closed,
    close,
  };
}

function createClient(
  settings: ServerSettings,
  { version, log }: McpHost,
  heard: (error: Error) => void,
): Client {
  const timeoutMs = 'command' in settings ? PROBE_MS.process : PROBE_MS.remote;
  const client = new Client(
    { name: 'coterie', version },
    {
      capabilities: {},
      // Requests of a server in the middle of a call are not answered.
      inputRequired: { autoFulfill: false },
      versionNegotiation: { mode: 'auto', probe: { timeoutMs } },
    },
  );
  const mcp = settings.name;
  const logRefused = onceEach(MOST_LOGGED, (asked) => log.warn({ mcp, asked }, 'MCP server request refused'));
  client.fallbackRequestHandler = async ({ method }) => {
    logRefused(oneLine(method, 60));
    throw new ProtocolError(ProtocolErrorCode.MethodNotFound, 'Not offered here');
  };
  const logFailure = onceEach(MOST_LOGGED, (why) => log.debug({ mcp, why }, 'MCP connection failed'));
  client.onerror = (error) => {
    logFailure(oneLine(describe(error), 200));
    heard(error);
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

/** Returns a function that waits for the next change. Newer revisions subscribe; after a gap, all is listed again. */
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

/** The client's own message (`Connection closed`) does not help to fix a server. */
function withLastWords(error: unknown, words: string | null): unknown {
  if (words === null) return error;
  const { code } = error as { code?: unknown };
  return Object.assign(new Error(`${describe(error)}; ${words}`), { code });
}

function remoteTransport(
  { url, headers, oauth }: RemoteSettings,
  { outward, reach }: McpHost,
  isTooLarge: (error: Error) => void,
): StreamableHTTPClientTransport {
  // The operator named this address and the issuer's. Any other comes from the server: from a redirect or metadata.
  const configured = [url, ...(oauth === undefined ? [] : [oauth.issuer])].map(hostIn);
  const lookupFor: LookupFor = async (to) =>
    configured.includes(`${to.host}:${to.port}`) ? undefined : reach(to);
  return new StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers: { ...headers } },
    fetch: bounded(outward.fetch({ lookupFor }), isTooLarge),
    // The client secret is sent to the configured issuer only.
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

/** Aborts a response whose document, or one of its events, exceeds the maximum message size. */
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

/** For `coterie doctor`: whether a server works, and with which tools, by their names for personas. */
export async function checkServer(
  settings: ServerSettings,
  host: McpHost,
): Promise<
  { state: 'ok'; text: string; remarks: string[]; tools: string[] } | { state: 'failed'; text: string }
> {
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
