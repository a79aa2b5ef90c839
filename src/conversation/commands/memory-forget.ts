/** `/memory forget TEXT`: asks first. Before it removes the text, it aborts turns and flushes, which could write it again. */
import type { ChatId, PersonaId } from '../../core/ids.js';
import type { FoundLine, KeptByAgents } from '../../core/memory.js';
import { FORGOTTEN, type Phrase, phraseOf } from '../../core/phrase.js';
import type { StoredCommand } from '../../core/receipt.js';
import { sessionFile } from '../../core/task.js';
import { code, counted, oneLine, withoutBullet } from '../quoting.js';
import type { BaseServices } from '../services.js';
import { type CommandAnswer, type CommandCall, firstOf } from './command.js';
import { unquoted } from './parse.js';

const WAIT_MS = 120_000;
const MOST_FOUND = 1_000;
const MOST_SHOWN = 15;
const LINE_CHARS = 200;
/** More than one, because the text may be written again during the removal. */
const PASSES = 3;

const IT_IS_FORGOTTEN =
  'Forgotten: it is no longer in my memory or in anything I keep of this chat. ' +
  'The chat still shows what was sent here before; delete that in the app if you want it gone, too.';
const NOWHERE = { text: 'I can’t find that in my memory or in anything I keep of this chat.' };
const FOR_OWNERS = {
  text: 'That is in a MEMORY.md, and only owners change tier 1 here. Please ask an owner.',
};

interface Findings {
  lines: FoundLine[];
  archives: FoundLine[];
  transcripts: FoundLine[];
  messages: number;
  others: number;
  /** There are more hits than the search returns. */
  full: boolean;
}

export async function forget(call: CommandCall, text: string): Promise<CommandAnswer> {
  const { command, clock } = call;
  const phrase = phraseIn(text);
  if (typeof phrase === 'string') return { text: phrase };
  const found = await search(call, phrase);
  if (isNothing(found)) return NOWHERE;
  if (isForOwners(call, found)) return FOR_OWNERS;
  const { name, room, sender, platformMessageId: askedBy } = command;
  const ifYes = { name, argument: `yes ${text}` };
  const until = clock.now() + WAIT_MS;
  const options = [
    { label: 'Forget', command: ifYes },
    { label: 'Keep', command: { name, argument: 'keep' } },
  ];
  return {
    text: preview(found),
    effects: [{ kind: 'ask', room, senderId: sender.id, askedBy, ifYes, until }],
    choices: { options, forMs: WAIT_MS },
  };
}

/** Files first, then the store. This command's own row loses the text last, so after a crash the command is repeated. */
export async function carryOut(call: CommandCall, text: string): Promise<CommandAnswer> {
  const { command, memory, media, store, recall, journal } = call;
  const chatId = command.chat.id;
  const phrase = phraseIn(text);
  if (typeof phrase === 'string') return { text: phrase };
  const found = await search(call, phrase);
  if (isNothing(found) && command.tries === 1) return NOWHERE;
  if (isForOwners(call, found)) return FOR_OWNERS;
  let gone = false;
  for (let pass = 0; pass < PASSES && !gone; pass++) {
    await endWork(call);
    await memory.erase(chatId, phrase, await keptByAgents(call));
    await media.remove((await store.findWords(chatId, phrase)).files);
    await store.eraseWords(chatId, phrase, FORGOTTEN);
    await recall.forget(chatId);
    await journal.caughtUp();
    // Work that began meanwhile may have read the text and written it again.
    await endWork(call);
    await forgetCopies(call, chatId, null);
    gone = isNothing(await search(call, phrase));
  }
  await store.endErasing(chatId, phrase, FORGOTTEN);
  if (!gone) return { text: 'I removed it, but it was written again. Please try again in a moment.' };
  return { text: isNothing(found) ? IT_IS_FORGOTTEN : `${IT_IS_FORGOTTEN}\n\nRemoved: ${summary(found)}.` };
}

/** If only owners change tier 1, a group's administrator cannot remove text from it. */
function isForOwners({ command, isOwner, settings }: CommandCall, { lines }: Findings): boolean {
  if (settings.tier1By !== 'owners' || isOwner || command.chat.kind === 'direct') return false;
  return lines.some(({ file }) => file.endsWith('/MEMORY.md'));
}

