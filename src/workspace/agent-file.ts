/** `data/agents/<id>.yaml` or `.yml` defines an agent; absent keys are taken from `utility`. */
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import * as z from 'zod';
import { sizeInWords } from '../core/cut.js';
import { describe } from '../core/errors.js';
import { codeOf, namesIn } from '../core/file-access.js';
import { documentOf, MOST_ALIASES } from '../core/file-text.js';
import { hintFor, parseKnown } from '../core/known-keys.js';
import { type AgentDefinition, isAgentId, UTILITY } from '../core/task.js';
import { TOOL_GROUPS, type ToolGroup } from '../core/tool.js';

/** Groups that no agent may have: it delegates no work and writes to no chat. */
const NEVER: readonly ToolGroup[] = ['agents', 'send', 'schedules', 'reactions', 'export'];

export const BUILT_IN: AgentDefinition = {
  id: UTILITY,
  model: null,
  prompt: `You do one piece of work at a time, on your own, for somebody who reads only your last answer.
- Look before you act: read the files and the instructions first, then do exactly what was asked, nothing beside it.
- Work with your tools instead of describing what one could do. When a step fails, read the error and try another way; after three failures of the same step, stop and say what is in the way.
- Where something is open, take the most cautious reading and name it at the end.
- Change nothing outside of your folders, and delete nothing that you did not make unless that is the task.
- Check the result before you report it: open the file, run the test, count the lines.
- Your last answer says what came of it, what you did, where the results lie, and what is left to do. Claim nothing that you did not see.`,
  tools: ['files', 'shell', 'artifacts', 'skills'],
  timeoutMinutes: null,
  maxRounds: null,
};

const KEYS = z.strictObject({
  model: z.string('expected the name of a model').trim().min(1, 'expected the name of a model').optional(),
  prompt: z.string('expected a text: what the agent is told about itself').optional(),
  tools: z
    .array(
      z.enum(
        TOOL_GROUPS,
        `expected groups of tools: ${TOOL_GROUPS.filter((g) => !NEVER.includes(g)).join(', ')}`,
      ),
      'expected a list of groups of tools, like [files, shell]',
    )
    .optional(),
  timeout_minutes: z
    .number('expected a number of minutes')
    .positive('expected a number of minutes above 0')
    .max(7 * 24 * 60, 'expected at most 10080 minutes (a week)')
    .optional(),
  max_rounds: z
    .int('expected a whole number of rounds')
    .min(1, 'expected at least 1 round')
    .max(1_000, 'expected at most 1000 rounds')
    .optional(),
});

export type ReadAgent =
  | { ok: true; agent: AgentDefinition; warnings: string[] }
  /** One sentence. */
  | { ok: false; reason: string };

/** `file`: its name in the sentences. */
export function parseAgent(id: string, file: string, source: string): ReadAgent {
  const wrong = (key: string | null, message: string): ReadAgent => ({
    ok: false,
    reason: `${[file, key, message].filter((part) => part !== null && part !== '').join(': ')}.`,
  });
  const document = documentOf(source.replace(/^\uFEFF/, ''));
  const [error] = document.errors;
  if (error !== undefined) return wrong(null, `it is not YAML (${error.message})`);
  let data: unknown;
  try {
    data = document.toJS({ maxAliasCount: MOST_ALIASES });
  } catch (error) {
    return wrong(null, `the anchors in it cannot be resolved (${describe(error)})`);
  }
  if (data !== null && (typeof data !== 'object' || Array.isArray(data)))
    return wrong(null, 'expected keys and values, like `prompt: …`');
  const { parsed, unknown } = parseKnown(KEYS, { ...data });
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    return wrong(issue?.path.join('.') ?? null, issue?.message ?? 'it cannot be read');
  }
  const { model, prompt, tools, timeout_minutes, max_rounds } = parsed.data;
  const dropped = tools?.filter((group) => NEVER.includes(group)) ?? [];
  return {
    ok: true,
    agent: {
      id,
      model: model ?? BUILT_IN.model,
      prompt: prompt?.trim() || BUILT_IN.prompt,
      tools: tools?.filter((group) => !NEVER.includes(group)) ?? BUILT_IN.tools,
      timeoutMinutes: timeout_minutes ?? BUILT_IN.timeoutMinutes,
      maxRounds: max_rounds ?? BUILT_IN.maxRounds,
    },
    warnings: [
      ...unknown.map((path) => `${file}: ${path.join('.')}: unknown key; ${hintFor(KEYS, path)}`),
      ...dropped.map((group) => `${file}: tools: an agent never has ${group}; it is left out`),
    ],
  };
}

/** A prompt of a book's length is a mistake. */
const MOST_BYTES = 200_000;

/** Agent ids to file names (null: `utility` without one), and faults. Throws Fault `memory_unavailable`. */
export async function agentsIn(folder: string) {
  const names = await namesIn(folder);
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

/** The matching id, ignoring case; null if there is no such agent. */
export function idIn(ids: Iterable<string>, wanted: string): string | null {
  return [...ids].find((id) => sameId(id, wanted)) ?? null;
}

/** Many file systems ignore case, so ids do, too. */
function sameId(one: string, other: string): boolean {
  return one.toLowerCase() === other.toLowerCase();
}

/** As the file is now. `file`: null for `utility` without one. */
export async function readAgent(folder: string, id: string, file: string | null): Promise<ReadAgent> {
  if (file === null) return { ok: true, agent: BUILT_IN, warnings: [] };
  const path = join(folder, file);
  try {
    const found = await stat(path);
    const fault = (reason: string) => ({ ok: false as const, reason: `${file}: ${reason}` });
    if (!found.isFile()) return fault('expected a file; move away what stands there.');
    if (found.size > MOST_BYTES) return fault(`expected at most ${sizeInWords(MOST_BYTES)}; it is larger.`);
    return parseAgent(id, file, await readFile(path, 'utf8'));
  } catch (error) {
    return { ok: false, reason: `${file}: it cannot be read (${codeOf(error)}).` };
  }
}

/** For `coterie doctor`: a sentence for each problem in these files. */
export async function agentFindings(folder: string): Promise<{ ids: string[]; findings: string[] }> {
  const { files, problems } = await agentsIn(folder);
  const findings = [...problems];
  for (const [id, file] of files) {
    const read = await readAgent(folder, id, file);
    findings.push(...(read.ok ? read.warnings : [read.reason]));
  }
  return { ids: [...files.keys()], findings };
}
