/** `/memory why WORDS`: what became of the messages that contain these words; and the totals of a whole room. */

import type { MemoryOwner } from '../../core/memory.js';
import type { Fate, MemoryHistoryStore, Trace } from '../../core/memory-history.js';
import { phraseOf } from '../../core/phrase.js';
import { wordsBy } from '../../core/transcript.js';
import { code, counted, oneLine } from '../quoting.js';
import type { CommandAnswer, CommandServices } from './command.js';
import { unquoted } from './parse.js';

const MOST_MESSAGES = 3;
const QUOTE_CHARS = 80;
const NAME_CHARS = 60;

export async function whereWords(
  { chatId, personaId }: MemoryOwner,
  words: string,
  services: CommandServices,
): Promise<CommandAnswer> {
  const wanted = unquoted(words);
  if (wanted === '') return { text: 'Please say which words to look for.' };
  const traces = await services.store.trace({
    chatId,
    wanted: { phrase: phraseOf(wanted), personaId },
    most: MOST_MESSAGES,
  });
  if (traces.length === 0) return { text: 'I find no message here in which these words stand.' };
  return { text: traces.map((trace) => `- ${describeTrace(trace, chatId, services)}`).join('\n') };
}

function describeTrace(
  { message, personaId, fate }: Trace,
  chatId: string,
  { zone, archives }: CommandServices,
): string {
  const time = zone.time(message.sentAt);
  // Messages forgotten by a reset are not shown again, not even as a quote.
  if (fate.kind === 'reset') return `A message of ${time}: it was forgotten by /reset, or never shown to me.`;
  const { author } = message;
  const isOwn = author.kind === 'persona' && author.id === personaId;
  const who = isOwn ? 'I' : oneLine(wordsBy(message), NAME_CHARS);
  const went = whereItWent(fate, (file) => archives.shownPath(chatId, file));
  return `${who}, ${time}: ${code(oneLine(message.text, QUOTE_CHARS))} ${went}`;
}

function whereItWent(fate: Exclude<Fate, { kind: 'reset' }>, shownPath: (file: string) => string): string {
  switch (fate.kind) {
    case 'waiting':
      return 'It waits to be answered or noted.';
    case 'window':
      return fate.flushed
        ? 'It is in my window, so I still see it word for word; a memory flush has seen it, too.'
        : 'It is in my window, so I still see it word for word.';
    case 'flushed':
      return 'It lies behind my window. A memory flush had seen it before; what mattered should be in my memory or in the summary.';
    case 'archived':
      return `It lies behind my window, word for word in ${fate.file === '' ? 'an archive' : code(shownPath(fate.file))}. A memory flush of it is still owed.`;
    case 'overheard':
      return 'It was not said to me; I overheard it, and no memory flush is made of it.';
  }
}

export function accountOf({
  window,
  flushed,
  archived,
}: Awaited<ReturnType<MemoryHistoryStore['whereabouts']>>): string {
  return (
    `Of what was said here to me and by me, ${counted(window, 'message')} ${is(window)} in my window, ` +
    `${flushed} ${is(flushed)} behind it after a memory flush, and ${archived} ${is(archived)} archived with a flush still owed.`
  );
}

function is(count: number): string {
  return count === 1 ? 'is' : 'are';
}
