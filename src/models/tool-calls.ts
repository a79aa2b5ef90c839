/** Assembles an answer's tool calls from their pieces. Accepts calls without index or id, and arguments as objects. Pure. */
import type { ModelMessage, ToolCall, ToolDescription } from '../core/model.js';
import { addField, calledName, fits } from './history.js';
import { argumentsJson, bytesOf, isVisible, parse, record, word } from './json.js';

/** Fields of a call that are read; the rest is kept for the server. */
const KNOWN = ['index', 'id', 'type', 'function', 'name', 'arguments'];
/** Minimum size counted for a call, in bytes, even if it is empty. */
const CALL_BYTES = 50;

export function createCallsReader() {
  const calls: { made: ToolCall; besides: Record<string, unknown> }[] = [];
  const byIndex = new Map<number, (typeof calls)[number]>();
  let bytes = 0;

  return {
    /** Whether the piece added anything visible. */
    add(piece: Record<string, unknown>): boolean {
      const named = record(piece.function) ?? piece;
      const index = typeof piece.index === 'number' ? piece.index : null;
      const isWhole = record(named.arguments) !== null;
      const args = isWhole ? argumentsJson(named.arguments) : (word(named.arguments) ?? '');
      const next = { id: word(piece.id) ?? '', name: word(named.name)?.trim() ?? '', arguments: args };

      let call = index === null ? calls.at(-1) : byIndex.get(index);
      if (call === undefined || beginsAnother(call.made, next, index)) {
        call = { made: { id: '', name: '', arguments: '' }, besides: {} };
        calls.push(call);
        bytes += CALL_BYTES;
        if (index !== null) byIndex.set(index, call);
      }
      const { made, besides } = call;
      bytes += Buffer.byteLength(args);
      let saidMore = isVisible(args) || (next.name !== '' && made.name !== next.name);
      if (made.id === '') made.id = next.id;
      if (made.name !== next.name) {
        bytes += Buffer.byteLength(next.name);
        made.name += next.name;
      }
      made.arguments = isWhole ? args : made.arguments + args;
      for (const [field, value] of Object.entries(piece)) {
        if (KNOWN.includes(field)) continue;
        bytes += bytesOf(value);
        addField(besides, field, value);
        saidMore ||= bytesOf(value) > 0;
      }
      return saidMore;
    },

    bytes: () => bytes,
    /** Calls without a name cannot be carried out. */
    named() {
      const named = calls.filter(({ made }) => made.name !== '');
      return { made: named.map(({ made }) => made), besides: named.map(({ besides }) => besides) };
    },
  };
}

/** With the index 0 for every call, or none, a new id with a name starts another call, or a name after a complete call. */
function beginsAnother(call: ToolCall, next: ToolCall, index: number | null): boolean {
  if (next.name === '') return false;
  if (next.id !== '' && call.id !== '') return next.id !== call.id;
  if (index === null) return call.name !== '';
  return next.arguments !== '' && record(parse(call.arguments)) !== null;
}

/** Completes calls: empty arguments become `{}`, names are matched to offered tools, and ids become unique in the request. */
export function callableOf(calls: ToolCall[], request: ModelMessage[], tools: ToolDescription[]): ToolCall[] {
  const offered = new Set(tools.map(({ name }) => name));
  const before = request.flatMap((message) => (message.role === 'assistant' ? message.calls : []));
  const taken = new Set(before.map(({ id }) => id));
  return calls.map((call) => {
    const id = !fits(call.id) || taken.has(call.id) ? freeId(taken) : call.id;
    taken.add(id);
    const args = call.arguments.trim() === '' ? '{}' : call.arguments;
    return { id, name: calledName(call.name, offered), arguments: args };
  });
}

/** Nine letters and digits, which every server accepts (Mistral requires them). */
function freeId(taken: ReadonlySet<string>): string {
  for (let number = taken.size + 1; ; number++) {
    const id = `call${String(number).padStart(5, '0')}`;
    if (!taken.has(id)) return id;
  }
}
