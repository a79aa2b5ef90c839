/** The offline model's reading of a request: what was said last, by whom, and what has been done about it since. */

import type { ModelMessage, ModelRequest } from '../core/model.js';
import { unescaped } from '../core/origin.js';

export interface Situation {
  /** What the last speaker said since the last reply, oldest first, as typed; without what they only forwarded. */
  said: string[];
  /** Pictures came with it. */
  pictures: boolean;
  /** Nobody has been answered in this conversation yet. */
  first: boolean;
  /** Tool calls made for this answer so far, with what came back (null: nothing did). */
  done: { name: string; arguments: string; result: string | null }[];
  offers(tool: string): boolean;
}

/** Pure. */
export function situationOf(request: ModelRequest): Situation {
  const { messages } = request;
  const last = messages.findLastIndex((message) => message.role === 'user');
  const results = new Map(
    messages.flatMap((message) =>
      message.role === 'tool' ? [[message.callId, unescaped(message.content)]] : [],
    ),
  );
  const asked = messages[last];
  return {
    said: lastSpeakersWords(asked?.content ?? ''),
    pictures: asked?.role === 'user' && asked.images !== undefined,
    first: !isAnswered(messages.slice(0, Math.max(last, 0))),
    done: messages.slice(last + 1).flatMap((message: ModelMessage) =>
      message.role === 'assistant'
        ? message.calls.map(({ id, name, arguments: args }) => ({
            name,
            arguments: args,
            result: results.get(id) ?? null,
          }))
        : [],
    ),
    offers: (name) => request.tools.some((tool) => tool.name === name),
  };
}

/** Whether something was said after a person had spoken: a greeting is no answer. */
function isAnswered(before: ModelMessage[]): boolean {
  const spoken = before.findIndex(
    ({ role, content }) => role === 'user' && content.includes('<user_message'),
  );
  return spoken >= 0 && before.slice(spoken).some(({ role }) => role === 'assistant');
}

/** Others may stand before them in the same message: what was only overheard. */
function lastSpeakersWords(content: string): string[] {
  const marked = [...content.matchAll(/<user_message\b([^>]*)>([\s\S]*?)<\/user_message>/g)];
  if (marked.length === 0) return [content.trim()];
  const lines = marked.map(([, attributes = '', words = '']) => ({
    sender: /sender="([^"]*)"/.exec(attributes)?.[1] ?? '',
    words: forwardIn(words) === null ? unescaped(words).trim() : null,
  }));
  const speaker = lines.at(-1)?.sender;
  const others = lines.findLastIndex((line) => line.sender !== speaker);
  return lines.slice(others + 1).flatMap((line) => line.words ?? []);
}

/** What a person's message forwards; null if these are their own words. */
export function forwardIn(inside: string): { from: string; words: string } | null {
  const found = /^<forwarded(?: from="([^"]*)")?[^>]*>([\s\S]*)<\/forwarded>$/.exec(inside);
  return found && { from: found[1] ?? '', words: found[2] ?? '' };
}
