/**
 * Marks for a server's prompt cache: which models want them, where they stand, and how a marked message is written. Pure.
 */
import type { ModelMessage } from '../core/model.js';

/** A field on the last part of a message, which says that the cache is to reach to here. */
export interface CacheMarks {
  field: Record<string, unknown>;
  messages: ReadonlySet<ModelMessage>;
}

/** null where the model wants none, or there is nothing to mark. `stableThrough` as in `ModelRequest`. */
export function cacheMarks(
  model: string,
  messages: ModelMessage[],
  stableThrough: number,
): CacheMarks | null {
  const field = markFor(model);
  const places = marksAt(messages, stableThrough);
  return field === null || places.size === 0 ? null : { field, messages: places };
}

/**
 * Who caches only up to a mark. From gpt-5.6 on OpenAI's own mark stands behind the last message, so that of a prompt with a
 * changing end nothing would be found again; older models refuse the field. Claude and Qwen, behind OpenRouter and other
 * proxies, cache nothing without. The rest caches whatever begins alike.
 */
function markFor(model: string): Record<string, unknown> | null {
  if (/\bgpt-(5\.([6-9]|\d\d)|[6-9]|\d\d)/i.test(model))
    return { prompt_cache_breakpoint: { mode: 'explicit' } };
  if (/\bclaude\b|^(qwen|alibaba)\//i.test(model)) return { cache_control: { type: 'ephemeral' } };
  return null;
}

/**
 * Where the system part ends, and where that ends which the next request begins with. Only what the system or a person
 * says can hold a mark on every server.
 */
function marksAt(messages: ModelMessage[], stableThrough: number): Set<ModelMessage> {
  const stable = messages.slice(0, stableThrough + 1);
  const system = stable.findLast(({ role }) => role === 'system');
  const last = stable.findLast(
    ({ role, content }) => (role === 'system' || role === 'user') && content !== '',
  );
  return new Set([system, last].filter((message) => message !== undefined));
}

/** The message as it is written, with the mark on its last part; `type` is what the server calls a part of text. */
export function marked(
  param: { content?: unknown },
  field: Record<string, unknown>,
  type: 'text' | 'input_text' = 'text',
): object {
  const { content } = param;
  const parts: object[] = Array.isArray(content) ? content : [{ type, text: content }];
  const last = parts.at(-1);
  return { ...param, content: [...parts.slice(0, -1), { ...last, ...field }] };
}
