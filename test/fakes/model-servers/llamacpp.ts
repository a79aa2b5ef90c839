/** llama.cpp's server: says exactly how much too long a prompt is, and for a while only that it loads. */
import { type ModelServer, refuse, tokensIn } from './server.js';

export function llamacpp(options: { nCtx?: number; loading?: number } = {}): ModelServer {
  const { nCtx = 4096, loading = 0 } = options;
  return {
    name: 'llama.cpp',

    rules(body, n) {
      if (n < loading) return refuse(503, { code: 503, message: 'Loading model', type: 'unavailable_error' });
      const tokens = tokensIn(body);
      if (tokens < nCtx) return null;
      // ggml-org/llama.cpp#15780
      return refuse(400, {
        code: 400,
        message: `the request exceeds the available context size (${nCtx} tokens), try increasing it`,
        type: 'exceed_context_size_error',
        n_prompt_tokens: tokens,
        n_ctx: nCtx,
      });
    },

    dress: (script, _body, n) => ({ ...script, reasoning: script.reasoning ?? `Hm (${n}).` }),

    pages: {
      'GET /props': () => ({ default_generation_settings: { n_ctx: nCtx }, total_slots: 1 }),
      'GET /v1/models': () => ({ data: [{ id: 'local', meta: { n_ctx_train: 131_072 } }] }),
    },
  };
}
