/** DeepSeek, thinking: wants its reasoning back with every call that is in the history, for ever. */
import { callMessages, type ModelServer, refuse } from './server.js';

export function deepseek(): ModelServer {
  return {
    name: 'DeepSeek',

    /** The field has to be there, also where it was empty (api-docs "Thinking Mode", anomalyco/opencode#24722). */
    rules(body) {
      const lacking = callMessages(body).some(({ message }) => typeof message.reasoning_content !== 'string');
      if (!lacking) return null;
      return refuse(400, {
        message: 'The `reasoning_content` in the thinking mode must be passed back to the API.',
        type: 'invalid_request_error',
        param: null,
        code: 'invalid_request_error',
      });
    },

    /** Every stream begins with the field, empty; now and then nothing follows. */
    dress: (script, _body, n) => ({
      ...script,
      message: { reasoning_content: '' },
      ...(script.reasoning === undefined && n % 3 > 0 ? { reasoning: `Let me think (${n}).` } : {}),
    }),
  };
}
