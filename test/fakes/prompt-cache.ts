/**
 * A server's prompt cache: of two requests that begin alike, what the second one shares with the first is not read again.
 * It counts four characters a token, tools first, then the messages in order.
 */
import type { ChatBody, ModelReply } from './model.js';

/** OpenAI caches from this length on; Claude, by model, from 512 to 4,096. */
const LEAST_TOKENS = 1_024;

export interface PromptCache {
  reply: ModelReply;
  /** Of each request, in tokens: all of it, what was found in the cache, and what was written into it. */
  counted: { tokens: number; cached: number; written: number }[];
}

/**
 * `automatic`: whatever begins alike, per `prompt_cache_key` (OpenAI before 5.6, Mistral, DeepSeek and others).
 * `at the last message`: gpt-5.6, which writes up to the newest user or tool message unless a part is marked: a prompt with
 * a changing end is then never found again. `where marked`: Claude and Qwen behind OpenRouter.
 */
export function promptCache(
  how: 'automatic' | 'at the last message' | 'where marked',
  answer: ModelReply = () => 'fine',
): PromptCache {
  const kept = new Map<string, string[]>();
  const counted: PromptCache['counted'] = [];
  return {
    counted,
    async reply(body, n) {
      const key = typeof body.prompt_cache_key === 'string' ? body.prompt_cache_key : '';
      const texts = [JSON.stringify(body.tools ?? []), ...body.messages.map(textOf)];
      const whole = texts.join('\n');
      const known = kept.get(key) ?? [];
      const shared = Math.max(
        0,
        ...known.map((prefix) => (how === 'automatic' ? common(prefix, whole) : isStart(prefix, whole))),
      );
      const cached = shared / 4 >= LEAST_TOKENS ? Math.floor(shared / 4 / 128) * 128 : 0;
      const ends = endsToKeep(how, body);
      const prefixes = ends.map((end) => texts.slice(0, end + 2).join('\n'));
      const longest = Math.max(0, ...prefixes.map(({ length }) => length));
      kept.set(key, how === 'automatic' ? [whole] : [...known, ...prefixes]);
      const tokens = Math.ceil(whole.length / 4);
      const written = how === 'automatic' ? 0 : Math.max(0, Math.ceil(longest / 4) - cached);
      counted.push({ tokens, cached, written });
      const said = await answer(body, n);
      return {
        ...(typeof said === 'string' ? { text: said } : said),
        usage: {
          prompt_tokens: tokens,
          completion_tokens: 5,
          prompt_tokens_details: { cached_tokens: cached, cache_write_tokens: written },
        },
      };
    },
  };
}

/** Up to which messages it is written. */
function endsToKeep(how: string, { messages }: ChatBody): number[] {
  const marked = messages.flatMap(({ mark }, index) => (mark === undefined ? [] : [index]));
  if (how === 'automatic') return [];
  if (marked.length > 0 || how === 'where marked') return marked;
  return [messages.findLastIndex(({ role }) => role === 'user' || role === 'tool')];
}

function textOf({ mark: _, ...message }: ChatBody['messages'][number]): string {
  return JSON.stringify(message);
}

function isStart(prefix: string, whole: string): number {
  return whole.startsWith(prefix) ? prefix.length : 0;
}

function common(a: string, b: string): number {
  let length = 0;
  while (length < a.length && a[length] === b[length]) length++;
  return length;
}
