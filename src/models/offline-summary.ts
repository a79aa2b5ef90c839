/** The offline model's summary of a conversation: no understanding, but what was said last, a line each. */
import { unescaped } from '../core/origin.js';
import { forwardIn } from './offline-request.js';

const LINES = 40;
const LINE_CHARS = 160;

/** null when nobody asks for a summary. Pure. */
export function summaryFor(content: string): string | null {
  if (!content.endsWith('Conversation summary: write the new one.')) return null;
  const before = /<summary_so_far>\n([\s\S]*?)\n<\/summary_so_far>/.exec(content)?.[1] ?? '';
  const known = unescaped(before)
    .split('\n')
    .filter((line) => line.startsWith('- '));
  const said = [...content.matchAll(/<user_message sender="([^"]*)"[^>]*>([\s\S]*?)<\/user_message>/g)].map(
    ([, name = '', words = '']) => {
      const forward = forwardIn(words);
      if (forward === null) return `- ${name}: ${oneLine(unescaped(words))}`;
      return `- ${name}, forwarding ${forward.from || 'somebody'}: ${oneLine(unescaped(forward.words))}`;
    },
  );
  return ['## Facts', ...[...known, ...said].slice(-LINES)].join('\n');
}

function oneLine(words: string): string {
  const characters = [...words.replaceAll(/\s+/g, ' ').trim()];
  return characters.length <= LINE_CHARS
    ? characters.join('')
    : `${characters.slice(0, LINE_CHARS).join('')}…`;
}
