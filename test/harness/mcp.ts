/** MCP servers as in a gateway, with real processes, a log and ways to call tools. */

import { fileURLToPath } from 'node:url';
import { type Clock, systemClock } from '../../src/core/clock.js';
import type { Log } from '../../src/core/log.js';
import type { AnyTool, ToolContext, ToolResult } from '../../src/core/tool.js';
import { createMcpServers, type McpServers } from '../../src/mcp/servers.js';
import type { ProcessSettings, RemoteSettings, ServerSettings } from '../../src/mcp/settings.js';
import { createRedactor } from '../../src/operating/redact.js';
import { createReach, systemNetwork } from '../../src/tools/web/request.js';
import { eventually } from './gateway.js';
import { straight } from './straight.js';

const FAKE = fileURLToPath(new URL('../fakes/mcp/server.mjs', import.meta.url));
export const EVERYTHING = fileURLToPath(
  new URL('../../node_modules/@modelcontextprotocol/server-everything/dist/index.js', import.meta.url),
);
export const FILESYSTEM = fileURLToPath(
  new URL('../../node_modules/@modelcontextprotocol/server-filesystem/dist/index.js', import.meta.url),
);

export function processServer(
  name: string,
  args: string[],
  more: Partial<ProcessSettings> = {},
): ProcessSettings {
  return {
    ...{ name, command: process.execPath, args, env: {}, cwd: undefined },
    ...{ tools: undefined, safe: [], timeoutMs: 30_000 },
    ...more,
  };
}

/** Our own server, whose behaviour depends on `mode`. */
export function fakeServer(
  mode: string,
  more: Partial<ProcessSettings> = {},
  ...args: string[]
): ProcessSettings {
  return processServer(mode, [FAKE, mode, ...args], more);
}

export function remoteServer(name: string, url: string, more: Partial<RemoteSettings> = {}): RemoteSettings {
  return {
    ...{ name, url, headers: {}, oauth: undefined },
    ...{ tools: undefined, safe: [], timeoutMs: 30_000 },
    ...more,
  };
}

export interface LogLine {
  level: string;
  message: string;
  [field: string]: unknown;
}

export interface McpBench extends McpServers {
  lines: LogLine[];
  names(): string[];
  tool(name: string): AnyTool;
  call(name: string, given?: object, signal?: AbortSignal): Promise<ToolResult>;
  /** Resolves when `look` returns something truthy. */
  until(look: () => unknown, what: string): Promise<void>;
}

export function mcpBench(
  settings: ServerSettings[],
  secrets: string[] = [],
  clock: Clock = systemClock,
  allowHosts: string[] = [],
): McpBench {
  const lines: LogLine[] = [];
  const level = (name: string) => (fields: object, message: string) => {
    lines.push({ level: name, message, ...fields });
  };
  const log: Log = { debug: level('debug'), info: level('info'), warn: level('warn'), error: level('error') };
  const redact = createRedactor(secrets);
  const reach = createReach(allowHosts, systemNetwork(straight));
  const servers = createMcpServers(settings, {
    version: '1.2.3',
    outward: straight,
    reach,
    clock,
    log,
    redact,
  });
  const tool = (name: string) => {
    const found = servers.tools().find((each) => each.name === name);
    if (!found) throw new Error(`there is no tool ${name}: ${names().join(', ')}`);
    return found;
  };
  const names = () => servers.tools().map((each) => each.name);
  servers.start();
  return {
    ...servers,
    ...{ lines, names, tool },
    call: (name, given = {}, signal = new AbortController().signal) => callTool(tool(name), given, signal),
    async until(look, what) {
      await eventually(look, what);
    },
  };
}

/** Calls a tool as a turn does, with the context that an MCP tool uses. */
export function callTool(tool: AnyTool, given: object, signal: AbortSignal): Promise<ToolResult> {
  const context = { authorisation: {}, signal } as ToolContext;
  return tool.execute(given as never, context) as Promise<ToolResult>;
}
