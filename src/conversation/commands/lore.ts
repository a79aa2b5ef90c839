/** `/lore`: which entries of lorebooks stood in the last answer, and why; `/lore off BOOK`, `/lore on BOOK`. */
import type { LoreEntrySeen, LoreSeen } from '../../core/lorebook.js';
import { code, counted, oneLine } from '../quoting.js';
import { activeHere, type CommandAnswer, type CommandCall, changing, reading, withVerbs } from './command.js';
import { unquoted } from './parse.js';

const MOST_LINES = 40;
const NAME_CHARS = 80;

const BOOK = { name: 'book', description: 'The lorebook', required: true };

export const lore = withVerbs(
  { name: 'lore', aliases: [], description: 'Show which lore stood in the last answer' },
  [
    reading('show', 'which lore stood in the last answer, and why', show),
    changing('off', 'leaves a lorebook out here', (call, rest) => switchBook(call, rest, true), BOOK),
    changing('on', 'takes it in again', (call, rest) => switchBook(call, rest, false), BOOK),
  ],
);

async function show(call: CommandCall): Promise<CommandAnswer> {
  const { here, off } = await booksHere(call);
  if (here.length + off.length === 0) {
    return {
      text: 'There are no lorebooks here. Send me one as a file, or put it into `lorebooks/` of this chat.',
    };
  }
  const seen = seenIn(await call.store.promptMemory(call.command.room, activeHere(call.command).personaId));
  const kept = seen?.entries.filter((entry) => entry.kept) ?? [];
  const left = seen?.entries.filter((entry) => !entry.kept) ?? [];
  const none = seen === null ? 'I have not answered with them yet.' : 'No entry stood in my last answer.';
  const blocks = [
    here.length === 0 ? 'No lorebook is on here.' : `Lorebooks here: ${here.map(named).join(', ')}.`,
    off.length === 0 ? '' : `Off: ${off.map(named).join(', ')}.`,
    kept.length === 0 ? none : listed('In my last answer stood:', kept.map(lineOf)),
    left.length === 0
      ? ''
      : listed('These matched and did not fit into the budget:', left.map(lineOf), seen?.more),
    seen === null || seen.givenUp.length === 0
      ? ''
      : listed(
          'These patterns took too long and counted as not matching:',
          seen.givenUp.map((each) => `- ${named(each)}`),
        ),
  ];
  return { text: blocks.filter((block) => block !== '').join('\n\n') };
}

/** null: the last answer had no lorebook. */
export function seenIn(given: { lore?: string } | null): LoreSeen | null {
  return given?.lore ? (JSON.parse(given.lore) as LoreSeen) : null;
}

/** `- Moon, of Sky: by the key tide in the text of Sea`. */
export function lineOf({ book, name, key, from }: LoreEntrySeen): string {
  const within = from === undefined ? '' : ` in the text of ${named(from)}`;
  const why = key === null ? 'always there' : `by the key ${named(key)}${within}`;
  return `- ${named(name)}, of ${named(book)}: ${why}`;
}

function named(text: string): string {
  return code(oneLine(text, NAME_CHARS));
}

/** `more`: lines that are not told. */
function listed(head: string, lines: string[], more = 0): string {
  const hidden = Math.max(0, lines.length - MOST_LINES) + more;
  const rest = hidden === 0 ? [] : [`- … and ${counted(hidden, 'other', 'others')}`];
  return [head, ...lines.slice(0, MOST_LINES), ...rest].join('\n');
}

async function booksHere({ command, personas, lorebooks, chatFiles }: CommandCall) {
  const { chatId, personaId } = activeHere(command);
  const persona = (await personas.get(chatId, personaId)) ?? { id: personaId, from: null };
  const { own, others } = await lorebooks.booksFor(chatId, persona);
  const names = [...(own === null ? [] : [own]), ...others].map(({ name }) => name);
  const { loreOff } = await chatFiles.notes(chatId, null);
  return { here: names.filter((name) => !loreOff.includes(name)), off: loreOff };
}

async function switchBook(call: CommandCall, rest: string, isOff: boolean): Promise<CommandAnswer> {
  const { here, off } = await booksHere(call);
  const wanted = unquoted(rest).toLowerCase();
  const [from, others] = isOff ? [here, off] : [off, here];
  const isWanted = (name: string) => name.toLowerCase() === wanted;
  const found = from.find(isWanted);
  const state = isOff ? 'off' : 'on';
  if (found === undefined) {
    const already = others.find(isWanted);
    if (already !== undefined) return { text: `${named(already)} is ${state} already.` };
    const known = from.length === 0 ? 'There is none.' : `There are: ${from.map(named).join(', ')}.`;
    return { text: `I know no lorebook of this name that is ${isOff ? 'on' : 'off'} here. ${known}` };
  }
  await call.chatFiles.setLoreOff(call.command.chat.id, found, isOff);
  return {
    text: `${named(found)} is ${state} now; my next answer does ${isOff ? 'without it' : 'with it'}.`,
  };
}
