/**
 * Gemma 2 by its template: no system message, sides that take turns, nothing about tools (google/gemma-2-9b-it,
 * tokenizer_config.json). How the server around it words the template's exception is its own: sgl-project/sglang#1342,
 * lmstudio-ai/lmstudio-bug-tracker#1054, containers/ramalama#2425.
 */
import type { ChatBody } from '../model.js';
import { type ModelServer, refuse } from './server.js';

const SERVERS = {
  vLLM: (message: string) => ({
    status: 400,
    body: { object: 'error', message, type: 'BadRequestError', code: 400 },
  }),
  'llama.cpp': (message: string) =>
    refuse(500, {
      code: 500,
      message: `------------\nWhile executing CallExpression at line 1, column 75 in source:\n{{ raise_exception('...') }}\nError: Jinja Exception: ${message}`,
      type: 'server_error',
    }),
  /** Within the stream, as an event of its own. */
  'LM Studio': (message: string) => ({
    raw: `event: error\ndata: ${JSON.stringify({ error: { message: `Error rendering prompt with jinja template: "${message}".` } })}\n\n`,
  }),
  TGI: (message: string) => ({
    status: 422,
    body: {
      error: `Template error: invalid operation: ${message} (in <string>:1)`,
      error_type: 'template_error',
    },
  }),
};

export function gemma({ on = 'vLLM' as keyof typeof SERVERS } = {}): ModelServer {
  return {
    name: `Gemma on ${on}`,
    rules(body) {
      const wrong = wrongIn(body);
      return wrong === null ? null : SERVERS[on](wrong);
    },
  };
}

function wrongIn({ messages }: ChatBody): string | null {
  if (messages[0]?.role === 'system') return 'System role not supported';
  const isInTurns = messages.every(({ role }, n) => (role === 'user') === (n % 2 === 0));
  return isInTurns ? null : 'Conversation roles must alternate user/assistant/user/assistant/...';
}
