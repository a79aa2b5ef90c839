/** The settings of one MCP server (`mcp.servers.<name>`), and limits for all of them. */

/** The name of a server, and the rules for its tools. */
export interface ToolRules {
  /** The key in config.yaml. */
  name: string;
  /** The server's names of the tools offered to personas; undefined: all. */
  tools: readonly string[] | undefined;
  /** Tools that need no approval. */
  safe: readonly string[];
}

interface ServerBasics extends ToolRules {
  timeoutMs: number;
}

export interface ProcessSettings extends ServerBasics {
  command: string;
  args: readonly string[];
  /** Its environment besides `PATH` and `HOME`. */
  env: Readonly<Record<string, string>>;
  cwd: string | undefined;
}

export interface RemoteSettings extends ServerBasics {
  url: string;
  headers: Readonly<Record<string, string>>;
  /** OAuth client credentials; undefined: no login, or one in `headers`. */
  oauth: { issuer: string; clientId: string; clientSecret: string; scope?: string | undefined } | undefined;
}

export type ServerSettings = ProcessSettings | RemoteSettings;

/** A larger message ends the connection. */
export const MOST_MESSAGE_BYTES = 4_000_000;
