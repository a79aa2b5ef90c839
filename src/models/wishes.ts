/**
 * Step 5, to the server: what a request holds beside the conversation: the fields that the operator wants in it, and what
 * lets the server find in its prompt cache what it has read before. Pure.
 */
import type { ModelRequest } from '../core/model.js';
import { cacheMarks } from './cache-marks.js';
import type { Quirk } from './quirk-store.js';
import type { ChatRequest } from './request.js';

/** Two names for one limit: an operator who sets one does not want the other beside it. */
const LIMITS = ['max_tokens', 'max_completion_tokens'];

/** Parameters that are left out once they were refused, whoever wants them. */
const LEFT_OUT: readonly Quirk[] = [
  'max_tokens',
  'max_completion_tokens',
  'temperature',
  'stream_options',
  'prompt_cache_key',
  'reasoning_effort',
  'tool_choice',
];

/** The request with all wishes. An operator's field counts more than ours, a server's refusal more than both. */
export function withWishes(
  sent: ChatRequest,
  { cacheKey, stableThrough, messages }: ModelRequest,
  extra: Record<string, unknown>,
  refused: ReadonlySet<Quirk>,
): ChatRequest {
  const ours: Record<string, unknown> = { ...sent.parameters };
  if (LIMITS.some((name) => name in extra)) for (const name of LIMITS) delete ours[name];
  if (cacheKey !== undefined) ours.prompt_cache_key = cacheKey;
  const all = { ...ours, ...extra };
  // What lets the model have its tools.
  if (sent.parameters.reasoning_effort !== undefined) all.reasoning_effort = sent.parameters.reasoning_effort;
  for (const name of LEFT_OUT) if (refused.has(name)) delete all[name];
  const marks =
    refused.has('cache_marks') || stableThrough === undefined
      ? null
      : cacheMarks(sent.parameters.model, messages, stableThrough);
  return { ...sent, parameters: all as ChatRequest['parameters'], ...(marks && { marks }) };
}
