/** What a fake model is told to answer, and the chunks that it then sends. */
import type { ChatBody } from './model.js';

export interface ScriptedCall {
  id?: string;
  name: string;
  arguments: string | Record<string, unknown>;
  /** Further fields of the call. */
  extra?: Record<string, unknown>;
}

export interface ModelScript {
  text?: string;
  /** In how many characters at a time; all at once. */
  chunkSize?: number;
  calls?: ScriptedCall[];
  /** How calls are cut into deltas: by OpenAI, Ollama, Gemini, and vLLM. */
  callForm?: 'in pieces' | 'whole' | 'whole, without index' | 'pieces, all at index 0';
  /** Further fields of the message, as a server of its own ways sends them. */
  message?: Record<string, unknown>;
  /** Sent in the field `reasoning_content`. */
  reasoning?: string;
  /** null: none is told. Else told when asked for; a guess where left out. */
  usage?: { prompt_tokens: number; completion_tokens: number; [more: string]: unknown } | null;
  /** null: never said. */
  finish?: string | null;
  /** These deltas instead of those made from the above, for odd forms. */
  deltas?: Record<string, unknown>[];
  /** These lines instead of the whole stream, as they are. */
  raw?: string;

  /** Before the headers. */
  headerDelayMs?: number;
  chunkDelayMs?: number;
  /** `headers`: no answer, for ever. */
  stall?: 'headers';
  /** Silent for ever after that many chunks. */
  stallAfter?: number;
  /** Writes no further after that many chunks until this has come. */
  hold?: { after: number; until: Promise<unknown> };
  /** After that many chunks nothing but this comes, again and again, for ever. */
  heartbeat?: { after: number; line: string; everyMs: number };
  /** The connection breaks after that many chunks. */
  cutAfter?: number;
  /** Packed so, though nobody asked for it. `raw deflate` has no header, as some servers send it under the name of deflate. */
  packed?: 'gzip' | 'deflate' | 'raw deflate' | 'br';
  /** The connection breaks before the headers. */
  drop?: true;
  /** An answer of its own: JSON from an object, else as it is (HTML, nothing). */
  status?: number;
  body?: unknown;
  headers?: Record<string, string>;
  /** One JSON document though a stream was asked for. */
  nonStreaming?: true;
}

/** The events of a stream, each as it goes over the wire. */
export function chunksOf(script: ModelScript, body: ChatBody, n: number): string[] {
  if (script.raw !== undefined) return [script.raw];
  const head = { id: `chatcmpl-${n}`, object: 'chat.completion.chunk', created: 0, model: body.model };
  const event = (rest: object) => `data: ${JSON.stringify({ ...head, ...rest })}\n\n`;
  const chunk = (delta: object, finish: string | null) =>
    event({ choices: [{ index: 0, delta, finish_reason: finish }] });

  const chunks = deltasOf(script, n).map((delta) => chunk(delta, null));
  const finish = finishOf(script);
  if (finish !== null) chunks.push(chunk({}, finish));
  const usage = usageOf(script, body);
  if (usage !== null && body.stream_options?.include_usage) chunks.push(event({ choices: [], usage }));
  if (finish !== null) chunks.push('data: [DONE]\n\n');
  return chunks;
}

/** The same as one document. */
export function completionOf(script: ModelScript, body: ChatBody, n: number): object {
  const message: Record<string, unknown> = {
    role: 'assistant',
    content: script.text ?? null,
    ...script.message,
  };
  if (script.reasoning !== undefined) message.reasoning_content = script.reasoning;
  if (script.calls !== undefined) message.tool_calls = callsOf(script, n);
  return {
    id: `chatcmpl-${n}`,
    object: 'chat.completion',
    created: 0,
    model: body.model,
    choices: [{ index: 0, message, finish_reason: finishOf(script) }],
    usage: usageOf(script, body) ?? undefined,
  };
}

function deltasOf(script: ModelScript, n: number): Record<string, unknown>[] {
  if (script.deltas !== undefined) return script.deltas;
  const deltas: Record<string, unknown>[] = [];
  if (script.message !== undefined) deltas.push({ role: 'assistant', content: null, ...script.message });
  for (const piece of pieces(script.reasoning, script.chunkSize)) deltas.push({ reasoning_content: piece });
  for (const piece of pieces(script.text, script.chunkSize)) deltas.push({ content: piece });
  for (const [index, call] of callsOf(script, n).entries()) deltas.push(...callDeltas(script, call, index));
  return deltas;
}

function callDeltas(script: ModelScript, call: ReturnType<typeof callsOf>[number], index: number) {
  const { callForm = 'in pieces', chunkSize } = script;
  if (callForm === 'whole, without index') return [{ tool_calls: [call] }];
  if (callForm === 'whole') return [{ tool_calls: [{ index, ...call }] }];
  const isOdd = callForm === 'pieces, all at index 0';
  const at = isOdd ? 0 : index;
  const { arguments: args, name } = call.function;
  const rest = pieces(args, isOdd ? Math.max(1, Math.ceil(args.length / 2)) : chunkSize);
  return [
    { tool_calls: [{ ...call, index: at, function: { name, arguments: '' } }] },
    ...rest.map((piece) => ({
      tool_calls: [{ index: at, ...(isOdd ? { id: '' } : {}), function: { arguments: piece } }],
    })),
  ];
}

export function callsOf(script: ModelScript, n: number) {
  return (script.calls ?? []).map((call, index) => ({
    ...call.extra,
    id: call.id ?? `call_${n}_${index}`,
    type: 'function',
    function: {
      name: call.name,
      arguments: typeof call.arguments === 'string' ? call.arguments : JSON.stringify(call.arguments),
    },
  }));
}

export function finishOf(script: ModelScript): string | null {
  if (script.finish !== undefined) return script.finish;
  return script.calls === undefined || script.calls.length === 0 ? 'stop' : 'tool_calls';
}

function usageOf(script: ModelScript, body: ChatBody) {
  if (script.usage === null) return null;
  const guess = (text: string) => Math.ceil(text.length / 4);
  const usage = script.usage ?? {
    prompt_tokens: guess(body.messages.map((message) => message.content ?? '').join('')),
    completion_tokens: guess(script.text ?? ''),
  };
  return { ...usage, total_tokens: usage.prompt_tokens + usage.completion_tokens };
}

function pieces(text = '', size = text.length): string[] {
  const cut: string[] = [];
  for (let at = 0; at < text.length; at += size) cut.push(text.slice(at, at + size));
  return cut;
}
