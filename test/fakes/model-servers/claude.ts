/** Anthropic's chat completions layer: ends its turn without a word after tool results; refuses a temperature. */
import { type ModelServer, refuse } from './server.js';

export function claude(): ModelServer {
  return {
    name: 'Claude',

    rules(body) {
      // Opus 4.7 and 4.8 (RooCodeInc/Roo-Code#12162).
      if (body.temperature === undefined) return null;
      return refuse(400, {
        message: '`temperature` is deprecated for this model.',
        type: 'invalid_request_error',
        param: null,
        code: 'invalid_request_error',
      });
    },

    /**
     * After tool results it has nothing to add, however often the same is asked; a new user message gets words. Documented
     * as valid by Anthropic ("Handling stop reasons": empty responses with end_turn).
     */
    dress(script, body) {
      const hasCalls = (script.calls?.length ?? 0) > 0;
      if (body.messages.at(-1)?.role !== 'tool' || hasCalls) return script;
      return { finish: 'stop', usage: { prompt_tokens: 100, completion_tokens: 3 } };
    },

    pages: {
      'GET /v1/models': () => ({ data: [{ id: 'claude', max_input_tokens: 200_000, max_tokens: 64_000 }] }),
    },
  };
}
