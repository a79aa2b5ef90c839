/**
 * `coterie import-chat`: histories of other programs become archives of a persona, which its search finds. The gateway may run.
 * The file is read twice: once to see that it is whole and who speaks in it, and once to write; a kill between leaves whole parts.
 */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { openAudit } from './audit-start.js';
import { BY_OPERATOR, commandConfig, commandLog, quoted, tell, wrongOption } from './command.js';
import type { Config } from './config.js';
import type { ArchivedMessage } from './core/chat-record.js';
import { systemClock } from './core/clock.js';
import { cutAt, cutWithMarker, inOneLine, printableLine } from './core/cut.js';
import { createZone, type Zone } from './core/dates.js';
import { Fault } from './core/errors.js';
import { type ChatId, DEFAULT_PERSONA } from './core/ids.js';
import { looksLike } from './core/likeness.js';
import type { Log } from './core/log.js';
import type { Persona } from './core/persona.js';
import { createIdSet, createImportedArchives, type ImportedArchives, importedId } from './groups/archives.js';
import { isChatId } from './groups/paths.js';
import { createPersonas } from './groups/personas.js';
import { askToPropose } from './history-proposal.js';
import type { HistoryItem, HistoryMessage } from './importing/histories/history.js';
import { type History, openHistory } from './importing/histories/open.js';
import { takeLock } from './operating/lock.js';
import { enterData, storeOf } from './paths.js';
import { withReads } from './store/inspect.js';

export interface ImportChatOptions {
  chat: string;
  persona?: string;
  me?: string;
  only?: string;
  undo?: string;
  dryRun?: boolean;
  propose?: boolean;
}

const counted = (number: number, what: string) => `${number} ${what}${number === 1 ? '' : 's'}`;

export async function importChat(
  configFile: string | undefined,
  file: string | undefined,
  options: ImportChatOptions,
): Promise<void> {
  const { chat: chatId, undo, dryRun = false } = options;
  if (!isChatId(chatId)) throw wrongOption('chat', chatId, 'the ID of a chat, like telegram_123456');
  if (undo !== undefined && file !== undefined) throw wrongOption('undo', undo, 'no file with it');
  const { config } = await commandConfig(configFile);
  const log = commandLog(config);
  const imported = createImportedArchives(config.groupsDir, createZone(config.timezone));
  if (file === undefined && undo === undefined) return listImports(imported, chatId);
  // A dry run takes no lock.
  if (file !== undefined && dryRun) return bringIn(config, log, imported, resolve(file), options);
  const data = await enterData(config, log);
  try {
    const alone = await takeLock(join(config.dataDir, 'import-chat.lock'));
    if (alone === null) {
      throw new Fault(
        'already_running',
        'Another import of a history is at work; try again when it is done.',
      );
    }
    try {
      const what = undo === undefined ? 'of a history' : `--undo ${quoted(undo)}`;
      const entry = { ...BY_OPERATOR, kind: 'command', where: chatId, what: `import-chat ${what}` } as const;
      await openAudit(config, log).record(entry);
      if (undo !== undefined) await takeBack(imported, chatId, undo);
      else await bringIn(config, log, imported, resolve(file ?? ''), options);
    } finally {
      alone.release();
    }
  } finally {
    data.release();
  }
}

// ── Imports that were made ─────────────────────────────────────────────────────────────────────────────────

interface MadeImport {
  id: string;
  personaId: string;
  messages: number;
  files: number;
  reset: boolean;
}

async function importsIn(imported: ImportedArchives, chatId: ChatId): Promise<MadeImport[]> {
  const made = new Map<string, MadeImport>();
  for (const { importId: id, personaId, messages, reset } of await imported.list(chatId)) {
    const before = made.get(id) ?? { id, personaId, messages: 0, files: 0, reset: false };
    const sum = { messages: before.messages + messages, files: before.files + 1 };
    made.set(id, { ...before, ...sum, reset: before.reset || reset });
  }
  return [...made.values()];
}

async function listImports(imported: ImportedArchives, chatId: ChatId): Promise<void> {
  const made = await importsIn(imported, chatId);
  if (made.length === 0) tell(`No history was imported into ${chatId}. Name a file to import one.`);
  for (const { id, personaId, messages, files, reset } of made) {
    const forgotten = reset ? '; forgotten by /reset' : '';
    tell(`${id}  ${personaId}: ${counted(messages, 'message')} in ${counted(files, 'file')}${forgotten}`);
  }
}

