/** Describes where a change of memory came from: who said what led to it, and when. */
import { roomParts } from '../../core/ids.js';
import type { Version } from '../../core/memory.js';
import { type StoredMessage, wordsBy } from '../../core/transcript.js';
import { code, oneLine } from '../quoting.js';
import type { CommandServices } from './command.js';
import { sharedWords, wordFinder } from './shared-words.js';

const QUOTE_CHARS = 80;
const NAME_CHARS = 60;

/** `about` is the line in question: of several messages, the one most similar to it is quoted. */
/** Also of what was written by a model that had read words from outside: such words may have led to it. */
export async function sourceOf(
  version: Version,
  about: string,
  services: Pick<CommandServices, 'store' | 'zone'>,
): Promise<string> {
  const source = await whence(version, about, services);
  return version.cause.tainted ? `${source} (${OUTSIDE})` : source;
}

export const OUTSIDE = 'words from outside had been read then';

async function whence(
  version: Version,
  about: string,
  { store, zone }: Pick<CommandServices, 'store' | 'zone'>,
): Promise<string> {
  const noted = `noted ${zone.time(version.at)}`;
  const { kind, turnId, personaId } = version.cause;
  if (kind === 'flush') return `${noted}, when older messages were put away`;
  if (kind === 'night') return `${noted}, when memory was put in order for the night`;
  const messages = turnId === null ? [] : await store.turnMessages(turnId);
  const message = closest(messages, about);
  if (!message) return `${noted}; what was said then is not kept`;
  // A control chat can write to other chats' memory; what is said there is not for them.
  if (roomParts(message.room).chatId !== version.chatId) return `${noted}, from another chat`;
  const { resetAt } = await store.view(message.room, personaId);
  if (message.id <= resetAt) return `${noted}, in a conversation that was reset since`;
  const name = wordsBy(message);
  const quote = code(oneLine(message.text, QUOTE_CHARS));
  return `from ${oneLine(name, NAME_CHARS)}, ${zone.time(message.sentAt)}: ${quote}`;
}

function closest(messages: StoredMessage[], about: string): StoredMessage | undefined {
  const wordsOf = wordFinder();
  const wanted = wordsOf(about);
  const shared = (message: StoredMessage) => sharedWords(wanted, wordsOf(message.text)).length;
  return messages
    .filter((message) => message.text.trim() !== '')
    .map((message) => ({ message, score: shared(message) }))
    .sort((a, b) => b.score - a.score)[0]?.message;
}
