/**
 * `data/agents/<id>.yaml`: what an agent is. What the file leaves out is taken from `utility`; a fault is a sentence for
 * whoever edits it, with the key and what was expected there. Pure.
 */
import * as z from 'zod';
import { type AgentDefinition, UTILITY } from '../core/agents.js';
import { describe } from '../core/errors.js';
import { hintFor, parseKnown } from '../core/known-keys.js';
import { TOOL_GROUPS, type ToolGroup } from '../core/tool.js';
import { documentOf, MOST_ALIASES } from '../core/yaml.js';

/** What no agent has: it begins no further work, and talks to nobody. */
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

export type ParsedAgent =
  | { ok: true; agent: AgentDefinition; warnings: string[] }
  /** One sentence. */
  | { ok: false; reason: string };

/** `file`: how the sentences name it. */
export function parseAgent(id: string, file: string, source: string): ParsedAgent {
  const wrong = (key: string | null, message: string): ParsedAgent => ({
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
