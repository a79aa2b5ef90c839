/**
 * The servers of tools that the configuration names (Model Context Protocol), and their tools as personas have them: the
 * group `mcp`. Every one is foreign code: a call asks a person unless the operator called it safe, and what it answers is
 * words from outside.
 */
import type { Clock } from '../core/clock.js';
import type { Log } from '../core/log.js';
import type { LookupFor, Outward } from '../core/outward.js';
import type { AnyTool } from '../core/tool.js';
import { failed } from './failure.js';
import type { OfferedTool } from './offered.js';
import type { Processes } from './process-transport.js';
import { startServer, type ToolServer } from './server.js';
import type { ServerSettings } from './settings.js';
import { oneLine } from './words.js';

export interface McpServers {
  /** Begins to connect, in the background; may be called twice. */
  start(): void;
  /** As they are now, for a new turn: the same list as long as they are the same. */
  tools(): readonly AnyTool[];
  /**
   * Resolves when it was tried once to connect to each, and in any case some seconds after the start: the first message
   * of a run is not answered without tools that are there a moment later, and no server holds up more than that. A turn
   * with a call that is to be run (one that a person has approved while the gateway was away) waits longer for its tool.
   */
  ready(wanted: readonly string[], signal: AbortSignal): Promise<void>;
  /** Ends every process, with what it started. */
  stop(): Promise<void>;
}

interface Parts {
  settings: readonly ServerSettings[];
  version: string;
  outward: Outward;
  /** Where a server leads us beside its own address. */
  reach: LookupFor;
  clock: Clock;
  log: Log;
  /** Cuts secrets out of a text. */
  redact(text: string): string;
}

const READY_WITHIN_MS = 3_000;
const WANTED_WITHIN_MS = 30_000;
/** Beyond the server's own time: what a call may wait for its connection. */
const ASIDE_MS = 15_000;

export function createMcpServers({
  settings,
  version,
  outward,
  reach,
  clock,
  log,
  redact,
}: Parts): McpServers {
  let servers: ToolServer[] | null = null;
  let startedAt = 0;
  /** Resolves when each was tried once. */
  let tried: Promise<unknown> = Promise.resolve();
  let areTried = settings.length === 0;
  let isOver = false;
  let lists: (readonly OfferedTool[])[] = [];
  let tools: readonly AnyTool[] = [];
  /** Who had a name first has it for this run: `a_b` of the server `c` and `b` of `c_a` would be the same. */
  const owners = new Map<string, string>();
  const processes: Processes = new Set();
  const killAll = () => {
    for (const kill of processes) kill();
  };

  function start(): void {
    if (servers !== null || isOver || settings.length === 0) return;
    servers = settings.map((each) =>
      startServer(each, { version, outward, reach, clock, log, redact, processes }),
    );
    process.once('exit', killAll);
    startedAt = clock.now();
    tried = Promise.all(servers.map((server) => server.tried)).then(() => {
      areTried = true;
    });
  }

  function toolsOf(server: ToolServer): AnyTool[] {
    const own = server.tools().filter(({ name }) => {
      const owner = owners.get(name) ?? server.settings.name;
      if (owner !== server.settings.name) {
        log.warn(
          { mcp: server.settings.name, tool: name },
          `a tool is left out: ${owner} has one of this name`,
        );
        return false;
      }
      owners.set(name, owner);
      return true;
    });
    return own.map((tool) => asTool(server, tool));
  }

  function currentTools(): readonly AnyTool[] {
    if (servers === null) return tools;
    const now = servers.map((server) => server.tools());
    if (now.length === lists.length && now.every((list, n) => list === lists[n])) return tools;
    lists = now;
    tools = servers.flatMap(toolsOf);
    return tools;
  }

  /** Waits for them, but never longer than so much time after the start. */
  async function firstTries(withinMs: number, signal: AbortSignal): Promise<void> {
    const patience = new AbortController();
    const enough = AbortSignal.any([patience.signal, signal]);
    await Promise.race([tried, clock.sleep(startedAt + withinMs - clock.now(), enough)]);
    patience.abort();
  }

  return {
    start,
    tools: currentTools,
    async ready(wanted, signal) {
      if (areTried || isOver) return;
      start();
      await firstTries(READY_WITHIN_MS, signal);
      const names = currentTools().map(({ name }) => name);
      const isMissing = wanted.some((name) => name.startsWith('mcp_') && !names.includes(name));
      if (isMissing) await firstTries(WANTED_WITHIN_MS, signal);
    },
    async stop() {
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
    // In the system prompt, not a word of the server's own.
    hint: `a tool of the server ${JSON.stringify(oneLine(server.settings.name, 60))}`,
    parameters: tool.schema,
    // Foreign code: also where it is safe, nobody knows whether it only reads.
    risk: tool.needsApproval ? 'high' : 'medium',
    ...(tool.needsApproval && { isExternal: true }),
    timeoutMs: server.settings.timeoutMs + ASIDE_MS,
    isFromOutside: true,
    async execute(given: Record<string, unknown>, { authorisation, signal }) {
      if (authorisation === undefined)
        return failed('Permission denied: this call carries no authorisation.');
      if (signal.aborted) return failed('Stopped: nothing was done.');
      return server.call(tool, given, signal);
    },
  };
}
