/**
 * Step 5, inside the model client: cuts a model's reasoning from its answer. Servers without a reasoning parser leave
 * it in the text, between `<think>` tags at the very start.
 */

const OPENING = /^\s*<(think|thinking)>/i;
const FENCE = /^\s*(```|~~~)/;

/** Nothing but what may become an opening tag. */
const HALF_OPENING = /^\s*<(?:t(?:h(?:i(?:n(?:k(?:i(?:n(?:g)?)?)?)?)?)?)?)?$/i;

/** Pure. The visible part of an unfinished text; empty while it may turn out to begin with a tag. */
export function visibleSoFar(text: string): string {
  const visible = withoutReasoning(text);
  return HALF_OPENING.test(visible) ? '' : visible;
}

/** Pure. Tags in the middle of a text or in code are what the model talks about, and stay. */
export function withoutReasoning(text: string): string {
  let rest = text;
  for (let opening = OPENING.exec(rest); opening !== null; opening = OPENING.exec(rest)) {
    const closing = `</${opening[1]?.toLowerCase()}>`;
    const end = rest.toLowerCase().indexOf(closing, opening[0].length);
    // Never closed: it ran out of tokens while thinking and said nothing.
    if (end < 0) return '';
    rest = rest.slice(end + closing.length).trimStart();
  }
  return rest === text ? afterLoneClosing(text) : rest;
}

/**
 * Some prompt templates open the tag themselves, so that only `</think>` arrives, on a line of its own. In a
 * code fence, or after an opening tag, it is something else.
 */
function afterLoneClosing(text: string): string {
  if (!text.includes('</think>')) return text;
  let fenced = false;
  let offset = 0;
  for (const line of text.split('\n')) {
    offset += line.length + 1;
    if (FENCE.test(line)) fenced = !fenced;
    if (line.includes('<think>')) return text;
    if (!fenced && line.trim() === '</think>') return text.slice(offset).trimStart();
  }
  return text;
}
