/** DashScope (Qwen): tells its window nowhere, and words an overflow in a way of its own. */
import { type ModelServer, refuse, tokensIn } from './server.js';

export function dashscope({ inputTokens = 30_720 } = {}): ModelServer {
  return {
    name: 'DashScope',
    rules: (body) =>
      tokensIn(body) <= inputTokens
        ? null
        : refuse(400, {
            message: `<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, ${inputTokens}]`,
            type: 'invalid_request_error',
            param: null,
            code: 'invalid_parameter_error',
          }),
  };
}
