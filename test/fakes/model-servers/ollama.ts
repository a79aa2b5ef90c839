/** Ollama with the window that a small graphics card gets: cuts the front of what is too long and says nothing. */
import { type ModelServer, refuse, tokensIn, withCalls, withoutFront } from './server.js';

export function ollama4k(options: { tooLong?: 'cut' | 'refused'; numCtx?: number } = {}): ModelServer {
  const { tooLong = 'cut', numCtx = 4096 } = options;
  const invalid = (message: string) =>
    refuse(400, { message, type: 'invalid_request_error', param: null, code: null });
  return {
    name: 'Ollama',

    /** From its openai/openai.go: other words for the effort, and a message without content and calls. */
    rules(body) {
      const { reasoning_effort: effort } = body;
      if (effort !== undefined && !['high', 'medium', 'low', 'none'].includes(effort)) {
        return invalid(`invalid reasoning value: '${effort}' (must be "high", "medium", "low", or "none")`);
      }
      if (body.messages.some(({ content, tool_calls }) => content === null && !tool_calls?.length)) {
        return invalid('invalid message content type: <nil>');
      }
      // By model, on the same server (ollama/ollama#17889, #17427).
      if (tooLong === 'refused' && tokensIn(body) > numCtx) {
        return invalid('prompt too long; exceeded max context length');
      }
      return null;
    },

    /** About half of the window is kept (ollama/ollama#3839); system prompt and tools went with the front. */
    cut: (body) => (tokensIn(body) > numCtx ? withoutFront(body, Math.floor(numCtx / 2) + 2) : body),

    dress: (script, _body, n) => ({
      ...withCalls(script, (_call, index) => ({ id: `call_${n.toString(36).padStart(7, 'x')}${index}` })),
      callForm: 'whole',
    }),

    pages: {
      'GET /api/ps': () => ({ models: [{ name: 'small', model: 'small', context_length: numCtx }] }),
      'POST /api/show': () => ({
        model_info: { 'general.architecture': 'llama', 'llama.context_length': 131_072 },
      }),
    },
  };
}