async function takeBack(imported: ImportedArchives, chatId: ChatId, id: string): Promise<void> {
  const made = await importsIn(imported, chatId);
  const found = made.find((each) => each.id === id);
  if (found === undefined) {
    const known = made.length === 0 ? 'none was made' : `there are ${made.map((each) => each.id).join(', ')}`;
    throw new Fault('internal', `There is no import ${quoted(id)} in ${chatId}; ${known}.`);
  }
  await imported.remove(chatId, id);
  const { messages, files } = found;
  tell(`Import ${id} is undone: ${counted(messages, 'message')} in ${counted(files, 'file')} were removed.`);
}

// ── The first reading: who speaks, when, and what is left out ──────────────────────────────────────────────

const MOST_SPEAKERS = 2_000;
const MOST_CHATS = 5_000;
const SHOWN = 20;

interface NamedSpeaker {
  name: string;
  role: HistoryMessage['role'];
}

interface HeardSpeaker extends NamedSpeaker {
  messages: number;
}

interface Survey {
  messages: number;
  from: number;
  until: number;
  speakers: Map<string, HeardSpeaker>;
  left: Map<string, number>;
  notes: string[];
}

/** One line without what cannot be seen; a person chose it. */
function cleanName(name: string): string {
  const line = inOneLine(name.normalize('NFC').replace(/[\p{Cf}\p{Cs}\p{Co}]/gu, '')).replace(/^~ ?/, '');
  return cutAt(line, 60) || '?';
}

async function* itemsOf(history: History, only: string | null): AsyncGenerator<HistoryItem> {
  for await (const item of history.items()) {
    if (item.kind === 'note' || only === null || item.chat === only) yield item;
  }
}

/** The chats of the export that a choice is needed of. */
async function chatsIn(history: History): Promise<{ chat: string; id: string }[]> {
  const chats: { chat: string; id: string }[] = [];
  for await (const item of history.items()) {
    if (item.kind === 'chat' && chats.length < MOST_CHATS) chats.push(item);
  }
  return chats;
}

/** The name as the messages have it; null: there is nothing to choose. Throws Fault with the names. */
async function chosenChat(history: History, wanted: string | undefined): Promise<string | null> {
  const chats = await chatsIn(history);
  if (wanted === undefined && chats.length < 2) return null;
  // Conversations with an assistant have titles, and all of them are one history.
  if (wanted !== undefined && chats.length === 0) return wanted;
  const found = chats.filter(({ chat, id }) => chat === wanted || id === wanted);
  const [first] = found;
  if (first !== undefined && chats.filter(({ chat }) => chat === first.chat).length === 1) return first.chat;
  const names = chats.slice(0, SHOWN).map(({ chat, id }) => quoted(id === '' ? chat : `${chat} (${id})`));
  const more = chats.length > SHOWN ? ` and ${chats.length - SHOWN} more` : '';
  const why = first === undefined ? 'It holds several chats' : 'Several of its chats have this name';
  throw new Fault('internal', `${why}; choose one with --only NAME: ${names.join(', ')}${more}.`);
}

async function surveyOf(history: History, only: string | null): Promise<Survey> {
  const seen: Survey = {
    ...{ messages: 0, from: Number.POSITIVE_INFINITY, until: Number.NEGATIVE_INFINITY },
    ...{ speakers: new Map(), left: new Map(), notes: [] },
  };
  for await (const item of itemsOf(history, only)) {
    if (item.kind === 'left') seen.left.set(item.why, (seen.left.get(item.why) ?? 0) + 1);
    else if (item.kind === 'note') seen.notes.push(item.text);
    else if (item.kind === 'message') {
      seen.messages++;
      seen.from = Math.min(seen.from, item.at);
      seen.until = Math.max(seen.until, item.at);
      const by = `${item.role} ${item.speaker}`;
      const known = seen.speakers.get(by);
      if (known !== undefined) known.messages++;
      else if (seen.speakers.size < MOST_SPEAKERS) {
        seen.speakers.set(by, { name: cleanName(item.speaker), role: item.role, messages: 1 });
      }
    }
  }
  return seen;
}

// ── Who is who ─────────────────────────────────────────────────────────────────────────────────────────────

