/** OpenAI's gpt-5.5 and 5.6: no tools on chat completions while they reason; the Responses API has them. */
import { type ModelServer, refuse } from './server.js';

export function openai(options: { responses?: boolean; model?: string } = {}): ModelServer {
  const { responses = true, model = 'gpt-5.6' } = options;
  return {
    name: 'OpenAI',
    ...(responses ? { hasResponses: true } : {}),

    rules(body) {
      // Known since the o-series: reasoning counts, so the limit has another name.
      if (body.max_tokens !== undefined) {
        return unsupported(
          'max_tokens',
          "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        );
      }
      if (body.temperature !== undefined && body.temperature !== 1) {
        return unsupported(
          'temperature',
          `Unsupported value: 'temperature' does not support ${body.temperature} with this model. Only the default (1) value is supported.`,
        );
      }
      // Also where the field is not sent, because a default effort applies (BerriAI/litellm#34569, danny-avila/LibreChat#14231).
      if (body.tools !== undefined && body.reasoning_effort !== 'none') {
        return refuse(400, {
          message: `Function tools with reasoning_effort are not supported for ${model} in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.`,
          type: 'invalid_request_error',
          param: 'reasoning_effort',
          code: null,
        });
      }
      return null;
    },
  };
}

function unsupported(param: string, message: string) {
  return refuse(400, { message, type: 'invalid_request_error', param, code: 'unsupported_parameter' });
}
