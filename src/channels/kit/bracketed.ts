/** A line in brackets, which stands where a message has no words. What it tells is others' words, and stays within it. Pure. */

/** `what` may hold anything: it ends neither the line nor the bracket. */
export function bracketed(what: string): string {
  const line = what
    .replace(/[\p{Cc}\u2028\u2029]+/gu, ' ')
    .replaceAll('[', '(')
    .replaceAll(']', ')');
  return `[${line.trim()}]`;
}
