/** vLLM: tells its window, words an overflow with both numbers, and sends calls in odd pieces. */
import { type ModelServer, tokensIn, withCalls } from './server.js';

export function vllm({ maxModelLen = 8192 } = {}): ModelServer {
  return {
    name: 'vLLM',

    rules(body) {
      const prompt = tokensIn(body);
      const completion = body.max_completion_tokens ?? body.max_tokens ?? 0;
      if (prompt + completion <= maxModelLen) return null;
      const message = `This model's maximum context length is ${maxModelLen} tokens. However, you requested ${prompt + completion} tokens (${prompt} in the messages, ${completion} in the completion). Please reduce the length of the messages or completion.`;
      return {
        status: 400,
        body: { object: 'error', message, type: 'BadRequestError', param: null, code: 400 },
      };
    },

    /** All calls at index 0, their arguments in pieces with an empty id (vllm-project/vllm#31438). */
    dress: (script, _body, n) => ({
      ...withCalls(script, (_call, index) => ({ id: `chatcmpl-tool-${n}${index}` })),
      callForm: 'pieces, all at index 0',
    }),

    pages: { 'GET /v1/models': () => ({ data: [{ id: 'small', max_model_len: maxModelLen }] }) },
  };
}
