/** The configured MCP servers: foreign code, whose calls need approval and whose answers are untrusted. */
import { type Clock, orAfter } from '../core/clock.js';
import { describe } from '../core/errors.js';
import { backoff } from '../core/retry.js';
import type { AnyTool, ToolResult } from '../core/tool.js';
import type { McpConnection, McpHost } from './connection.js';
import { type OfferedTool, offerOf, wrongArguments } from './offered.js';
import { failed, failureOf, onceEach, oneLine, resultOf, UNREACHABLE } from './results.js';
import type { ServerSettings } from './settings.js';
import type { Processes } from './stdio.js';

export type McpServers = ReturnType<typeof createMcpServers>;
type ToolServer = ReturnType<typeof startServer>;

const READY_WITHIN_MS = 3_000;
const WANTED_WITHIN_MS = 30_000;
/** Extra time of a call for connecting, on top of the server's own time-out. */
const ASIDE_MS = 15_000;
const CALL_WAITS_MS = 10_000;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;
/** A connection that lasts this long resets the back-off. */
const STABLE_MS = 30_000;
/** Between two listings; doubled for a server that keeps changing its tools. */
const LIST_AGAIN_MS = 1_000;
const LONGEST_LIST_AGAIN_MS = 600_000;
const QUICK_CHANGES = 5;
const CALM_MS = 600_000;
const MOST_REMARKED = 40;
/** Different tools of one server remembered until the next start. */
const MOST_NAMES = 1_000;
const TOO_MANY_NAMES = `it has had ${MOST_NAMES} tools of different names since the start; further ones are left out until the next`;

export function createMcpServers(settings: readonly ServerSettings[], host: McpHost) {
  const { clock, log } = host;
  let servers: ToolServer[] | null = null;
  let startedAt = 0;
  let tried: Promise<unknown> = Promise.resolve();
  let areTried = settings.length === 0;
  let isOver = false;
  let lists: (readonly OfferedTool[])[] = [];
  let tools: readonly AnyTool[] = [];
  /** The first server to use a name keeps it: `a_b` of `c` and `b` of `c_a` would collide. */
  const owners = new Map<string, string>();
  const processes: Processes = new Set();
  const killAll = () => {
    for (const kill of processes) kill();
  };

  /** Starts connecting in the background; may be called twice. */
  function start(): void {
    if (servers !== null || isOver || settings.length === 0) return;
    servers = settings.map((each) => startServer(each, host, processes));
    process.once('exit', killAll);
    startedAt = clock.now();
    tried = Promise.all(servers.map((server) => server.tried)).then(() => {
      areTried = true;
    });
  }

  function toolsOf(server: ToolServer): AnyTool[] {
    return server.tools().flatMap((tool) => {
      const owner = owners.get(tool.name) ?? server.name;
      owners.set(tool.name, owner);
      if (owner === server.name) return [asTool(server, tool)];
      log.warn({ mcp: server.name, tool: tool.name }, `MCP tool left out: ${owner} has one of this name`);
      return [];
    });
  }

  /** For a new turn; the same array until something changes. */
  function currentTools(): readonly AnyTool[] {
    if (servers === null) return tools;
    const now = servers.map((server) => server.tools());
    if (now.length === lists.length && now.every((list, n) => list === lists[n])) return tools;
    lists = now;
    tools = servers.flatMap(toolsOf);
    return tools;
  }

  return {
    start,
    tools: currentTools,
    /** Resolves when each server was tried once, or some seconds after the start; later for an approved call (`wanted`). */
    async ready(wanted: readonly string[], signal: AbortSignal): Promise<void> {
      if (areTried || isOver) return;
      start();
      const until = (ms: number) => orAfter(tried, startedAt + ms - clock.now(), clock, signal);
      await until(READY_WITHIN_MS);
      const names = currentTools().map(({ name }) => name);
      const isMissing = wanted.some((name) => name.startsWith('mcp_') && !names.includes(name));
      if (isMissing) await until(WANTED_WITHIN_MS);
    },
    /** Ends every server process with all its children. */
    async stop(): Promise<void> {
      isOver = true;
      await Promise.all((servers ?? []).map((server) => server.stop()));
      process.off('exit', killAll);
    },
  };
}

