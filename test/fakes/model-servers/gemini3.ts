/** Gemini 3 on its OpenAI layer: calls carry a signature that has to come back; errors are lists of one. */
import type { ModelScript } from '../model-script.js';
import { callMessages, type ModelServer, withCalls } from './server.js';

/** Passes for calls that another model made (vercel/ai, notes of google@3.0.80). */
const SKIP = 'skip_thought_signature_validator';

export function gemini3(): ModelServer {
  const given = new Set<unknown>([SKIP]);
  return {
    name: 'Gemini 3',

    /** The first call of a message has to have one (securo-finance/securo#884, Gitlawb/openclaude#67). */
    rules(body) {
      for (const { message, index } of callMessages(body)) {
        const signature = signatureOf(message.tool_calls?.[0]);
        if (signature === undefined) {
          const name = message.tool_calls?.[0]?.function.name;
          return invalid(
            `Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call \`default_api:${name}\`, position ${index}.`,
          );
        }
        if (!given.has(signature)) return invalid('Corrupted thought signature.');
      }
      return null;
    },

    /** Deltas without an index, a whole call each, ended with `stop` (googleapis/python-genai#2868). */
    dress(script, _body, n) {
      if (script.calls === undefined || script.calls.length === 0) return script;
      const signature = `signature ${n}`;
      given.add(signature);
      const signed = withCalls(script, (_call, index) => ({
        id: `function-call-${n}${index}`,
        ...(index === 0 ? { extra: { extra_content: { google: { thought_signature: signature } } } } : {}),
      }));
      return { ...signed, callForm: 'whole, without index', finish: 'stop' };
    },
  };
}

function signatureOf(call: Record<string, unknown> | undefined): unknown {
  const content = call?.extra_content as { google?: { thought_signature?: unknown } } | undefined;
  return content?.google?.thought_signature;
}

function invalid(message: string): ModelScript {
  return { status: 400, body: [{ error: { code: 400, message, status: 'INVALID_ARGUMENT' } }] };
}