interface Cast {
  persona: Persona;
  /** Its lines are in the history. */
  speaks: boolean;
  me: string | null;
}

const sameName = (a: string, b: string) =>
  a.normalize('NFKC').toLocaleLowerCase() === cleanName(b).normalize('NFKC').toLocaleLowerCase();

async function castOf(
  config: Config,
  log: Log,
  { chat, persona: name, me }: ImportChatOptions,
): Promise<Cast> {
  const { groupsDir } = config;
  const personas = createPersonas({ groupsDir, clock: systemClock, log });
  const noted = me === undefined ? null : cleanName(me);
  if (name === undefined) {
    const active = await withReads(storeOf(config), systemClock, (reads) => reads.chat(chat));
    const persona =
      (await personas.get(chat, active?.activePersona ?? DEFAULT_PERSONA)) ??
      (await personas.get(chat, DEFAULT_PERSONA));
    if (persona === null) throw new Fault('internal', `The chat ${chat} has no persona.`);
    return { persona, speaks: false, me: noted };
  }
  const persona = await personas.find(chat, name);
  if (persona !== null) return { persona, speaks: true, me: noted };
  const known = (await personas.list(chat)).map((each) => quoted(each.name)).join(', ');
  throw wrongOption('persona', name, `a persona of this chat: ${known}`);
}

function partOf({ name, role }: NamedSpeaker, { persona, speaks, me }: Cast): 'me' | 'persona' | null {
  if (me !== null && (role === 'person' || (role === null && sameName(name, me)))) return 'me';
  const isNamed = [persona.name, ...persona.aliases].some((each) => sameName(name, each));
  return speaks && role !== 'person' && (role === 'persona' || isNamed) ? 'persona' : null;
}

/** Nobody else may pass for the persona. */
function nameFor(speaker: NamedSpeaker, cast: Cast): string {
  const part = partOf(speaker, cast);
  if (part === 'persona') return cast.persona.name;
  const name = part === 'me' ? (cast.me ?? speaker.name) : speaker.name;
  return looksLike(name, cast.persona.name) ? `somebody called “${name}”` : name;
}

function refuseUnknownSpeakers({ speakers }: Survey, cast: Cast): void {
  const all = [...speakers.values()];
  if (cast.me === null || all.some((each) => partOf(each, cast) === 'me')) return;
  const names = all.slice(0, SHOWN).map(({ name }) => quoted(name));
  throw wrongOption('me', cast.me, `a speaker of this history: ${names.join(', ')}`);
}

// ── Telling ────────────────────────────────────────────────────────────────────────────────────────────────

function tellSurvey(history: History, survey: Survey, cast: Cast, zone: Zone): void {
  const { messages, from, until, left, notes } = survey;
  tell(`${history.format}: ${counted(messages, 'message')}, ${zone.time(from)} to ${zone.time(until)}.`);
  const speakers = [...survey.speakers.values()].sort((a, b) => b.messages - a.messages);
  const shown = speakers.slice(0, SHOWN).map((each) => {
    const part = partOf(each, cast);
    const as = nameFor(each, cast);
    const who = part === 'persona' ? ', the persona' : part === 'me' ? ', you' : '';
    return `${each.name}${as === each.name ? '' : ` (written as ${as})`}${who}: ${each.messages}`;
  });
  const more = speakers.length > SHOWN ? `; and ${speakers.length - SHOWN} more` : '';
  tell(`Speakers: ${shown.join('; ')}${more}.`);
  const { name } = cast.persona;
  if (!cast.speaks)
    tell(`None of them counts as the persona; with --persona, the speaker of that name does.`);
  else if (!speakers.some((each) => partOf(each, cast) === 'persona'))
    tell(`None of them is called ${name}.`);
  tell(`Times that name no zone were read as of ${zone.name}.`);
  for (const note of notes) tell(note);
  for (const [why, number] of left) tell(`Left out: ${number} × ${why}.`);
  if (history.unread.length > 0) {
    tell(`Not read: ${history.unread.slice(0, SHOWN).join(', ')}.`);
  }
}

// ── The second reading ─────────────────────────────────────────────────────────────────────────────────────

async function importIdOf(path: string, personaId: string, only: string | null): Promise<string> {
  const hash = createHash('sha256').update(JSON.stringify([personaId, only]));
  await pipeline(createReadStream(path, { highWaterMark: 1024 * 1024 }), hash);
  return hash.digest('hex').slice(0, 8);
}

