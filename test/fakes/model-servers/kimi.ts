/** Moonshot's Kimi k2.5, thinking: wants its reasoning back with calls, in words of its own. */
import { callMessages, type ModelServer, refuse, tokensIn, withCalls } from './server.js';

export function kimi({ contextTokens = 262_144 } = {}): ModelServer {
  const invalid = (message: string) => refuse(400, { message, type: 'invalid_request_error' });
  return {
    name: 'Kimi',

    rules(body) {
      // HKUDS/nanobot#4967.
      if (body.temperature !== undefined && body.temperature !== 1) {
        return invalid('invalid temperature: only 1 is allowed for this model');
      }
      // Reports differ on whether an empty one will do: it will not.
      const lacking = callMessages(body).find(({ message }) => !message.reasoning_content);
      if (lacking) {
        return invalid(
          `thinking is enabled but reasoning_content is missing in assistant tool call message at index ${lacking.index}`,
        );
      }
      const requested = tokensIn(body) + (body.max_tokens ?? 0);
      if (requested <= contextTokens) return null;
      return invalid(
        `Invalid request: Your request exceeded model token limit: ${contextTokens} (requested: ${requested})`,
      );
    },

    dress: (script, _body, n) => ({
      ...withCalls(script, ({ name }, index) => ({ id: `functions.${name}:${index}` })),
      reasoning: script.reasoning ?? `The user wants something (${n}).`,
    }),

    pages: { 'GET /v1/models': () => ({ data: [{ id: 'kimi', context_length: contextTokens }] }) },
  };
}