function asTool(server: ToolServer, tool: OfferedTool): AnyTool {
  return {
    name: tool.name,
    description: tool.description,
    // The system prompt contains no words of the server.
    hint: `a tool of the server ${JSON.stringify(oneLine(server.name, 60))}`,
    parameters: tool.schema,
    // Foreign code: even a tool marked as safe may do more than read.
    risk: tool.needsApproval ? 'high' : 'medium',
    ...(tool.needsApproval && { isExternal: true }),
    timeoutMs: server.timeoutMs + ASIDE_MS,
    isFromOutside: true,
    async execute(given: Record<string, unknown>, { authorisation, signal }) {
      if (authorisation === undefined) {
        return failed('Permission denied: this call carries no authorisation.');
      }
      if (signal.aborted) return failed('Stopped: nothing was done.');
      return server.call(tool, given, signal);
    },
  };
}

function startServer(settings: ServerSettings, host: McpHost, processes: Processes) {
  const { name, timeoutMs } = settings;
  const { clock, log, redact } = host;
  const over = new AbortController();
  const listing = createListing(settings, host);
  let connection: McpConnection | null = null;
  let retryNow = new AbortController();
  let waiting: (() => void)[] = [];
  let wasTried = () => {};
  const tried = new Promise<void>((resolve) => {
    wasTried = resolve;
  });
  const running = run();

  async function run(): Promise<void> {
    let failures = 0;
    let lastFault = '';
    while (!over.signal.aborted) {
      const began = clock.now();
      retryNow = new AbortController();
      try {
        await serve();
        lastFault = '';
      } catch (error) {
        const why = oneLine(redact(describe(error)));
        if (!over.signal.aborted && why !== lastFault) {
          log.warn({ mcp: name, why }, 'MCP server unavailable; retrying');
        }
        lastFault = why;
      }
      connection = null;
      wasTried();
      if (over.signal.aborted) return;
      failures = clock.now() - began > STABLE_MS ? 1 : failures + 1;
      const pause = backoff(failures, FIRST_PAUSE_MS, LONGEST_PAUSE_MS);
      await clock.sleep(pause, AbortSignal.any([retryNow.signal, over.signal]));
    }
  }

  /** The whole life of one connection. */
  async function serve(): Promise<void> {
    const { connect } = await import('./connection.js');
    const made = await connect(settings, host, processes, over.signal);
    try {
      const news = listing.take(await made.listTools(over.signal));
      log.info({ mcp: name, tools: news.length, revision: made.revision }, 'MCP server connected');
      connection = made;
      wasTried();
      for (const go of waiting) go();
      waiting = [];
      const listAgain = async () => void listing.take(await made.listTools(over.signal));
      await Promise.race([made.closed, afterChanges(made, clock, listAgain)]);
    } finally {
      connection = null;
      await made.close();
    }
  }

  /** The connection; null if there is none in time. */
  async function connected(signal: AbortSignal): Promise<McpConnection | null> {
    if (connection !== null) return connection;
    retryNow.abort();
    const isThere = new Promise<void>((resolve) => waiting.push(resolve));
    const enough = AbortSignal.any([signal, over.signal]);
    await orAfter(isThere, Math.min(CALL_WAITS_MS, timeoutMs), clock, enough);
    return connection;
  }

  return {
    name,
    timeoutMs,
    /** The same array until something changes. */
    tools: listing.tools,
    /** Resolves after the first attempt to connect, successful or not. */
    tried,
    async call(tool: OfferedTool, given: Record<string, unknown>, signal: AbortSignal): Promise<ToolResult> {
      const wrong = wrongArguments(tool.schema, given);
      if (wrong.length > 0) return failed(`These arguments do not fit ${tool.name}: ${wrong.join('; ')}`);
      const used = await connected(signal);
      if (signal.aborted) return failed('Stopped: nothing was done.');
      if (used === null) return failed(UNREACHABLE);
      const now = listing.tools().find(({ own }) => own === tool.own);
      if (now === undefined) return failed('The server no longer has this tool. Nothing was done.');
      if (now.fingerprint !== tool.fingerprint) {
        return failed(
          'The server has changed this tool since it was offered to you. Nothing was done; from the next message on you have the new one.',
        );
      }
      try {
        const result = resultOf(await used.call(tool, given, signal, timeoutMs), redact);
        return { content: redact(result.content), failed: result.failed };
      } catch (error) {
        const { content, isLost } = failureOf(error, timeoutMs / 1000);
        const why = oneLine(redact(describe(error)));
        if (!signal.aborted) log.warn({ mcp: name, tool: tool.own, why }, 'MCP call failed');
        if (isLost) {
          if (connection === used) connection = null;
          void used.close();
        }
        return failed(redact(content));
      }
    },
    async stop(): Promise<void> {
      over.abort();
      await connection?.close();
      await running;
    },
  };
}

