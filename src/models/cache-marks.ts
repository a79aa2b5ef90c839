/**
 * Marks for a server's prompt cache, for the models that want them: where they stand, and how a marked message is written.
 * Pure.
 */
import type { ModelMessage } from '../core/model.js';

/** A field on the last part of a message, which says that the cache is to reach to here. */
export interface CacheMarks {
  field: Record<string, unknown>;
  messages: ReadonlySet<ModelMessage>;
}

/**
 * Where the system part ends, and where that ends which the next request begins with. Only what the system or a person
 * says can hold a mark on every server. null where there is neither. `stableThrough` as in `ModelRequest`.
 */
export function marksAt(
  messages: ModelMessage[],
  stableThrough: number,
  field: CacheMarks['field'],
): CacheMarks | null {
  const stable = messages.slice(0, stableThrough + 1);
  const system = stable.findLast(({ role }) => role === 'system');
  const last = stable.findLast(
    ({ role, content }) => (role === 'system' || role === 'user') && content !== '',
  );
  const places = new Set([system, last].filter((message) => message !== undefined));
  return places.size === 0 ? null : { field, messages: places };
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
