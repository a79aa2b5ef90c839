/**
 * Step 5, inside the model client: the tool calls of one answer, put together from their pieces. Takes what real servers
 * send: calls without index or id, whole calls in one piece, arguments as objects. What else comes with a call is kept for
 * the server alone (`echo.ts`).
 */
import type { ModelMessage, ToolCall } from '../core/model.js';
import { calledName, fits } from './call-names.js';
import { addField } from './echo.js';
import { argumentsJson, bytesOf, isVisible, parse, record, word } from './json.js';

export interface PartialCall extends ToolCall {
  besides: Record<string, unknown>;
}

/** What a call takes that has neither a name nor arguments. */
const CALL_BYTES = 50;

export interface CallsReader {
  /** Whether it said more: blanks say nothing. */
  add(piece: Record<string, unknown>): boolean;
  /** What they hold so far. */
  bytes(): number;
  /** Only what can be called: a name is the least. */
  named(): PartialCall[];
}

export function createCallsReader(): CallsReader {
  const calls: PartialCall[] = [];
  const byIndex = new Map<number, PartialCall>();
  let bytes = 0;

  return {
    add(piece) {
      const named = record(piece.function) ?? piece;
      const index = typeof piece.index === 'number' ? piece.index : null;
      const id = word(piece.id) ?? '';
      const name = word(named.name)?.trim() ?? '';
      const whole = record(named.arguments) !== null;
      const args = whole ? argumentsJson(named.arguments) : (word(named.arguments) ?? '');

      let call = index === null ? calls.at(-1) : byIndex.get(index);
      if (call === undefined || beginsAnother(call, { id, name, args, index })) {
        call = { id: '', name: '', arguments: '', besides: {} };
        calls.push(call);
        bytes += CALL_BYTES;
        if (index !== null) byIndex.set(index, call);
      }
      bytes += Buffer.byteLength(args);
      let saidMore = isVisible(args) || (name !== '' && call.name !== name);
      if (call.name !== name) bytes += Buffer.byteLength(name);
      if (call.id === '') call.id = id;
      if (call.name !== name) call.name += name;
      call.arguments = whole ? args : call.arguments + args;
      for (const [field, value] of Object.entries(besidesOf(piece))) {
        bytes += bytesOf(value);
        addField(call.besides, field, value);
        saidMore ||= bytesOf(value) > 0;
      }
      return saidMore;
    },

    bytes: () => bytes,
    named: () => calls.filter((call) => call.name !== ''),
  };
}

/** What comes along with a call. */
function besidesOf({
  index,
  id,
  type,
  function: _,
  name,
  arguments: __,
  ...besides
}: Record<string, unknown>) {
  return besides;
}

/**
 * Some servers give every call the index 0, or none: then a new id together with a name begins another call,
 * and so does a name after a call that is complete.
 */
function beginsAnother(
  call: PartialCall,
  next: { id: string; name: string; args: string; index: number | null },
): boolean {
  if (next.name === '') return false;
  if (next.id !== '' && call.id !== '') return next.id !== call.id;
  if (next.index === null) return call.name !== '';
  return next.args !== '' && record(parse(call.arguments)) !== null;
}

/** With arguments, a name of the offered ones where it means one, and an id of their own, which is none of those in the request. */
export function callableOf(
  calls: ToolCall[],
  request: ModelMessage[],
  offered: ReadonlySet<string>,
): ToolCall[] {
  const before = request.flatMap((message) => (message.role === 'assistant' ? message.calls : []));
  const taken = new Set(before.map(({ id }) => id));
  return calls.map((call) => {
    const id = !fits(call.id) || taken.has(call.id) ? freeId(taken) : call.id;
    taken.add(id);
    return {
      id,
      name: calledName(call.name, offered),
      arguments: call.arguments.trim() === '' ? '{}' : call.arguments,
    };
  });
}

/** Nine letters and digits: the one form that every server takes (Mistral takes no other). */
function freeId(taken: ReadonlySet<string>): string {
  let number = taken.size + 1;
  const form = () => `call${String(number).padStart(5, '0')}`;
  while (taken.has(form())) number++;
  return form();
}
