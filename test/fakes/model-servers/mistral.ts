/** Mistral: ids of nine letters and digits, a fixed order of speakers, nothing that it does not know. */
import type { ChatBody } from '../model.js';
import type { ModelScript } from '../model-script.js';
import { callMessages, type ModelServer, unknownFields, withCalls } from './server.js';

const ID = /^[a-zA-Z0-9]{9}$/;

export function mistral(): ModelServer {
  return {
    name: 'Mistral',
    rules: (body) => extraField(body) ?? wrongId(body) ?? wrongOrder(body),
    dress: (script, _body, n) =>
      withCalls(script, (_call, index) => ({ id: `m${String(n).padStart(6, '0')}x${index}` })),
    pages: { 'GET /v1/models': () => ({ data: [{ id: 'mistral', max_context_length: 131_072 }] }) },
  };
}

/** Its schema forbids them: another server's reasoning, for one. */
function extraField(body: ChatBody): ModelScript | null {
  for (const [index, message] of body.messages.entries()) {
    const [field] = unknownFields(message);
    if (field === undefined) continue;
    const loc = ['body', 'messages', index, message.role, field];
    return {
      status: 422,
      body: { detail: [{ type: 'extra_forbidden', loc, msg: 'Extra inputs are not permitted' }] },
    };
  }
  return null;
}

/** nearai/ironclaw#1241 */
function wrongId(body: ChatBody): ModelScript | null {
  const ids = callMessages(body).flatMap(({ message }) => message.tool_calls?.map(({ id }) => id) ?? []);
  const wrong = ids.find((id) => !ID.test(id));
  if (wrong === undefined) return null;
  return error(
    'invalid_function_call',
    '3280',
    `Tool call id was ${wrong} but must be a-z, A-Z, 0-9, with a length of 9.`,
  );
}

/** datapizza-labs/datapizza-ai#98 */
function wrongOrder(body: ChatBody): ModelScript | null {
  const roles = body.messages.map(({ role }) => role);
  if (roles.some((role, n) => role === 'user' && roles[n - 1] === 'tool')) {
    return error('invalid_request_message_order', '3230', "Unexpected role 'user' after role 'tool'");
  }
  const last = roles.at(-1);
  if (last === 'user' || last === 'tool') return null;
  return error(
    'invalid_request_message_order',
    '3230',
    `Expected last role User or Tool (or Assistant with prefix True) for serving but got ${last}`,
  );
}

function error(type: string, code: string, message: string): ModelScript {
  return { status: 400, body: { object: 'error', message, type, param: null, code } };
}
