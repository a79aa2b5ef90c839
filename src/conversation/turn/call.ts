/** Step 5 of the route: one tool call: its description for the model, argument validation, and run with a time-out. */

import { createHash } from 'node:crypto';
import { toJSONSchema, ZodType, type z } from 'zod';
import { redactor } from '../../core/command-env.js';
import { cutAt, estimateTokens } from '../../core/cut.js';
import { describe, Fault } from '../../core/errors.js';
import type { Audit } from '../../core/journal.js';
import type { ToolCall, ToolDescription } from '../../core/model.js';
import type { AnyTool, ToolContext, ToolResult, ToolSet, Wait } from '../../core/tool.js';
import { type CallingTurn, isTainted, readArguments, type TurnRequest } from './steps.js';
import { reasonToAsk, withheldText } from './taint.js';

export interface CallResult extends ToolResult {
  /** The call was abandoned, so its outcome is unknown. */
  unknown?: true;
}

/** A call that can run, with validated arguments. */
export interface ReadyCall {
  kind: 'ready';
  call: ToolCall;
  tool: AnyTool;
  given: unknown;
}

const DEFAULT_MS = 120_000;
/** Time an aborted call gets to end before it is abandoned. */
const GRACE_MS = 5_000;
/** Number of unknown arguments named to the model, and the length of each name. */
const MOST_NAMED = 5;
const NAMED_CHARS = 60;

export function toolSet(tools: readonly AnyTool[]): ToolSet {
  const descriptions = tools.map(describeTool);
  return { tools, descriptions, tokens: estimateTokens(JSON.stringify(descriptions)) };
}

function describeTool({ name, description, parameters }: AnyTool): ToolDescription {
  if (!(parameters instanceof ZodType)) return { name, description, parameters };
  // `additionalProperties: false` is implied and would only cost tokens in every request.
  const { $schema: _, additionalProperties: __, ...schema } = toJSONSchema(parameters);
  return { name, description, parameters: schema };
}

/** Hash of a tool's description; an approval holds only while it is unchanged. */
export function toolHash(tool: AnyTool): string {
  return createHash('sha256')
    .update(JSON.stringify(describeTool(tool)))
    .digest('hex')
    .slice(0, 32);
}

/** `call` holds the arguments a person approved, if approval was needed. */
export function prepare(
  request: TurnRequest,
  call: ToolCall,
): ReadyCall | { kind: 'unfit'; tool: string; result: CallResult } {
  const { tools, descriptions, withheld = [] } = request.tools;
  const tool = tools.find(({ name }) => name === call.name);
  const unfit = (content: string) => ({
    kind: 'unfit' as const,
    tool: tool?.name ?? 'unknown',
    result: { content, failed: true },
  });
  if (!tool) {
    const refused = withheld.find(({ name }) => name === call.name);
    if (refused) return unfit(withheldText(refused));
    const why = descriptions.some(({ name }) => name === call.name)
      ? `${call.name} cannot be used here, so nothing was done.`
      : `There is no tool named ${call.name}.`;
    return unfit(`${why} There are: ${tools.map(({ name }) => name).join(', ')}.`);
  }
  const read = readArguments(call.arguments);
  if (typeof read === 'string') return unfit(read);
  // Many models write null for an argument they omit.
  const given = Object.fromEntries(Object.entries(read).filter(([, value]) => value !== null));
  const checked = checkArguments(tool, given);
  if (!checked.ok) return unfit(checked.faults);
  const inVain = tool.refusalHere?.(request.authorisation) ?? null;
  return inVain === null ? { kind: 'ready', call, tool, given: checked.value } : unfit(inVain);
}

/** The validated arguments, or a message to the model about what is wrong with them. */
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

/** Models also write `"5"` for a number and `"true"` for a boolean. */
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

/** null if all are known. A person must not be asked about arguments that have no effect; other calls ignore them. */
export function unknownArguments({ tool, call }: ReadyCall): string | null {
  const read = readArguments(call.arguments);
  const known = knownArguments(describeTool(tool).parameters);
  const names = typeof read === 'object' ? Object.keys(read) : [];
  const unknown = known === null ? [] : names.filter((name) => !known.has(name));
  if (unknown.length === 0) return null;
  const shown = unknown.slice(0, MOST_NAMED).map((name) => JSON.stringify(cutAt(name, NAMED_CHARS)));
  return `Not run, and nobody was asked: ${tool.name} has no argument ${shown.join(', ')}. Call it again without.`;
}

/** null: any argument is allowed. */
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

export async function approvalReason(
  turn: CallingTurn,
  { tool, call, given }: ReadyCall,
): Promise<string | null> {
  try {
    return await reasonToAsk(tool, given, contextOf(turn, call, turn.signal), turn.trust);
  } catch (error) {
    const about = { err: error, tool: tool.name, turn: turn.turnId };
    turn.log.error(about, 'target of a tool call unknown; asking a person');
    return 'The target of this call is unknown.';
  }
}

