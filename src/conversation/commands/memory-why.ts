/** `/memory why`: the remembered lines that the last answer was given, most shared words first. */
import type { MemoryOwner, Version } from '../../core/memory.js';
import type { CommandAnswer, CommandCall, CommandServices } from './command.js';
import { activeHere } from './here.js';
import { broughtBy, type RememberedLine, rememberedLines } from './memory-lines.js';
import { sourceOf } from './memory-source.js';
import { accountOf, whereWords } from './memory-where.js';
import { code, counted, oneLine, withoutBullet } from './quoting.js';
import { sharedWords, wordFinder } from './shared-words.js';

const MOST_LINES = 15;
const LINE_CHARS = 200;
const SHARED_SHOWN = 5;
/** The last answer is among this many messages, unless very many are waiting. */
const RECENT = 50;
const MOST_VERSIONS = 1_000;

interface Ranked {
  line: RememberedLine;
  shared: string[];
}

export async function why(
  call: CommandCall,
  services: CommandServices,
  words: string,
): Promise<CommandAnswer> {
  const owner = await activeHere(call.command.chat, services.personas);
  if (words !== '') return whereWords(owner, words, services);
  const { room } = call.command;
  const given = await services.store.promptMemory(room, owner.personaId);
  const account = accountOf(await services.store.whereabouts(room, owner.personaId));
  if (!given) return { text: `There is no answer of mine here yet to explain.\n\n${account}` };
  const ranked = rank(rememberedLines(given, owner.personaId), await lastAnswer(room, owner, services));
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
    `My last answer was given ${counted(ranked.length, 'remembered line')}.`,
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

async function lastAnswer(
  room: string,
  { personaId }: MemoryOwner,
  { store }: CommandServices,
): Promise<string> {
  const ask = { room, personaId, limit: RECENT, overheard: 0, except: [] };
  const { messages } = await store.window(ask);
  const own = messages.findLast(({ author }) => author.kind === 'persona' && author.id === personaId);
  return own?.text ?? '';
}

/** Most shared words first; otherwise in the order of the files. */
function rank(lines: RememberedLine[], answer: string): Ranked[] {
  const wordsOf = wordFinder();
  const said = wordsOf(answer);
  return lines
    .map((line) => ({ line, shared: sharedWords(wordsOf(line.text), said) }))
    .sort((a, b) => b.shared.length - a.shared.length);
}

async function describeLine(
  { line, shared }: Ranked,
  versions: Version[],
  services: CommandServices,
): Promise<string> {
  const version = broughtBy(line, versions);
  const source = version
    ? await sourceOf(version, line.text, services)
    : 'written by hand, as far as I can tell';
  const tier = line.tier === null ? '' : `, tier ${line.tier}`;
  const words = shared.length === 0 ? '' : ` (shared: ${shared.slice(0, SHARED_SHOWN).join(', ')})`;
  return `- ${code(oneLine(withoutBullet(line.text), LINE_CHARS))} — ${code(line.file)}${tier}; ${source}${words}`;
}

function listed(title: string, lines: { text: string }[]): string {
  return lines.length === 0 ? '' : [title, '', ...lines.map(({ text }) => text)].join('\n');
}