/** Small enough for /memory forget, which rewrites each by itself. */
const PART_CHARS = 1_000_000;
const MOST_TEXT = 50_000;

function archivedFrom(item: HistoryMessage, id: number, cast: Cast): ArchivedMessage {
  const text = item.text.replace(/\r\n?/g, '\n').replace(/[^\P{Cc}\n\t]/gu, '');
  const name = nameFor({ name: cleanName(item.speaker), role: item.role }, cast);
  return { id, name, text: cutWithMarker(text.trim(), MOST_TEXT, 'import-characters'), sentAt: item.at };
}

interface Writing {
  history: History;
  only: string | null;
  cast: Cast;
  /** null in a dry run. */
  write: ((messages: ArchivedMessage[]) => Promise<void>) | null;
}

async function writeNew(
  known: ReturnType<typeof createIdSet>,
  { history, only, cast, write }: Writing,
): Promise<number> {
  let part: ArchivedMessage[] = [];
  let chars = 0;
  let added = 0;
  for await (const item of itemsOf(history, only)) {
    if (item.kind !== 'message') continue;
    const id = importedId(item.key);
    if (!known.add(id)) continue;
    added++;
    if (write === null) continue;
    const message = archivedFrom(item, id, cast);
    part.push(message);
    chars += message.text.length + message.name.length + 40;
    if (chars < PART_CHARS) continue;
    await write(part);
    part = [];
    chars = 0;
  }
  if (write !== null && part.length > 0) await write(part);
  return added;
}

async function bringIn(
  config: Config,
  log: Log,
  imported: ImportedArchives,
  path: string,
  options: ImportChatOptions,
): Promise<void> {
  const { chat: chatId, dryRun = false } = options;
  const zone = createZone(config.timezone);
  const history = await openHistory(path, zone);
  try {
    const only = await chosenChat(history, options.only);
    const cast = await castOf(config, log, options);
    const survey = await surveyOf(history, only);
    if (survey.messages === 0) {
      throw new Fault('internal', `${printableLine(basename(path))} holds no message that could be kept.`);
    }
    refuseUnknownSpeakers(survey, cast);
    tellSurvey(history, survey, cast, zone);
    const { id: personaId, name: personaName } = cast.persona;
    const id = await importIdOf(path, personaId, only);
    const reason = `import ${id} of ${history.format}`;
    const at = systemClock.now();
    const head = { chatId, threadId: null, personaId, personaName, reason, flushed: false, at };
    const write = dryRun ? null : (messages: ArchivedMessage[]) => imported.write(head, id, messages);
    const found = { chatId, id, messages: survey.messages };
    const added = await writeAndTell(imported, { history, only, cast, write }, found);
    if (options.propose && !dryRun && added > 0) await askToPropose(config, log, chatId, cast.persona, id);
  } finally {
    await history.close();
  }
}

async function writeAndTell(
  imported: ImportedArchives,
  writing: Writing,
  { chatId, id, messages }: { chatId: ChatId; id: string; messages: number },
): Promise<number> {
  const { persona } = writing.cast;
  const known = createIdSet();
  try {
    let forgotten = false;
    for (const part of await imported.list(chatId)) {
      if (part.personaId !== persona.id) continue;
      forgotten ||= part.reset;
      for await (const each of imported.idsIn(chatId, part.file)) known.add(each);
    }
    const added = await writeNew(known, writing).catch((error) => {
      const kept = `The parts that were written are kept: import the file again, or undo it with --undo ${id}.`;
      throw new Fault('internal', `The import stopped. ${kept}`, error);
    });
    if (forgotten) tell('Some of what was imported before was forgotten by /reset, and stays so.');
    const counts = `${added} new, ${messages - added} there already`;
    if (writing.write === null) tell(`${counts}. This was a dry run: nothing was written.`);
    else if (added === 0) tell(`${counts}. Nothing was written.`);
    else {
      tell(
        `${counts}, in ${imported.folder(chatId)}. ${persona.name} finds them by search; nobody is answered.`,
      );
      tell(`Import ${id}. To undo it: coterie import-chat --undo ${id} --chat ${chatId}`);
    }
    return added;
  } finally {
    known.close();
  }
}
