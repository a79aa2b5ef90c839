/** What an operator says of one server of tools (`mcp.servers.<name>`), and the bounds that hold for all of them. */

interface Common {
  /** As in config.yaml. */
  name: string;
  /** Which of its tools personas have, by its own names; undefined: all. */
  tools: readonly string[] | undefined;
  /** Which need no person's approval. */
  safe: readonly string[];
  timeoutMs: number;
}

export interface ProcessSettings extends Common {
  command: string;
  args: readonly string[];
  /** What it sees beside `PATH` and `HOME`. */
  env: Readonly<Record<string, string>>;
  cwd: string | undefined;
}

export interface RemoteSettings extends Common {
  url: string;
  headers: Readonly<Record<string, string>>;
  /** How the gateway logs in by itself (client credentials); undefined: by `headers`, or not at all. */
  oauth: { issuer: string; clientId: string; clientSecret: string; scope?: string | undefined } | undefined;
}

export type ServerSettings = ProcessSettings | RemoteSettings;

/** Of one; the protocol allows 128 (specification 2025-11-25, tools: names). */
export const MOST_NAME_CHARS = 256;
/** Names that a server has had in one run: what each of them was is kept. */
export const MOST_NAMES = 1_000;
/** Of its list no more are even looked at; how many of them a request offers is bounded over all servers. */
export const MOST_LISTED = 1_000;
export const MOST_PAGES = 50;
export const MOST_DESCRIPTION_CHARS = 4_000;
export const MOST_SCHEMA_CHARS = 32_000;
/** A result is no longer than this when the model sees it. */
export const MOST_RESULT_CHARS = 60_000;
/** A message of a server that is larger is not parsed; what can be told of its beginning is. */
export const MOST_MESSAGE_BYTES = 4_000_000;
/** Whoever sends one that is larger still is not listened to any more. */
export const MOST_BYTES_AT_ALL = 200_000_000;
