/** One line of `working.log`: an entry without secrets, and with long texts cut, which it says. Pure. */
import { cutAt, printableJson } from '../core/cut.js';
import type { JournalEntry } from '../core/journal.js';

/** Of one text; what is no text but longer than this as JSON becomes one. */
const MOST_CHARS = 20_000;
/** Deeper ones become text. */
const MOST_DEPTH = 20;

/** `clean` takes the secrets out of a text. */
export function lineOf(entry: JournalEntry, clean: (text: string) => string): string {
  // For some readers such signs end a line, or turn what stands in it.
  return printableJson(shown(entry, clean));
}

/** As files and streams show it. */
function shown(entry: JournalEntry, clean: (text: string) => string): JournalEntry {
  if (entry.type === 'GUPPIEvent') {
    const { content } = entry;
    return {
      ...entry,
      content: typeof content === 'string' ? cut(clean(content)) : fieldsOf(content, clean),
    };
  }
  const { action, reasoning, thought_signature, results } = entry;
  return {
    ...entry,
    ...(thought_signature === undefined ? {} : { thought_signature: cut(clean(thought_signature)) }),
    reasoning: cut(clean(reasoning)),
    action: { ...fieldsOf(action, clean), tool: action.tool },
    results: results === null ? null : (fieldsOf(results, clean) as typeof results),
  };
}

function fieldsOf(fields: object, clean: (text: string) => string, depth = 0): Record<string, unknown> {
  const shown = Object.entries(fields).map(([name, value]) => [clean(name), bounded(value, clean, depth)]);
  return Object.fromEntries(shown);
}

function bounded(value: unknown, clean: (text: string) => string, depth: number): unknown {
  if (typeof value === 'string') return cut(clean(value));
  if (typeof value !== 'object' || value === null) return value;
  const json = JSON.stringify(value);
  if (json.length > MOST_CHARS || depth >= MOST_DEPTH) return cut(clean(json));
  if (Array.isArray(value)) return value.map((item) => bounded(item, clean, depth + 1));
  return fieldsOf(value, clean, depth + 1);
}

function cut(text: string): string {
  if (text.length <= MOST_CHARS) return text;
  const kept = cutAt(text, MOST_CHARS);
  return `${kept}\n... [TRUNCATED: ${text.length - kept.length} chars removed] ...`;
}
