/** LM Studio with a GGUF: a prompt beyond the loaded window gets a stream without any content. */
import { type ModelServer, tokensIn } from './server.js';

export function lmstudio({ loaded = 4096 } = {}): ModelServer {
  return {
    name: 'LM Studio',

    /** lmstudio-bug-tracker#2339 */
    rules: (body) => (tokensIn(body) > loaded ? { deltas: [], finish: 'stop', usage: null } : null),

    pages: {
      'GET /api/v1/models': () => ({
        models: [{ key: 'small', loaded_instances: [{ id: 'small', config: { context_length: loaded } }] }],
      }),
      'GET /api/v0/models': () => ({
        data: [{ id: 'small', state: 'loaded', max_context_length: 131_072, loaded_context_length: loaded }],
      }),
    },
  };
}
