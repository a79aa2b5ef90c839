/**
 * `/memory forget TEXT`: shows what would be removed and asks; after a yes, permanently removes the text from the
 * chat's files and the store. Running turns and flushes are aborted first, so that it cannot come back.
 */

import type { FoundLine, KeptByAgents } from '../../core/memory.js';
import { FORGOTTEN, type Phrase, phraseOf } from '../../core/phrase.js';
import type { StoredCommand } from '../../core/receipt.js';
import type { CommandEffect } from '../../core/store.js';
import { sessionFile } from '../../core/task.js';
import { code, counted, oneLine, withoutBullet } from '../quoting.js';
import { forgetCopies } from '../services.js';
import type { CommandAnswer, CommandCall, CommandServices } from './command.js';
import { unquoted } from './parse.js';

/** How long a yes is accepted. */
const WAIT_MS = 120_000;
const MOST_FOUND = 1_000;
const MOST_SHOWN = 15;
const LINE_CHARS = 200;
/** More than one, because the text may be written again during the removal. */
const PASSES = 3;

const IT_IS_FORGOTTEN =
  'Forgotten: it is no longer in my memory or in anything I keep of this chat. ' +
  'The chat still shows what was sent here before; delete that in the app if you want it gone, too.';
const NOWHERE = 'I can’t find that in my memory or in anything I keep of this chat.';

interface Findings {
  lines: FoundLine[];
  archives: FoundLine[];
  transcripts: FoundLine[];
  messages: number;
  others: number;
  /** There are more hits than the search returns. */
  full: boolean;
}

export async function forget(
  call: CommandCall,
  services: CommandServices,
  text: string,
): Promise<CommandAnswer> {
  const phrase = phraseIn(text);
  if (typeof phrase === 'string') return { text: phrase };
  const { command } = call;
  const found = await search(call, phrase, services);
  if (isNothing(found)) return { text: NOWHERE };
  if (isForOwners(call, services, found)) return { text: FOR_OWNERS };
  const ifYes = { name: command.name, argument: `yes ${text}` };
  const asked: CommandEffect = {
    kind: 'ask',
    room: command.room,
    senderId: command.sender.id,
    askedBy: command.platformMessageId,
    ifYes,
    until: services.clock.now() + WAIT_MS,
  };
  const options = [
    { label: 'Forget', command: ifYes },
    { label: 'Keep', command: { name: command.name, argument: 'keep' } },
  ];
  return { text: preview(found), effects: [asked], choices: { options, forMs: WAIT_MS } };
}

/** Files first, then the store. This command's own row loses the text last, so after a crash the command is repeated. */
export async function carryOut(
  call: CommandCall,
  services: CommandServices,
  text: string,
): Promise<CommandAnswer> {
  const phrase = phraseIn(text);
  if (typeof phrase === 'string') return { text: phrase };
  const { command } = call;
  const found = await search(call, phrase, services);
  if (isNothing(found) && command.tries === 1) return { text: NOWHERE };
  if (isForOwners(call, services, found)) return { text: FOR_OWNERS };
  let gone = false;
  for (let pass = 0; pass < PASSES && !gone; pass++) {
    await endWork(call, services);
    await services.memory.erase(command.chat.id, phrase, await keptByAgents(call, services));
    await services.media.remove(await services.store.filesWithWords(command.chat.id, phrase));
    await services.store.eraseWords(command.chat.id, phrase, FORGOTTEN);
    await services.recall.forget(command.chat.id);
    await services.journal.caughtUp();
    // Work that began meanwhile may have read the text and written it again.
    await endWork(call, services);
    await forgetCopies(services, command.chat.id, null);
    gone = isNothing(await search(call, phrase, services));
  }
  await services.store.endErasing(command.chat.id, phrase, FORGOTTEN);
  if (!gone) return { text: 'I removed it, but it was written again. Please try again in a moment.' };
  return { text: isNothing(found) ? IT_IS_FORGOTTEN : `${IT_IS_FORGOTTEN}\n\nRemoved: ${summary(found)}.` };
}

/** If only owners change tier 1, a group's administrator cannot remove text from it. */
function isForOwners(
  { command, isOwner }: CommandCall,
  { settings }: CommandServices,
  { lines }: Findings,
): boolean {
  if (settings.tier1By !== 'owners' || isOwner || command.chat.kind === 'direct') return false;
  return lines.some(({ file }) => file.endsWith('/MEMORY.md'));
}

const FOR_OWNERS = 'That is in a MEMORY.md, and only owners change tier 1 here. Please ask an owner.';

/** Whether a crash prevented the answer after this command's own row had lost the text. */
export function isErased({ argument, tries }: StoredCommand): boolean {
  return tries > 1 && argument.includes(FORGOTTEN);
}

/** Finishes after such a crash; everything else is already removed. */
export async function endOf({ command }: CommandCall, services: CommandServices): Promise<CommandAnswer> {
  const { store } = services;
  await forgetCopies(services, command.chat.id, null);
  await store.endErasing(command.chat.id, null, FORGOTTEN);
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

async function search(call: CommandCall, phrase: Phrase, services: CommandServices): Promise<Findings> {
  const { chat } = call.command;
  const all = await services.memory.find(chat.id, phrase, MOST_FOUND, await keptByAgents(call, services));
  const isArchive = ({ file }: FoundLine) => file.startsWith('archive/');
  const isTranscript = ({ file }: FoundLine) => file.includes('/sessions/');
  return {
    lines: all.filter((line) => !isArchive(line) && !isTranscript(line)),
    archives: all.filter(isArchive),
    transcripts: all.filter(isTranscript),
    full: all.length === MOST_FOUND,
    ...(await services.store.findWords(chat.id, phrase)),
  };
}

/** Transcripts of deleted tasks count as this chat's. */
async function keptByAgents(
  { command, isOwner }: CommandCall,
  { store }: CommandServices,
): Promise<KeptByAgents> {
  const others = new Set((await store.tasksElsewhere(command.chat.id)).map(sessionFile));
  return { isOthers: (file) => others.has(file), shared: isOwner };
}

function isNothing({ lines, archives, transcripts, messages, others }: Findings): boolean {
  return lines.length + archives.length + transcripts.length + messages + others === 0;
}

async function endWork(
  { command, interruptTurns }: CommandCall,
  { windows }: CommandServices,
): Promise<void> {
  // Turns first: one that ends could start a flush.
  await interruptTurns();
  await windows.haltChat(command.chat.id);
}

function preview(found: Findings): string {
  const lines = found.lines.slice(0, MOST_SHOWN).map(({ file, text }) => {
    return `- ${code(file)}: ${code(oneLine(withoutBullet(text), LINE_CHARS))}`;
  });
  if (found.lines.length > MOST_SHOWN) lines.push(`- and ${found.lines.length - MOST_SHOWN} more lines`);
  const blocks = [
    `This would be removed permanently: ${summary(found)}.`,
    lines.join('\n'),
    'Answer `yes` within two minutes to remove it. Any other message keeps everything.',
  ];
  return blocks.filter((block) => block !== '').join('\n\n');
}

/** How much was found, without quoting it. */
function summary({ lines, archives, transcripts, messages, others, full }: Findings): string {
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

function filesAmong(lines: FoundLine[]): number {
  return new Set(lines.map(({ file }) => file)).size;
}
