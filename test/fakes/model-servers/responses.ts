/**
 * OpenAI's Responses API, spoken by the scripted fake: reads a request as chat completions would have it, refuses what the
 * real one refuses about items that belong together, and says a script as its events.
 */
import type { ServerResponse } from 'node:http';
import type { ChatBody, ChatBodyMessage } from '../model.js';
import { callsOf, type ModelScript } from '../model-script.js';
import { refuse, tokensIn } from './server.js';

type Item = Record<string, unknown>;

const KNOWN = [
  ...['model', 'input', 'instructions', 'tools', 'tool_choice', 'stream', 'store', 'include', 'reasoning'],
  ...['max_output_tokens', 'temperature', 'prompt_cache_key', 'parallel_tool_calls', 'metadata', 'user'],
  ...['service_tier', 'text', 'truncation'],
];

export function createResponses() {
  /** Encrypted reasoning that was given away, and the calls that need it before them. */
  const sealed = new Map<unknown, unknown>();
  const needed = new Map<unknown, unknown>();

  return {
    refusal(raw: Item): ModelScript | null {
      const unknown = Object.keys(raw).find((field) => !KNOWN.includes(field));
      if (unknown !== undefined) return invalid(`Unknown parameter: '${unknown}'.`, unknown);
      if (raw.temperature !== undefined) {
        return invalid(
          "Unsupported parameter: 'temperature' is not supported with this model.",
          'temperature',
        );
      }
      const tools = (raw.tools ?? []) as Item[];
      if (tools.some(({ name }) => typeof name !== 'string')) {
        return invalid("Missing required parameter: 'tools[0].name'.", 'tools[0].name');
      }
      const part = (raw.input as Item[])
        .flatMap(partsOf)
        .find(({ type }) => !/^(in|out)put_/.test(String(type)));
      if (part !== undefined) return invalid(`Invalid value: '${part.type}'.`, 'input[0].content[0].type');
      const wrong = wrongItems(raw.input as Item[]);
      return wrong === null ? null : invalid(wrong, 'input');
    },

    async play(
      script: ModelScript,
      { body, raw, n }: { body: ChatBody; raw: Item; n: number },
      response: ServerResponse,
    ): Promise<void> {
      const output = outputOf(script, raw, n);
      const isCut = script.finish === 'length';
      const whole = {
        id: `resp_${n}`,
        object: 'response',
        model: body.model,
        status: isCut ? 'incomplete' : 'completed',
        incomplete_details: isCut ? { reason: 'max_output_tokens' } : null,
        error: null,
        output,
        usage: { input_tokens: tokensIn(body), output_tokens: 9, input_tokens_details: { cached_tokens: 0 } },
      };
      if (!raw.stream) {
        response.writeHead(200, { 'content-type': 'application/json' });
        response.end(JSON.stringify(whole));
        return;
      }
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const event = (type: string, rest: object) =>
        `event: ${type}\ndata: ${JSON.stringify({ type, ...rest })}\n\n`;
      const pieces = [
        event('response.created', { response: { ...whole, status: 'in_progress', output: [] } }),
      ];
      for (const [index, item] of output.entries()) {
        const at = { output_index: index, item_id: item.id };
        pieces.push(event('response.output_item.added', { ...at, item: { ...item, status: 'in_progress' } }));
        if (item.type === 'message') {
          for (const word of (script.text ?? '').match(/\S*\s*/g) ?? []) {
            if (word !== '') pieces.push(event('response.output_text.delta', { ...at, delta: word }));
          }
        }
        if (item.type === 'function_call') {
          pieces.push(event('response.function_call_arguments.delta', { ...at, delta: item.arguments }));
        }
        pieces.push(event('response.output_item.done', { ...at, item }));
      }
      const last = isCut ? 'response.incomplete' : 'response.completed';
      response.end(pieces.join('') + event(last, { response: whole }));
    },
  };

  function outputOf(script: ModelScript, raw: Item, n: number): Item[] {
    const asksForContent = (raw.include as string[] | undefined)?.includes('reasoning.encrypted_content');
    const thought = { id: `rs_${n}`, type: 'reasoning', summary: [] };
    const reasoning: Item = asksForContent ? { ...thought, encrypted_content: `sealed ${n}` } : thought;
    sealed.set(reasoning.id, reasoning.encrypted_content);
    const said = { type: 'output_text', text: script.text, annotations: [] };
    const message = {
      id: `msg_${n}`,
      type: 'message',
      role: 'assistant',
      status: 'completed',
      content: [said],
    };
    const calls = callsOf(script, n).map((call, index) => ({
      ...{ id: `fc_${n}_${index}`, type: 'function_call', status: 'completed' },
      ...{ call_id: call.id, ...call.function },
    }));
    for (const { id } of calls) needed.set(id, reasoning.id);
    return [reasoning, ...(script.text ? [message] : []), ...calls];
  }

  /** What is said of items that were given back (openai-python and codex threads know each of these words). */
  function wrongItems(input: Item[]): string | null {
    const open = new Set<unknown>();
    for (const [index, item] of input.entries()) {
      const before = input.slice(0, index);
      if (item.type === 'reasoning') {
        if (item.encrypted_content === undefined) {
          return `Item with id '${item.id}' not found. Items are not persisted when \`store\` is set to false.`;
        }
        if (sealed.get(item.id) !== item.encrypted_content) {
          return `The encrypted content for item ${item.id} could not be verified.`;
        }
        const next = input[index + 1];
        if (next?.type !== 'function_call' && next?.type !== 'message') {
          return `Item '${item.id}' of type 'reasoning' was provided without its required following item.`;
        }
      }
      if (item.type === 'function_call') {
        const reasoning = needed.get(item.id);
        if (reasoning !== undefined && !before.some(({ id }) => id === reasoning)) {
          return `Item '${item.id}' of type 'function_call' was provided without its required 'reasoning' item: '${reasoning}'.`;
        }
        open.add(item.call_id);
      }
      if (item.type === 'function_call_output' && !open.delete(item.call_id)) {
        return `No tool call found for function call output with call_id ${item.call_id}.`;
      }
    }
    for (const id of open) return `No tool output found for function call ${id}.`;
    return null;
  }
}

