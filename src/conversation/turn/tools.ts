/** Step 5 of the route: describes a turn's tools to the model, validates their arguments, and enters what they change. */
import { createHash } from 'node:crypto';
import { toJSONSchema, ZodType, type z } from 'zod';
import { Fault } from '../../core/errors.js';
import type { Audit } from '../../core/journal.js';
import { estimateTokens, type ToolDescription } from '../../core/model.js';
import type { AnyTool, ToolContext, ToolResult, ToolSet, Wait } from '../../core/tool.js';

export function toolSet(tools: readonly AnyTool[]): ToolSet {
  const descriptions = tools.map(describeTool);
  return { tools, descriptions, tokens: estimateTokens(JSON.stringify(descriptions)) };
}

function describeTool({ name, description, parameters }: AnyTool): ToolDescription {
  if (!(parameters instanceof ZodType)) return { name, description, parameters };
  // That nothing else may be given goes without saying, in every request.
  const { $schema: _, additionalProperties: __, ...schema } = toJSONSchema(parameters);
  return { name, description, parameters: schema };
}

/** Another one for a tool that is described otherwise: what was allowed of the one is not allowed of the other. */
export function printOf(tool: AnyTool): string {
  return createHash('sha256')
    .update(JSON.stringify(describeTool(tool)))
    .digest('hex')
    .slice(0, 32);
}

/** The validated arguments, or a message for the model about what is wrong. */
export function checkArguments(
  { name, parameters }: AnyTool,
  given: Record<string, unknown>,
): { ok: true; value: unknown } | { ok: false; faults: string } {
  // A tool with a JSON schema validates its own input.
  if (!(parameters instanceof ZodType)) return { ok: true, value: given };
  const asGiven = parameters.safeParse(given);
  const checked = asGiven.success
    ? asGiven
    : parameters.safeParse(withoutQuotes(given, asGiven.error.issues));
  if (checked.success) return { ok: true, value: checked.data };
  const faults = checked.error.issues.map(
    (issue) => `${issue.path.join('.') || 'arguments'}: ${issue.message}`,
  );
  return { ok: false, faults: `These arguments do not fit ${name}: ${faults.join('; ')}` };
}

/**
 * The names of arguments that the tool does not know. One that runs by itself passes them over; a person who is asked would be
 * shown what has no part in what runs. Empty where its schema takes any.
 */
export function unknownArguments(tool: AnyTool, given: Record<string, unknown>): string[] {
  const known = knownArguments(describeTool(tool).parameters);
  return known === null ? [] : Object.keys(given).filter((name) => !known.has(name));
}

/** null: any. */
function knownArguments(schema: unknown): Set<string> | null {
  const { properties, patternProperties, additionalProperties, $ref, anyOf, oneOf, allOf } = Object(schema);
  const isOpen = additionalProperties === true || typeof additionalProperties === 'object';
  if (isOpen || patternProperties !== undefined || $ref !== undefined) return null;
  const names = new Set(Object.keys(Object(properties)));
  for (const part of [anyOf, oneOf, allOf].flatMap((parts) => (Array.isArray(parts) ? parts : []))) {
    const inner = knownArguments(part);
    if (inner === null) return null;
    for (const name of inner) names.add(name);
  }
  return names.size === 0 && additionalProperties !== false ? null : names;
}

/** Models also write `"5"` where a number stands, and `"true"` where yes or no does. */
function withoutQuotes(given: Record<string, unknown>, issues: readonly z.core.$ZodIssue[]) {
  const plain = { ...given };
  for (const issue of issues) {
    const [name, ...deeper] = issue.path;
    if (issue.code !== 'invalid_type' || typeof name !== 'string' || deeper.length > 0) continue;
    const value = given[name];
    if (typeof value !== 'string') continue;
    if (issue.expected === 'boolean' && /^(true|false)$/i.test(value)) plain[name] = /^true$/i.test(value);
    if (/^(number|int)$/.test(issue.expected) && /^-?\d{1,15}(\.\d+)?$/.test(value))
      plain[name] = Number(value);
  }
  return plain;
}

/**
 * Runs it, with arguments that were validated. What writes or sends is in the audit log first; what reaches another chat,
 * or runs foreign code, is refused where it cannot be entered.
 */
export async function execute(
  audit: Audit,
  tool: AnyTool,
  given: unknown,
  context: ToolContext,
): Promise<ToolResult | Wait> {
  try {
    await enterCall(audit, tool, given, context);
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    return { content: `Nothing was done: the audit log cannot be written just now.`, failed: true };
  }
  return tool.execute(given as never, context);
}

async function enterCall(
  audit: Audit,
  { name, risk, parameters }: AnyTool,
  given: unknown,
  { authorisation, cause }: ToolContext,
): Promise<void> {
  // What a night writes is a draft until the whole of it is entered.
  if (risk === 'low' || cause.kind === 'night' || authorisation === undefined) return;
  const { chatId, personaId, senderId } = authorisation;
  // What arguments of a foreign tool mean is its own affair.
  const { chat_id, persona_id, tier } = (parameters instanceof ZodType ? given : {}) as Record<
    string,
    unknown
  >;
  const where = typeof chat_id === 'string' && chat_id !== '' ? chat_id : chatId;
  const of =
    typeof persona_id === 'string' && !['', personaId].includes(persona_id) ? ` of ${persona_id}` : '';
  const which = typeof tier === 'number' ? ` tier ${tier}` : '';
  const isAcross = where !== chatId;
  const entry = {
    kind: isAcross ? ('across' as const) : ('tool' as const),
    ...{ who: `${chatId}/${personaId}`, where, what: `${name}${which}${of}`, word: senderId || null },
  };
  await (isAcross || risk === 'high' ? audit.record(entry) : audit.note(entry));
}
