/** Z.ai (GLM): numbers for codes, and no word of how much would have been right. */
import { type ModelServer, refuse, tokensIn } from './server.js';

export function zai({ contextTokens = 20_000 } = {}): ModelServer {
  return {
    name: 'Z.ai',
    rules: (body) =>
      tokensIn(body) <= contextTokens
        ? null
        : refuse(400, { code: '1261', message: 'Prompt exceeds max length' }),
  };
}
