/** The files of agents, `data/agents/<id>.yaml` or `.yml`: which there are, and what one says now. */
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type AgentDefinition, isAgentId, UTILITY } from '../core/agents.js';
import { sizeInWords } from '../core/bytes.js';
import { codeOf, isMissing, unavailable } from '../core/file-access.js';

/** A prompt of a book's length is a mistake. */
const MOST_BYTES = 200_000;

export interface FoundAgents {
  /** The file's name by the agent's id; null: `utility` without a file. */
  files: Map<string, string | null>;
  /** A sentence for each name that is none of an agent's, or that another file has already. */
  problems: string[];
}

/** Throws Fault `memory_unavailable`. */
export async function agentsIn(folder: string): Promise<FoundAgents> {
  const names = await readdir(folder).catch((error: unknown) => {
    if (isMissing(error)) return [];
    throw unavailable('read', folder, error);
  });
  const files = new Map<string, string | null>();
  const problems: string[] = [];
  for (const name of names.sort()) {
    const id = /^([^.].*)\.ya?ml$/i.exec(name)?.[1];
    if (id === undefined) continue;
    const other = idIn(files.keys(), id);
    if (!isAgentId(id)) {
      problems.push(
        `${name}: no agent can be called so: expected at most 64 letters (a-z, A-Z), digits, dots, underscores and hyphens.`,
      );
    } else if (other !== null) {
      problems.push(`${name}: it has no effect, for ${files.get(other)} says what ${other} is.`);
    } else files.set(sameId(id, UTILITY) ? UTILITY : id, name);
  }
  if (!files.has(UTILITY)) files.set(UTILITY, null);
  return { files: new Map([...files].sort(([a], [b]) => (a < b ? -1 : 1))), problems };
}

/** The id that is meant: whoever asks need not write it in its capitals. null: there is none. */
export function idIn(ids: Iterable<string>, wanted: string): string | null {
  return [...ids].find((id) => sameId(id, wanted)) ?? null;
}

/** Many file systems take names for one that differ in capitals alone, so two agents do not. */
function sameId(one: string, other: string): boolean {
  return one.toLowerCase() === other.toLowerCase();
}

export type ReadAgent =
  | { ok: true; agent: AgentDefinition; warnings: string[] }
  | { ok: false; reason: string };

/** As the file is now. `file`: null for `utility` without one. */
export async function readAgent(folder: string, id: string, file: string | null): Promise<ReadAgent> {
  // Whoever has no tasks needs no parser.
  const { BUILT_IN, parseAgent } = await import('./agent-file.js');
  if (file === null) return { ok: true, agent: BUILT_IN, warnings: [] };
  const path = join(folder, file);
  try {
    const found = await stat(path);
    if (!found.isFile())
      return { ok: false, reason: `${file}: expected a file; move away what stands there.` };
    if (found.size > MOST_BYTES) {
      return { ok: false, reason: `${file}: expected at most ${sizeInWords(MOST_BYTES)}; it is larger.` };
    }
    return parseAgent(id, file, await readFile(path, 'utf8'));
  } catch (error) {
    return { ok: false, reason: `${file}: it cannot be read (${codeOf(error)}).` };
  }
}

/** For `coterie doctor`: a sentence for everything in these files that is not as it should be. */
export async function agentFindings(folder: string): Promise<{ ids: string[]; findings: string[] }> {
  const { files, problems } = await agentsIn(folder);
  const findings = [...problems];
  for (const [id, file] of files) {
    const read = await readAgent(folder, id, file);
    findings.push(...(read.ok ? read.warnings : [read.reason]));
  }
  return { ids: [...files.keys()], findings };
}
