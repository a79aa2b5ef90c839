/** Tools as a turn has them: as a model is told of them, and what may be passed to them. */
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

/** What a tool is given, checked; or in words for the model, what does not fit. */
export function checkArguments(
  { name, parameters }: AnyTool,
  given: Record<string, unknown>,
): { ok: true; value: unknown } | { ok: false; faults: string } {
  // Who brings a JSON schema checks what it is given by itself.
  if (!(parameters instanceof ZodType)) return { ok: true, value: given };
  const checked = parameters.safeParse(given);
  if (checked.success) return { ok: true, value: checked.data };
  const faults = checked.error.issues.map(
    (issue) => `${issue.path.join('.') || 'arguments'}: ${issue.message}`,
  );
  return { ok: false, faults: `These arguments do not fit ${name}: ${faults.join('; ')}` };
}
