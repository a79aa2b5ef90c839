/**
 * Step 5, inside the model client: why an answer ended, in the words of many servers. Pure. A reason that nobody knows
 * counts as a good end.
 */
import type { ServerErrorDetails } from './server-error.js';

/** The codes of `ServerErrorDetails` for ends that are no answer; `failures.ts` says what each means. */
export const FILTERED = 'content_filter';
export const WINDOW_EXCEEDED = 'context_window_exceeded';
export const MALFORMED_CALL = 'malformed_function_call';

/** OpenAI and most others; Mistral; Gemini and Anthropic, where a proxy passes their own words on. */
const AT_THE_LIMIT = /^(length|model_length|max_(output_|new_|completion_)?tokens)$/i;

/** What comes first counts: GLM has `sensitive`, `network_error` and `model_context_window_exceeded`. */
const FAILED: [RegExp, string | null, string][] = [
  [/context_window_exceeded|context_length_exceeded/i, WINDOW_EXCEEDED, 'the context window was exceeded'],
  [
    /content_?filter|sensitive|safety|prohibited|blocklist|recitation|spii|guardrail|^refusal$/i,
    FILTERED,
    'its content filter stopped the answer',
  ],
  [/malformed_function_call/i, MALFORMED_CALL, 'the model wrote a tool call that cannot be read'],
  [/error|abort|insufficient_system_resource/i, null, 'its answer failed on the way'],
];

/** Whether the answer stopped because it had reached its limit of tokens. */
export function isCutAtLimit(finish: string | null): boolean {
  return finish !== null && AT_THE_LIMIT.test(finish);
}

/** What went wrong where the answer ended so; null where it ended well, or at its limit. */
export function failureOf(finish: string | null): ServerErrorDetails | null {
  if (finish === null) {
    return { kind: 'broken', words: 'broke off its answer without saying that it was finished' };
  }
  const found = FAILED.find(([wording]) => wording.test(finish));
  if (found === undefined) return null;
  const [, code, what] = found;
  const words = `${what} (it ended with "${finish.slice(0, 60)}")`;
  return code === null ? { kind: 'broken', words } : { kind: 'answered', words, code };
}
