/** What `coterie doctor` says of one server of tools: whether it can be used, what of it, and what to do. */
import type { Clock } from '../core/clock.js';
import { describe } from '../core/errors.js';
import type { Log } from '../core/log.js';
import type { LookupFor, Outward } from '../core/outward.js';
import { connect } from './connect.js';
import { offerOf } from './offered.js';
import type { Processes } from './process-transport.js';
import type { ServerSettings } from './settings.js';
import { oneLine } from './words.js';

export type Check =
  /** `tools`: as personas have them. */
  { state: 'ok'; text: string; remarks: string[]; tools: string[] } | { state: 'failed'; text: string };

interface Parts {
  version: string;
  outward: Outward;
  /** Where a server leads us beside its own address. */
  reach: LookupFor;
  clock: Clock;
  log: Log;
  redact(text: string): string;
}

/** A server that hangs is a finding, too. */
const PATIENCE_MS = 30_000;

export async function checkServer(settings: ServerSettings, parts: Parts): Promise<Check> {
  const processes: Processes = new Set();
  const killAll = () => {
    for (const kill of processes) kill();
  };
  process.once('exit', killAll);
  const signal = AbortSignal.timeout(PATIENCE_MS);
  try {
    const connection = await connect(settings, { ...parts, processes }, signal);
    try {
      const { tools, remarks } = offerOf(settings, await connection.listTools(signal));
      const free = tools.filter(({ needsApproval }) => !needsApproval).length;
      const how = 'command' in settings ? 'a process' : 'over HTTP';
      const text = `${how}, revision ${connection.revision}, ${tools.length} tools, ${free} of them without approval`;
      const names = tools.map(({ name }) => name);
      if (tools.length > 0) return { state: 'ok', text, remarks, tools: names };
      return {
        state: 'ok',
        text,
        tools: names,
        remarks: [...remarks, 'it offers no tool that personas could use'],
      };
    } finally {
      await connection.close();
    }
  } catch (error) {
    const why = signal.aborted
      ? `it did not answer within ${PATIENCE_MS / 1000} s`
      : oneLine(parts.redact(describe(error)));
    return { state: 'failed', text: `${why}; ${adviceFor(settings)}` };
  } finally {
    process.off('exit', killAll);
  }
}

function adviceFor(settings: ServerSettings): string {
  const where = `mcp.servers.${settings.name}`;
  return 'command' in settings
    ? `start it by hand with the command of ${where} and see what it says`
    : `look at url, headers and oauth of ${where}, and whether the server is up`;
}
