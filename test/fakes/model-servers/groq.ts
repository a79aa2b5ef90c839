/** Groq: a call that its model garbled is a refusal, by chance; unknown fields are another. */
import { type ModelServer, refuse, unknownFields } from './server.js';

/** What its model's arguments were, against the schema of its tool (laravel/ai#239, openclaw/openclaw#41172). */
const WRONG_ARGUMENTS =
  "tool call validation failed: parameters for tool look_up did not match schema: errors: [missing properties: 'word', additionalProperties 'wort' not allowed]";

/** `fails`: which requests; `wrong`: how. */
export function groq({
  fails = (_n: number): boolean => false,
  wrong = 'call' as 'call' | 'arguments',
} = {}): ModelServer {
  return {
    name: 'Groq',

    rules(body, n) {
      for (const [index, message] of body.messages.entries()) {
        const [field] = unknownFields(message);
        if (field === undefined) continue;
        return refuse(400, {
          message: `'messages.${index}' : for 'role:${message.role}' the following must be satisfied[('messages.${index}' : property '${field}' is unsupported)]`,
          type: 'invalid_request_error',
        });
      }
      // groq/groq-typescript#28: sampling, so the same request may pass.
      if (body.tools === undefined || !fails(n)) return null;
      return refuse(400, {
        message:
          wrong === 'arguments'
            ? WRONG_ARGUMENTS
            : "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.",
        type: 'invalid_request_error',
        code: 'tool_use_failed',
        failed_generation: '<function=look_up{"word": tea}</function>',
      });
    },

    pages: { 'GET /v1/models': () => ({ data: [{ id: 'groq', context_window: 131_072 }] }) },
  };
}
