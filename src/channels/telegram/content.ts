/**
 * What a message says, for `inbound.ts`: its words with whom they mention, its files, or a label for what is neither.
 * Pure.
 */
import type { Attachment, InboundMessage } from '../../core/message.js';
import { mentioning } from '../kit/incoming.js';
import { foreignWriterOf } from './author.js';
import type { OurBot, Receiver } from './bots.js';
import { filesIn } from './files.js';
import { labelOf, tellingLabelOf } from './label.js';
import { messageIdOf } from './message-id.js';
import { markdownOf } from './rich.js';
import { type Content, FILE_FIELDS, type Message } from './update.js';

/** `/cmd@SomeBot` at the start of a message: the command, and the handle. */
const OPENING_COMMAND = /^(\/\w{1,64})(@\w+)(?=\s|$)/;

type Said = Pick<
  InboundMessage,
  'text' | 'attachments' | 'mentions' | 'mentionsBot' | 'addresses' | 'forwardedFrom'
>;

/**
 * Words and files, as `bot` received them; `replied` are the files of the message that it answers. What has neither
 * gets a label: in a direct chat whatever it is, since somebody waits for an answer there, and in a group what is
 * worth hearing. What has no label either is nothing.
 */
export function saidIn(
  message: Message,
  replied: Attachment[],
  receiver: Receiver & { direct: boolean },
): Said | null {
  const { bot, direct } = receiver;
  const own = FILE_FIELDS.some((field) => field in message) ? filesIn(message) : [];
  const words = wordsOf(message);
  const said = words || (own.length > 0 ? '' : (direct ? labelOf : tellingLabelOf)(message));
  if (said === null) return null;
  // Only the bot that received a file may fetch it.
  const files = [...own, ...replied].map((file) => ({ ...file, source: messageIdOf(bot, file.source) }));
  return {
    ...spoken(said, message, receiver),
    ...(files.length === 0 ? {} : { attachments: files }),
  };
}

/** The words with whom they are for. What somebody else wrote calls none of us. */
function spoken(
  words: string,
  message: Message,
  { bot, ours, direct }: Receiver & { direct: boolean },
): Omit<Said, 'attachments'> {
  // What is said to a persona's own bot alone is said to that persona.
  const own = direct && bot.personaId !== undefined ? [bot] : [];
  const forwardedFrom = foreignWriterOf(message);
  if (forwardedFrom !== undefined) {
    return { text: words, mentionsBot: false, ...addressing(own), forwardedFrom };
  }
  const { text, bots, called } = mentionsIn(words, message, ours);
  const names = mentioning(namesIn(words, message));
  const mentioned = [...own, ...bots];
  const addressed = addressing(mentioned);
  // Where personas have bots, who calls the main one means none of these, whomever else the words name.
  const isForMain = !direct && ours.length > 1 && called.some(({ personaId }) => personaId === undefined);
  return {
    text,
    ...names,
    mentionsBot: mentioned.length > 0,
    ...(isForMain ? { addresses: [] } : {}),
    ...addressed,
  };
}

function addressing(bots: OurBot[]): Pick<Said, 'addresses'> {
  const personas = new Set(bots.map(({ personaId }) => personaId).filter((id) => id !== undefined));
  return personas.size === 0 ? {} : { addresses: [...personas] };
}

export function wordsOf({ text, caption, rich_message: rich }: Content): string {
  return text || caption || (rich === undefined ? '' : markdownOf(rich));
}

function entitiesOf({ text, entities, caption_entities }: Message) {
  return (text ? entities : caption_entities) ?? [];
}

/** Of those without a handle, whom Telegram mentions by their names. */
function namesIn(words: string, message: Message): string[] {
  return entitiesOf(message).flatMap(({ type, offset, length }) =>
    type === 'text_mention' ? [words.slice(offset, offset + length)] : [],
  );
}

/**
 * Which of our bots a message mentions, in that order: by their usernames, by a mention, behind a command; and which of
 * these it calls, at its beginning or its end. And its words without our names on commands (`/cmd@OurBot` is `/cmd`;
 * another bot's stays).
 */
function mentionsIn(words: string, message: Message, ours: readonly OurBot[]) {
  let text = words;
  const found = new Map<OurBot, number>();
  const mention = (bot: OurBot, at: number) => found.set(bot, Math.min(at, found.get(bot) ?? at));
  // Telegram marks mentions and commands; a bridge or an older server may not, and the words say the same.
  const lower = words.toLowerCase();
  for (const bot of ours) {
    const at = positionOf(lower, handleOf(bot));
    if (at >= 0) mention(bot, at);
  }
  const entities = entitiesOf(message);
  // From the end, so that the offsets before a shortened command still hold.
  for (const { type, offset, length, user } of entities.toSorted((one, other) => other.offset - one.offset)) {
    const end = offset + length;
    const said = words.slice(offset, end).toLowerCase();
    for (const bot of ours) {
      if (type === 'text_mention' && user?.id === bot.id) mention(bot, offset);
      const handle = handleOf(bot);
      if (type !== 'bot_command' || handle === '' || !said.endsWith(handle)) continue;
      mention(bot, offset);
      text = text.slice(0, end - handle.length) + text.slice(end);
    }
  }
  const [opening, command = '', handle = ''] = OPENING_COMMAND.exec(text) ?? [''];
  const commanded = ours.find((bot) => handle !== '' && handleOf(bot) === handle.toLowerCase());
  if (commanded !== undefined) {
    mention(commanded, 0);
    text = command + text.slice(opening.length);
  }
  const inOrder = [...found].toSorted(([, one], [, other]) => one - other);
  const called = inOrder.filter(([, at]) => isFirstOrLast(words, at));
  return { text, bots: inOrder.map(([bot]) => bot), called: called.map(([bot]) => bot) };
}

/** Behind no more than a greeting, or with nothing behind it. */
function isFirstOrLast(words: string, at: number): boolean {
  return /^\s*(?:\S+\s+){0,2}$/u.test(words.slice(0, at)) || /^\S+\s*$/u.test(words.slice(at));
}

function handleOf({ username }: OurBot): string {
  return username === '' ? '' : `@${username.toLowerCase()}`;
}

/** Where a name stands in the text as a word of its own; -1 if nowhere. */
function positionOf(text: string, name: string): number {
  if (name === '') return -1;
  for (let at = text.indexOf(name); at >= 0; at = text.indexOf(name, at + 1)) {
    if (!/[\w@/]/.test(text[at - 1] ?? ' ') && !/\w/.test(text[at + name.length] ?? ' ')) return at;
  }
  return -1;
}
