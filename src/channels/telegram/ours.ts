/** Our own bots, and which of them a message names: by their usernames, by a mention, behind a command. Pure. */
import type { PersonaId } from '../../core/ids.js';
import type { Message } from './update.js';

/** Faces of one account: the main bot, and one for every persona that has a token. */
export interface OurBot {
  id: number;
  /** Empty until it has logged in. */
  username: string;
  /** Whose it is; left out for the main bot. */
  personaId?: PersonaId;
}

export interface Named {
  /** The words without our names on commands (`/cmd@OurBot` is `/cmd`; another bot's stays). */
  text: string;
  /** In the order in which they are named. */
  bots: OurBot[];
}

/** `/cmd@SomeBot` at the start of a message: the command, and the name with its sign. */
const OPENING_COMMAND = /^(\/\w{1,64})(@\w+)(?=\s|$)/;

export function namedIn(words: string, message: Message, ours: readonly OurBot[]): Named {
  let text = words;
  const named = new Map<OurBot, number>();
  const name = (bot: OurBot, at: number) => named.set(bot, Math.min(at, named.get(bot) ?? at));
  // Telegram marks names and commands; a bridge or an older server may not, and the words say the same.
  const lower = words.toLowerCase();
  for (const bot of ours) {
    const at = placeOf(lower, signOf(bot));
    if (at >= 0) name(bot, at);
  }
  const entities = (message.text ? message.entities : message.caption_entities) ?? [];
  // From the end, so that the offsets before a shortened command still hold.
  for (const { type, offset, length, user } of entities.toSorted((one, other) => other.offset - one.offset)) {
    const end = offset + length;
    const said = words.slice(offset, end).toLowerCase();
    for (const bot of ours) {
      if (type === 'text_mention' && user?.id === bot.id) name(bot, offset);
      const sign = signOf(bot);
      if (type !== 'bot_command' || sign === '' || !said.endsWith(sign)) continue;
      name(bot, offset);
      text = text.slice(0, end - sign.length) + text.slice(end);
    }
  }
  const [opening, command = '', sign = ''] = OPENING_COMMAND.exec(text) ?? [''];
  const called = ours.find((bot) => sign !== '' && signOf(bot) === sign.toLowerCase());
  if (called !== undefined) {
    name(called, 0);
    text = command + text.slice(opening.length);
  }
  return { text, bots: [...named].toSorted(([, one], [, other]) => one - other).map(([bot]) => bot) };
}

function signOf({ username }: OurBot): string {
  return username === '' ? '' : `@${username.toLowerCase()}`;
}

/** Where a name stands in the text as a word of its own; -1 if nowhere. */
function placeOf(text: string, name: string): number {
  if (name === '') return -1;
  for (let at = text.indexOf(name); at >= 0; at = text.indexOf(name, at + 1)) {
    if (!/[\w@/]/.test(text[at - 1] ?? ' ') && !/\w/.test(text[at + name.length] ?? ' ')) return at;
  }
  return -1;
}
