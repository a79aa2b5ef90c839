/** Which of our bots a message mentions: by their usernames, by a mention, behind a command. Pure. */
import type { PersonaId } from '../../core/ids.js';
import type { Message } from './update.js';

/** One of our bots, as messages name it. */
export interface OurBot {
  id: number;
  /** Empty until it has logged in. */
  username: string;
  /** Whose it is; left out for the main bot. */
  personaId?: PersonaId;
}

export interface Mentions {
  /** The words without our names on commands (`/cmd@OurBot` is `/cmd`; another bot's stays). */
  text: string;
  /** In the order in which they are mentioned. */
  bots: OurBot[];
}

/** `/cmd@SomeBot` at the start of a message: the command, and the handle. */
const OPENING_COMMAND = /^(\/\w{1,64})(@\w+)(?=\s|$)/;

export function mentionsIn(words: string, message: Message, ours: readonly OurBot[]): Mentions {
  let text = words;
  const found = new Map<OurBot, number>();
  const mention = (bot: OurBot, at: number) => found.set(bot, Math.min(at, found.get(bot) ?? at));
  // Telegram marks mentions and commands; a bridge or an older server may not, and the words say the same.
  const lower = words.toLowerCase();
  for (const bot of ours) {
    const at = positionOf(lower, handleOf(bot));
    if (at >= 0) mention(bot, at);
  }
  const entities = (message.text ? message.entities : message.caption_entities) ?? [];
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
  const called = ours.find((bot) => handle !== '' && handleOf(bot) === handle.toLowerCase());
  if (called !== undefined) {
    mention(called, 0);
    text = command + text.slice(opening.length);
  }
  return { text, bots: [...found].toSorted(([, one], [, other]) => one - other).map(([bot]) => bot) };
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