/** Whether a crash prevented the answer after this command's own row had lost the text. */
export function isErased({ argument, tries }: StoredCommand): boolean {
  return tries > 1 && argument.includes(FORGOTTEN);
}

/** Finishes after such a crash; everything else is already removed. */
export async function endOf(call: CommandCall): Promise<CommandAnswer> {
  const { id } = call.command.chat;
  await forgetCopies(call, id, null);
  await call.store.endErasing(id, null, FORGOTTEN);
  return { text: IT_IS_FORGOTTEN };
}

/** A string is the reason for a refusal. */
function phraseIn(text: string): Phrase | string {
  const wanted = unquoted(text);
  if (Array.from(wanted).length < 2)
    return 'Please give me at least two characters to forget; a single one is nearly everywhere.';
  // Text with the marker cannot be distinguished from forgotten words.
  if (wanted.includes(FORGOTTEN))
    return `${FORGOTTEN} replaces words that were forgotten; there is nothing behind it to forget.`;
  return phraseOf(wanted);
}

async function search(call: CommandCall, phrase: Phrase): Promise<Findings> {
  const { id } = call.command.chat;
  const all = await call.memory.find(id, phrase, MOST_FOUND, await keptByAgents(call));
  const isArchive = ({ file }: FoundLine) => file.startsWith('archive/');
  const isTranscript = ({ file }: FoundLine) => file.includes('/sessions/');
  return {
    lines: all.filter((line) => !isArchive(line) && !isTranscript(line)),
    archives: all.filter(isArchive),
    transcripts: all.filter(isTranscript),
    full: all.length === MOST_FOUND,
    ...(await call.store.findWords(id, phrase)),
  };
}

/** Transcripts of deleted tasks count as this chat's. */
async function keptByAgents({ command, isOwner, store }: CommandCall): Promise<KeptByAgents> {
  const others = new Set((await store.tasksElsewhere(command.chat.id)).map(sessionFile));
  return { isOthers: (file) => others.has(file), shared: isOwner };
}

function isNothing({ lines, archives, transcripts, messages, others }: Findings): boolean {
  return lines.length + archives.length + transcripts.length + messages + others === 0;
}

async function endWork({ command, interruptTurns, windows }: CommandCall): Promise<void> {
  // Turns first: one that ends could start a flush.
  await interruptTurns();
  await windows.haltChat(command.chat.id);
}

function preview(found: Findings): string {
  const all = found.lines.map(
    ({ file, text }) => `- ${code(file)}: ${code(oneLine(withoutBullet(text), LINE_CHARS))}`,
  );
  const lines = firstOf(all, MOST_SHOWN, (left) => `- and ${left} more lines`);
  const blocks = [
    `This would be removed permanently: ${summary(found)}.`,
    lines.join('\n'),
    'Answer `yes` within two minutes to remove it. Any other message keeps everything.',
  ];
  return blocks.filter((block) => block !== '').join('\n\n');
}

/** How much was found, without quoting it. */
function summary({ lines, archives, transcripts, messages, others, full }: Findings): string {
  const filesAmong = (found: FoundLine[]) => new Set(found.map(({ file }) => file)).size;
  const archiveFiles = filesAmong(archives);
  const transcriptFiles = filesAmong(transcripts);
  const parts = [
    lines.length > 0 && `${counted(lines.length, 'whole line')} of memory and daily log`,
    messages > 0 && `the words in ${counted(messages, 'message')}`,
    archiveFiles > 0 && `the words in ${counted(archiveFiles, 'archive')}`,
    transcriptFiles > 0 && `the words in ${counted(transcriptFiles, 'transcript')} of agents`,
    others > 0 &&
      `and the matching parts of ${counted(others, 'other note')} (summaries, earlier versions of memory, arguments of tools)`,
  ];
  return (full ? 'at least ' : '') + parts.filter((part) => part !== false).join(', ');
}

/** Copies outside the store and groups/: records for `coterie replay`, and exports that wait. `personaId` null: of the whole chat. */
export async function forgetCopies(
  { records, exports }: BaseServices,
  chatId: ChatId,
  personaId: PersonaId | null,
): Promise<void> {
  await records.forget(chatId, personaId);
  await exports.forget(chatId);
}
