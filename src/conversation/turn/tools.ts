/** Step 5 of the route: describes a turn's tools to the model and validates their arguments. */
import { toJSONSchema, ZodType } from 'zod';
import { estimateTokens, type ToolDescription } from '../../core/model.js';
import type { AnyTool, ToolSet } from '../../core/tool.js';

export function toolSet(tools: readonly AnyTool[]): ToolSet {
  const descriptions = tools.map(describeTool);
  return { tools, descriptions, tokens: estimateTokens(JSON.stringify(descriptions)) };
}

function describeTool({ name, description, parameters }: AnyTool): ToolDescription {
  if (!(parameters instanceof ZodType)) return { name, description, parameters };
  const { $schema: _, ...schema } = toJSONSchema(parameters);
  return { name, description, parameters: schema };
}

/** The validated arguments, or a message for the model about what is wrong. */
export function checkArguments(
  { name, parameters }: AnyTool,
  given: Record<string, unknown>,
): { ok: true; value: unknown } | { ok: false; faults: string } {
  // A tool with a JSON schema validates its own input.
  if (!(parameters instanceof ZodType)) return { ok: true, value: given };
  const checked = parameters.safeParse(given);
  if (checked.success) return { ok: true, value: checked.data };
  const faults = checked.error.issues.map(
    (issue) => `${issue.path.join('.') || 'arguments'}: ${issue.message}`,
  );
  return { ok: false, faults: `These arguments do not fit ${name}: ${faults.join('; ')}` };
}