/** Lists tools again at each change, with growing pauses; ends with the connection. */
async function afterChanges(
  made: McpConnection,
  clock: Clock,
  listAgain: () => Promise<void>,
): Promise<void> {
  const ended = new AbortController();
  void made.closed.then(() => ended.abort());
  let changes = 0;
  let lastAt = clock.now();
  while (!ended.signal.aborted) {
    await Promise.race([made.changed(), made.closed]);
    changes = clock.now() - lastAt > CALM_MS + pauseAfter(changes) ? 0 : changes + 1;
    lastAt = clock.now();
    await clock.sleep(pauseAfter(changes), ended.signal);
    if (!ended.signal.aborted) await listAgain();
  }
}

/** The tools of one server across its connections: a tool that changes needs approval until the next start. */
function createListing(settings: ServerSettings, { log }: McpHost) {
  const { name: mcp } = settings;
  let offered: readonly OfferedTool[] = [];
  const firstFingerprints = new Map<string, string>();
  const changed = new Set<string>();
  const remark = onceEach(MOST_REMARKED, (text) => log.warn({ mcp }, `MCP server: ${text}`));

  function take(listed: readonly unknown[]): readonly OfferedTool[] {
    const { tools: found, remarks } = offerOf(settings, listed);
    const unknown = found.filter(({ own }) => !firstFingerprints.has(own));
    const tooMany = unknown.slice(Math.max(0, MOST_NAMES - firstFingerprints.size));
    if (tooMany.length > 0) remarks.push(TOO_MANY_NAMES);
    const tools = found.filter((tool) => !tooMany.includes(tool));
    for (const { own, fingerprint } of tools) {
      const before = firstFingerprints.get(own) ?? fingerprint;
      firstFingerprints.set(own, before);
      if (before === fingerprint || changed.has(own)) continue;
      changed.add(own);
      log.warn({ mcp, tool: own }, 'MCP tool changed; each call needs approval until the next start');
    }
    const now = tools.map((tool) => (changed.has(tool.own) ? { ...tool, needsApproval: true } : tool));
    if (!isSame(now, offered)) offered = now;
    for (const each of remarks) remark(each);
    return offered;
  }

  return { take, tools: () => offered };
}

function pauseAfter(changes: number): number {
  return backoff(changes - QUICK_CHANGES + 1, LIST_AGAIN_MS, LONGEST_LIST_AGAIN_MS);
}

function isSame(some: readonly OfferedTool[], others: readonly OfferedTool[]): boolean {
  const key = (tools: readonly OfferedTool[]) =>
    tools.map(({ name, fingerprint, needsApproval }) => `${name} ${fingerprint} ${needsApproval}`).join('\n');
  return key(some) === key(others);
}
