/** `/note`, `/scene` and `/me`: words of people that stand in the prompts of a chat. They live in its chat.yaml. */
import { cutAt, inOneLine } from '../../core/cut.js';
import { type ChatId, type PersonaId, type RoomId, roomParts } from '../../core/ids.js';
import { readingsOf } from '../../core/likeness.js';
import { nameInWords } from '../quoting.js';
import { type ChatCommand, type CommandAnswer, type CommandCall, commandOf } from './command.js';

const MOST_CHARS = 2_000;
const MOST_NAME = 60;
const MOST_DESCRIPTION = 1_000;
const isOff = (text: string) => text.toLowerCase() === 'off';

export const note = noteOf('note', 'Keep something in mind at the end of each prompt here; `off` removes it');
export const scene = noteOf('scene', 'Say where and when the conversation takes place; `off` removes it');

/** Alone it shows. Of a thread, it is the thread's. */
function noteOf(kind: 'note' | 'scene', description: string): ChatCommand {
  async function run({ command, chatFiles }: CommandCall): Promise<CommandAnswer> {
    const { chat, room, argument } = command;
    const { threadId } = roomParts(room);
    const text = argument.trim();
    if (text === '') {
      const { [kind]: now } = await chatFiles.notes(chat.id, threadId);
      return {
        text:
          now === '' ? `There is no ${kind} here. /${kind} TEXT sets one.` : `The ${kind} here:\n\n${now}`,
      };
    }
    if (text.length > MOST_CHARS)
      return { text: `A ${kind} has at most ${MOST_CHARS} characters; this has ${text.length}.` };
    await chatFiles.setNote(chat.id, threadId, { kind, text: isOff(text) ? '' : text });
    return { text: isOff(text) ? `The ${kind} is gone.` : `The ${kind} is set. /${kind} off removes it.` };
  }
  return commandOf(kind, description, run, { ofChat: true, changes: (argument) => argument.trim() !== '' });
}

/** Everybody for themselves. */
export const me = commandOf('me', 'Say who you are here: `/me NAME: DESCRIPTION`; `off` removes it', iAm, {
  aliases: ['iam'],
  ofChat: true,
});

async function iAm({ command, chatFiles, personas, store }: CommandCall): Promise<CommandAnswer> {
  const { chat, sender, argument, room } = command;
  const text = argument.trim();
  const { people } = await chatFiles.notes(chat.id, roomParts(room).threadId);
  const mine = people[sender.id];
  if (text === '') {
    if (mine === undefined) return { text: 'You have not said who you are here. Use /me NAME: DESCRIPTION' };
    return {
      text: `Here you are **${nameInWords(mine.name)}**${mine.description === '' ? '.' : `: ${mine.description}`}`,
    };
  }
  if (isOff(text)) {
    await chatFiles.setPerson(chat.id, sender.id, null);
    return { text: 'You are called by your own name again.' };
  }
  const [, given = '', about = ''] = /^([^:：]*)(?:[:：]([\s\S]*))?$/.exec(text) ?? [];
  const name = inOneLine(given).trim();
  const description = about.trim();
  if (name === '') return { text: 'Usage: /me NAME: DESCRIPTION' };
  if (Array.from(name).length > MOST_NAME) return { text: `A name has at most ${MOST_NAME} characters.` };
  if (description.length > MOST_DESCRIPTION)
    return { text: `A description has at most ${MOST_DESCRIPTION} characters.` };
  const others = [
    ...(await personas.list(chat.id)).flatMap((each) => [each.name, ...each.aliases]),
    ...Object.entries(people).flatMap(([id, who]) => (id === sender.id ? [] : [who.name])),
    ...(await speakers(store, room, chat.activePersona, sender.id)),
  ];
  const mineRead = new Set(readingsOf(name));
  if (others.some((other) => readingsOf(other).some((reading) => mineRead.has(reading)))) {
    return {
      text: `Somebody here has the name ${nameInWords(cutAt(name, MOST_NAME))} already; please choose another.`,
    };
  }
  await chatFiles.setPerson(chat.id, sender.id, { name, description });
  return { text: `You are **${nameInWords(name)}** here now.` };
}

const NEWEST = 100;

/** Names of those who spoke here of late. */
async function speakers(
  store: CommandCall['store'],
  room: RoomId,
  personaId: PersonaId,
  except: ChatId,
): Promise<string[]> {
  const heard = await store.window({ room, personaId, except: [], limit: NEWEST, overheard: NEWEST });
  return heard.messages.flatMap(({ author }) =>
    author.kind === 'person' && author.id !== except ? [author.name] : [],
  );
}
