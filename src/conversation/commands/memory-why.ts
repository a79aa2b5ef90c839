/**
 * `/memory why`: what the last answer was given beside the conversation, each line with where it is from, those that
 * share the most words with the answer first.
 */
import type { Fate, MemoryHistoryStore, MemoryOwner, Trace, Version } from '../../core/memory.js';
import { phraseOf } from '../../core/phrase.js';
import { type Step, wordsBy } from '../../core/transcript.js';
import { code, counted, oneLine, withoutBullet } from '../quoting.js';
import { activeHere, type CommandAnswer, type CommandCall, type CommandServices } from './command.js';
import { broughtBy, type GivenLine, givenLines, sharedWords, sourceOf, wordFinder } from './memory-lines.js';
import { unquoted } from './parse.js';

const MOST_LINES = 15;
const LINE_CHARS = 200;
const QUERY_CHARS = 60;
const SHARED_SHOWN = 5;
/** The last answer is among this many messages, unless very many are waiting. */
const RECENT = 50;
const MOST_VERSIONS = 1_000;

/** How the lines of each kind are counted. */
const KINDS = {
  remembered: (count: number) => counted(count, 'remembered line'),
  recalled: (count: number) => counted(count, 'recalled line'),
  summary: (count: number) => counted(count, 'line of my summary', 'lines of my summary'),
  found: (count: number) => counted(count, 'line that a search found', 'lines that a search found'),
};

interface Ranked {
  line: GivenLine;
  shared: string[];
}

export async function why(
  call: CommandCall,
  services: CommandServices,
  words: string,
): Promise<CommandAnswer> {
  const owner = activeHere(call.command);
  if (words !== '') return whereWords(owner, words, services);
  const { room } = call.command;
  const given = await services.store.promptMemory(room, owner.personaId);
  const account = accountOf(await services.store.whereabouts(room, owner.personaId));
  if (!given) return { text: `There is no answer of mine here yet to explain.\n\n${account}` };
  const { text, steps } = await lastAnswer(room, owner, services);
  const ranked = rank(givenLines(given, steps, owner.personaId), text);
  if (ranked.length === 0) {
    return { text: `My last answer was given nothing that I remember.\n\n${account}` };
  }
  // Of all personas, because any of them may have written a line of the daily log.
  const ask = { chatId: owner.chatId, personaId: null, most: MOST_VERSIONS };
  const versions = await services.store.versions(ask);
  const shown = await Promise.all(
    ranked.slice(0, MOST_LINES).map(async (each) => ({
      related: each.shared.length > 0,
      text: await describeLine(each, versions, services),
    })),
  );
  const blocks = [
    `My last answer was given ${countedByKind(ranked)}.`,
    listed(
      'These share words with it:',
      shown.filter(({ related }) => related),
    ),
    listed(
      'These share none:',
      shown.filter(({ related }) => !related),
    ),
    ranked.length > MOST_LINES ? `And ${ranked.length - MOST_LINES} more.` : '',
    account,
  ];
  return { text: blocks.filter((block) => block !== '').join('\n\n') };
}

/** Its text, and the steps of its turn, which hold what searches found. */
async function lastAnswer(
  room: string,
  { personaId }: MemoryOwner,
  { store }: CommandServices,
): Promise<{ text: string; steps: Step[] }> {
  const ask = { room, personaId, limit: RECENT, overheard: 0, except: [] };
  const { messages, steps } = await store.window(ask);
  const own = messages.findLast(({ author }) => author.kind === 'persona' && author.id === personaId);
  return { text: own?.text ?? '', steps: (own?.turnId && steps.get(own.turnId)) || [] };
}

/** Most shared words first; otherwise in the order of the prompt. */
function rank(lines: GivenLine[], answer: string): Ranked[] {
  const wordsOf = wordFinder();
  const said = wordsOf(answer);
  return lines
    .map((line) => ({ line, shared: sharedWords(wordsOf(line.text), said) }))
    .sort((a, b) => b.shared.length - a.shared.length);
}

/** `5 remembered lines, 2 recalled lines and 1 line that a search found`. */
function countedByKind(ranked: Ranked[]): string {
  const parts = (['remembered', 'recalled', 'summary', 'found'] as const).flatMap((kind) => {
    const count = ranked.filter(({ line }) => line.kind === kind).length;
    return count === 0 ? [] : [KINDS[kind](count)];
  });
  const last = parts.pop() ?? '';
  return parts.length === 0 ? last : `${parts.join(', ')} and ${last}`;
}

async function describeLine(
  { line, shared }: Ranked,
  versions: Version[],
  services: CommandServices,
): Promise<string> {
  const words = shared.length === 0 ? '' : ` (shared: ${shared.slice(0, SHARED_SHOWN).join(', ')})`;
  const text = code(oneLine(withoutBullet(line.text), LINE_CHARS));
  return `- ${text} — ${await whence(line, versions, services)}${words}`;
}

async function whence(line: GivenLine, versions: Version[], services: CommandServices): Promise<string> {
  switch (line.kind) {
    case 'remembered': {
      const version = broughtBy(line, versions);
      const source = version
        ? await sourceOf(version, line.text, services)
        : 'written by hand, as far as I can tell';
      return `${code(line.file)}${line.tier === null ? '' : `, tier ${line.tier}`}; ${source}`;
    }
    case 'recalled':
      return 'recalled for your words, from earlier';
    case 'summary':
      return 'from my summary of what I no longer see word for word';
    case 'found':
      return `found by my search for ${code(oneLine(line.query, QUERY_CHARS))}`;
  }
}

function listed(title: string, lines: { text: string }[]): string {
  return lines.length === 0 ? '' : [title, '', ...lines.map(({ text }) => text)].join('\n');
}

// `/memory why WORDS`: what became of the messages that contain these words; and the totals of a whole room.

const MOST_MESSAGES = 3;
const QUOTE_CHARS = 80;
const NAME_CHARS = 60;

async function whereWords(
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

function accountOf({
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
