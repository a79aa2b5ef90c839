/**
 * What a server's prompt cache can keep of a request: it compares tokens from the first one on, tools before messages,
 * and stops where they differ (OpenAI, "Prompt caching"; DeepSeek, Gemini and Groq do the same by themselves).
 */

export interface Cacheable {
  tools?: readonly object[];
  messages: readonly object[];
}

/** In characters; servers count in tokens, of about four each. */
export interface Shared {
  shared: number;
  total: number;
}

/** How much of a request begins as the one before it did. */
export function sharedPrefix(before: Cacheable | undefined, now: Cacheable): Shared {
  const text = textOf(now);
  if (before === undefined) return { shared: 0, total: text.length };
  const old = textOf(before);
  let shared = 0;
  while (shared < text.length && text[shared] === old[shared]) shared++;
  return { shared, total: text.length };
}

function textOf({ tools = [], messages }: Cacheable): string {
  // A line each, so that a message that is only continued counts as far as it is the same.
  return [...tools, ...messages].map((part) => JSON.stringify(part)).join('\n');
}