/** null: the call was aborted and its outcome is unknown. */
export async function runCall(
  turn: CallingTurn,
  { call, tool, given }: ReadyCall,
  signal: AbortSignal,
): Promise<CallResult | Wait | null> {
  const { audit, clock, log, metrics } = turn;
  const ms = tool.timeoutMs ?? DEFAULT_MS;
  const late = new AbortController();
  const within = AbortSignal.any([signal, late.signal]);
  let cancel = clock.after(ms, () => late.abort());
  const abandoned = new Promise<'abandoned'>((resolve) => {
    const wait = () => {
      cancel();
      cancel = clock.after(GRACE_MS, () => resolve('abandoned'));
    };
    if (within.aborted) wait();
    else within.addEventListener('abort', wait, { once: true });
  });
  const context = contextOf(turn, call, within);
  const running = execute(audit, tool, given, context).catch((error: unknown) => ({ error }));
  const ended = await Promise.race([running, abandoned]).finally(() => cancel());
  const about = { tool: tool.name, turn: turn.turnId };
  const isFailure = ended === 'abandoned' || 'error' in ended;
  if (isFailure && signal.aborted) return null;
  if (ended === 'abandoned') log.warn(about, 'tool call did not end in time; abandoned');
  else if ('error' in ended) log.error({ err: ended.error, ...about }, 'tool failed');
  else if ('waitsFor' in ended) return ended;
  let result = isFailure ? failureOf(tool, Math.ceil(ms / 1000), ended, late.signal.aborted) : ended;
  const { agent } = turn.authorisation;
  // A command may have left a secret of its agent's task anywhere, so the results of all tools are redacted.
  if (agent) result = { ...result, content: redactor(agent.env)(result.content) };
  metrics.count('tool_calls_total', { tool: tool.name, failed: String(result.failed) });
  return tool.isFromOutside && result.inside === undefined ? { ...result, outside: true } : result;
}

function failureOf(
  { name }: AnyTool,
  seconds: number,
  ended: 'abandoned' | { error: unknown },
  isLate: boolean,
): CallResult {
  if (ended === 'abandoned' || isLate) {
    const content =
      ended === 'abandoned'
        ? `${name} did not end within ${seconds} seconds and was given up: its outcome is unknown, so check before you repeat it.`
        : `${name} was ended after ${seconds} seconds: what it had done until then is unknown, so check before you repeat it.`;
    return { content, failed: true, unknown: true };
  }
  const reason = ended.error instanceof Fault ? describe(ended.error) : 'an unexpected fault in the gateway';
  return { content: `${name} failed: ${reason}. Nothing is known to have been changed.`, failed: true };
}

/** The outcome of a call that a crash cut off, if its tool knows it; null: unknown. */
export async function outcomeAfterCrash(turn: CallingTurn, call: ToolCall): Promise<CallResult | null> {
  const tool = turn.tools.tools.find(({ name }) => name === call.name);
  return (await tool?.outcomeAfterCrash?.(contextOf(turn, call, turn.signal))) ?? null;
}

function contextOf(turn: CallingTurn, call: ToolCall, signal: AbortSignal): ToolContext {
  const { clock, zone, log, authorisation, room, turnId, cause, seen, trust, steps, record } = turn;
  const tainted = isTainted(trust, steps);
  return {
    authorisation,
    room,
    turnId,
    callId: call.id,
    signal,
    now: clock.now(),
    timezone: zone.name,
    log,
    cause: tainted ? { ...cause, tainted } : cause,
    seen,
    isTainted: tainted,
    ...(record.parentEventId !== null && { eventId: record.parentEventId }),
  };
}

/** Writes and sends enter the audit log first; if that fails, calls to other chats or foreign code are refused. */
async function execute(
  audit: Audit,
  tool: AnyTool,
  given: unknown,
  context: ToolContext,
): Promise<ToolResult | Wait> {
  const { authorisation, cause } = context;
  // A night run writes a draft, which gets one entry as a whole.
  if (tool.risk !== 'low' && cause.kind !== 'night' && authorisation !== undefined) {
    const { chatId, personaId, senderId } = authorisation;
    // The meaning of a foreign tool's arguments is unknown.
    const own = tool.parameters instanceof ZodType ? (given as Record<string, unknown>) : {};
    const { chat_id, persona_id, tier } = own;
    const where = typeof chat_id === 'string' && chat_id !== '' ? chat_id : chatId;
    const isOther = typeof persona_id === 'string' && !['', personaId].includes(persona_id);
    const which = typeof tier === 'number' ? ` tier ${tier}` : '';
    const what = `${tool.name}${which}${isOther ? ` of ${persona_id}` : ''}`;
    const isAcross = where !== chatId;
    const kind = isAcross ? ('across' as const) : ('tool' as const);
    const entry = { kind, who: `${chatId}/${personaId}`, where, what, word: senderId || null };
    const entering = isAcross || tool.risk === 'high' ? audit.record(entry) : audit.note(entry);
    if (!(await isEntered(entering))) return { content: NOT_ENTERED, failed: true };
  }
  return tool.execute(given as never, context);
}

/** False if the audit log cannot be written. */
export async function isEntered(entering: Promise<void>): Promise<boolean> {
  try {
    await entering;
    return true;
  } catch (error) {
    if (error instanceof Fault) return false;
    throw error;
  }
}

export const NOT_ENTERED = 'Nothing was done: the audit log cannot be written just now.';
