/** `/memory why`: the memory behind the last answer, with sources; `/memory why WORDS`: the fate of messages with these words. */
import type { PromptMemory, Trace, Version } from '../../core/memory.js';
import { phraseOf } from '../../core/phrase.js';
import { wordsBy } from '../../core/transcript.js';
import { code, counted, oneLine, withoutBullet } from '../quoting.js';
import { activeHere, type CommandAnswer, type CommandCall, firstOf } from './command.js';
import { lineOf, seenIn } from './lore.js';
import { broughtBy, type GivenLine, givenLines, sharedWords, sourceOf, wordFinder } from './memory-lines.js';
import { unquoted } from './parse.js';

const MOST_LINES = 15;
const LINE_CHARS = 200;
const QUERY_CHARS = 60;
const SHARED_SHOWN = 5;
/** The last answer is among this many messages, unless very many are waiting. */
const RECENT = 50;
const MOST_VERSIONS = 1_000;
const MOST_MESSAGES = 3;
const QUOTE_CHARS = 80;
const NAME_CHARS = 60;

const KINDS = {
  remembered: ['remembered line', 'remembered lines'],
  recalled: ['recalled line', 'recalled lines'],
  summary: ['line of my summary', 'lines of my summary'],
  found: ['line that a search found', 'lines that a search found'],
} as const;

export async function why(call: CommandCall, words: string): Promise<CommandAnswer> {
  if (words !== '') return whereWords(call, words);
  const { store, command } = call;
  const { room } = command;
  const { chatId, personaId } = activeHere(command);
  const { window, flushed, archived } = await store.whereabouts(room, personaId);
  const account = `Messages here: ${window} in my window, ${flushed} read by a memory flush, ${archived} archived with a pending flush.`;
  const given = await store.promptMemory(room, personaId);
  if (!given) return { text: `I have not answered here yet, so there is nothing to explain.\n\n${account}` };
  // The steps of its turn hold the search results.
  const recent = { room, personaId, limit: RECENT, overheard: 0, except: [] };
  const { messages, steps } = await store.window(recent);
  const own = messages.findLast(({ author }) => author.kind === 'persona' && author.id === personaId);
  const lines = givenLines(given, (own?.turnId && steps.get(own.turnId)) || [], personaId);
  const lore = listed('Lore that stood in it:', loreLines(given));
  if (lines.length === 0) {
    const blocks = ['My last answer used no memory.', lore, account];
    return { text: blocks.filter((block) => block !== '').join('\n\n') };
  }
  const wordsOf = wordFinder();
  const said = wordsOf(own?.text ?? '');
  const ranked = lines
    .map((line) => ({ line, shared: sharedWords(wordsOf(line.text), said) }))
    .sort((a, b) => b.shared.length - a.shared.length);
  // Of all personas, because any of them may have written a line of the daily log.
  const versions = await store.versions({ chatId, personaId: null, most: MOST_VERSIONS });
  const related: string[] = [];
  const others: string[] = [];
  for (const { line, shared } of ranked.slice(0, MOST_LINES)) {
    const also = shared.length === 0 ? '' : ` (shared: ${shared.slice(0, SHARED_SHOWN).join(', ')})`;
    const text = code(oneLine(withoutBullet(line.text), LINE_CHARS));
    (also === '' ? others : related).push(`- ${text} — ${await whence(call, line, versions)}${also}`);
  }
  const blocks = [
    `My last answer used ${countedByKind(lines)}.`,
    listed('Lines that share words with the answer:', related),
    listed('Other lines:', others),
    lines.length > MOST_LINES ? `And ${lines.length - MOST_LINES} more.` : '',
    lore,
    account,
  ];
  return { text: blocks.filter((block) => block !== '').join('\n\n') };
}

function loreLines(given: PromptMemory): string[] {
  const kept = seenIn(given)?.entries.filter((entry) => entry.kept) ?? [];
  return firstOf(kept.map(lineOf), MOST_LINES, (left) => `- … and ${left} more; /lore lists them`);
}

/** `5 remembered lines, 2 recalled lines and 1 line that a search found`. */
function countedByKind(lines: GivenLine[]): string {
  const parts = Object.entries(KINDS).flatMap(([kind, [one, many]]) => {
    const count = lines.filter((line) => line.kind === kind).length;
    return count === 0 ? [] : [counted(count, one, many)];
  });
  const last = parts.pop() ?? '';
  return parts.length === 0 ? last : `${parts.join(', ')} and ${last}`;
}

async function whence(call: CommandCall, line: GivenLine, versions: Version[]): Promise<string> {
  switch (line.kind) {
    case 'recalled':
      return 'recalled for your message';
    case 'summary':
      return 'from my summary of older messages';
    case 'found':
      return `found by my search for ${code(oneLine(line.query, QUERY_CHARS))}`;
    case 'remembered': {
      const version = broughtBy(line, versions);
      const source = version ? await sourceOf(call, version, line.text) : 'probably written by hand';
      return `${code(line.file)}${line.tier === null ? '' : `, tier ${line.tier}`}; ${source}`;
    }
  }
}

function listed(title: string, lines: string[]): string {
  return lines.length === 0 ? '' : [title, '', ...lines].join('\n');
}

async function whereWords(call: CommandCall, words: string): Promise<CommandAnswer> {
  const { chatId, personaId } = activeHere(call.command);
  const text = unquoted(words);
  if (text === '') return { text: 'Please say which words to look for.' };
  const wanted = { phrase: phraseOf(text), personaId };
  const traces = await call.store.trace({ chatId, wanted, most: MOST_MESSAGES });
  if (traces.length === 0) return { text: 'I can’t find a message here with those words.' };
  return { text: traces.map((trace) => `- ${describeTrace(call, trace)}`).join('\n') };
}

function describeTrace(
  { command, zone, archives }: CommandCall,
  { message, personaId, fate }: Trace,
): string {
  const time = zone.time(message.sentAt);
  // Messages forgotten by a reset are never quoted.
  if (fate.kind === 'reset') return `A message of ${time}: forgotten by /reset, or never shown to me.`;
  const { author } = message;
  const isOwn = author.kind === 'persona' && author.id === personaId;
  const who = isOwn ? 'I' : oneLine(wordsBy(message), NAME_CHARS);
  const path = fate.kind === 'archived' && fate.file;
  const file = path ? code(archives.shownPath(command.chat.id, path)) : 'an archive';
  const flushed = fate.kind === 'window' && fate.flushed ? ' A memory flush has read it, too.' : '';
  const fates = {
    waiting: 'It is waiting to be answered.',
    window: `It is in my window, so I still see it word for word.${flushed}`,
    flushed:
      'It has left my window after a memory flush. What mattered should be in my memory or in the summary.',
    archived: `It has left my window. It is word for word in ${file}. Its memory flush is pending.`,
    overheard: 'It was not said to me, so no memory flush reads it.',
  };
  return `${who}, ${time}: ${code(oneLine(message.text, QUOTE_CHARS))} ${fates[fate.kind]}`;
}