function invalid(message: string, param: string): ModelScript {
  return refuse(400, { message, type: 'invalid_request_error', param, code: null });
}

/** The same request as chat completions would have it: items of one answer are one message. */
export function asChat(raw: Item): ChatBody {
  const messages: ChatBodyMessage[] = [];
  for (const item of (raw.input ?? []) as Item[]) {
    const last = messages.at(-1);
    if (item.type === 'function_call') {
      const call = {
        id: String(item.call_id),
        type: 'function',
        function: { name: String(item.name), arguments: String(item.arguments) },
      };
      if (last?.role === 'assistant') last.tool_calls = [...(last.tool_calls ?? []), call];
      else messages.push({ role: 'assistant', content: null, tool_calls: [call] });
    } else if (item.type === 'function_call_output') {
      messages.push({ role: 'tool', tool_call_id: String(item.call_id), content: String(item.output) });
    } else if (item.type !== 'reasoning') {
      messages.push({ role: String(item.role), content: wordsOf(item.content) });
    }
  }
  const tools = raw.tools as { name: string }[] | undefined;
  const { model, stream } = raw as { model: string; stream?: boolean };
  return {
    model,
    messages,
    ...(stream === undefined ? {} : { stream }),
    ...(tools ? { tools: tools.map((tool) => ({ type: 'function', function: tool })) } : {}),
  };
}

function partsOf({ content }: Item): Item[] {
  return Array.isArray(content) ? content : [];
}

function wordsOf(content: unknown): string {
  if (typeof content === 'string') return content;
  return (content as { text?: string }[]).map(({ text }) => text ?? '').join('\n');
}
