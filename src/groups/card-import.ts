/** A card becomes files: PERSONA.md, portrait, lorebook and the card itself, in a chat or in the library. */

import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { basename, dirname, extname, join } from 'node:path';
import { stringify } from 'yaml';
import {
  CARD_LIMITS,
  type Card,
  type CardFormat,
  type CardTexts,
  type ImportAnswer,
  type ImportAsk,
} from '../core/cards.js';
import type { Exclusive } from '../core/concurrency.js';
import { estimateTokens, inOneLine } from '../core/cut.js';
import { codeOf, namesIn, readIfThere, statIfThere, unavailable } from '../core/file-access.js';
import { type ChatId, DEFAULT_PERSONA, type PersonaId } from '../core/ids.js';
import type { Log } from '../core/log.js';
import { readLorebook } from '../core/lorebook.js';
import { removeLeftOvers, writeWhole } from '../core/write-whole.js';
import { chatFolder, isReserved, onDisk, personaFolder, slug } from './paths.js';
import { cleanName, lookalike, nameFault } from './persona-changes.js';
import { cardPersonaFile } from './persona-file.js';
import { PORTRAIT, type personaReader } from './personas.js';

export interface CardsOptions {
  groupsDir: string;
  log: Log;
  clock: { now(): number };
  format: CardFormat;
  /** A PNG of a picture in another format; null: it cannot be read. */
  toPng(picture: Buffer): Promise<Buffer | null>;
  mostInChat: number;
  /** Of the model's requests; null: unknown. */
  windowTokens: number | null;
  models: readonly string[] | null;
  exclusive?: Exclusive;
}

/** Tools of a persona that a stranger wrote. */
const TOOLS = ['memory', 'search', 'reactions'];
const PERSONA = 'PERSONA.md';
export const LOREBOOK = 'lorebook.yaml';
const CARD = /^card\.(?:png|jpe?g|webp|charx|json|yaml)$/;
/** Above this, YAML is slow to read: the file holds JSON then, which is YAML, too. */
const MOST_YAML = 500_000;
/** Of all greetings of a card, in its front matter. */
const MOST_GREETING_CHARS = 600_000;
const MOST_NUMBERED = 100;
/** Begins the name of the folder in which a persona is made. */
const HALF = '.import-';
const HALF_LASTS_MS = 3_600_000;

/** A file of a persona, by name. */
type Files = Map<string, string | Buffer>;

/** The folders of chats and of the library, and who lives there. */
export interface Shelf extends CardsOptions {
  reader: ReturnType<typeof personaReader>;
  library: string;
}

/** A whole persona or none. */
export async function importFile(shelf: Shelf, ask: ImportAsk): Promise<ImportAnswer> {
  const read = shelf.format.read(ask.file);
  if (read.kind === 'other') return read;
  if (read.kind === 'refused') return read;
  if (read.kind === 'lorebook') return takeBook(shelf, ask, read);
  return takeCard(shelf, ask, read.card);
}

async function takeCard(shelf: Shelf, ask: ImportAsk, card: Card): Promise<ImportAnswer> {
  const given = ask.name === null ? null : nameIn(ask.name);
  const own = [card.texts.nickname, card.texts.name].map(nameIn).filter((name) => name !== '');
  const wanted = given ?? own[0] ?? '';
  if (wanted === '') return refuse('The card has no name; please send it with /persona import NAME.');
  const replaced = given === null ? null : await there(shelf, ask.chatId, slug(given));
  const same = replaced === null ? await sameCard(shelf, ask, card) : null;
  if (same !== null) return { kind: 'there', ...same };
  const free = replaced === null ? await freeName(shelf, ask.chatId, wanted) : { name: replaced.name };
  if ('reason' in free) return refuse(free.reason);
  const { name } = free;
  const id = replaced?.id ?? slug(name);
  const alias = own.find((other) => slug(other) !== id);
  const files = await filesOf(shelf, ask, card, {
    name,
    ...(alias !== undefined && !replaced && { aliases: [alias] }),
  });
  if (ask.chatId === null) await intoLibrary(shelf, id, files);
  else await intoChat(shelf, personaFolder(shelf.groupsDir, ask.chatId, id), files);
  return { kind: 'imported', personaId: id, name, lines: linesOf(card, shelf.windowTokens) };
}

async function there(
  { reader }: Shelf,
  chatId: ChatId | null,
  id: PersonaId,
): Promise<{ id: PersonaId; name: string } | null> {
  if (id === '' || isReserved(id)) return null;
  if (chatId !== null) return reader.get(chatId, id);
  const held = await reader.library();
  return held.includes(id) ? reader.asInLibrary(id) : null;
}

/** The persona that came from the same file, under whatever name, or from a card of its name that says the same. */
async function sameCard(shelf: Shelf, { chatId, file }: ImportAsk, card: Card) {
  const { reader, format } = shelf;
  const personas =
    chatId === null
      ? await Promise.all((await reader.library()).map(reader.asInLibrary))
      : await reader.list(chatId);
  const own = [card.texts.nickname, card.texts.name].map((each) => slug(nameIn(each)));
  for (const { id, name, aliases, card: from } of personas) {
    const path = from === null ? null : cardPath(shelf, chatId, id, null, from);
    if (path === null) continue;
    // Large cards take their time.
    const isNamesake = [name, ...aliases].some((each) => own.some((it) => isNumbered(slug(each), it)));
    if (!isNamesake && statIfThere(path)?.size !== file.length) continue;
    const other = await readIfThere(path);
    if (other === null) continue;
    if (other.equals(file)) return { personaId: id, name };
    const read = isNamesake ? format.read(other) : null;
    if (read?.kind === 'card' && isSame([read.card.texts, read.card.book], [card.texts, card.book]))
      return { personaId: id, name };
  }
  return null;
}

/** `NAME`, or `NAME 2` where it is taken. */
async function freeName(
  { reader, mostInChat }: Shelf,
  chatId: ChatId | null,
  wanted: string,
): Promise<{ name: string } | { reason: string }> {
  const rename = 'please send it with /persona import NAME.';
  const fault = nameFault(wanted);
  if (fault !== null || slug(wanted) === DEFAULT_PERSONA)
    return { reason: `A persona cannot have the name of this card; ${rename}` };
  const held = await reader.library();
  const inLibrary = await Promise.all(held.map(reader.asInLibrary));
  const here = chatId === null ? [] : await reader.list(chatId);
  if (chatId !== null && here.length >= mostInChat) {
    return {
      reason: `There are ${here.length} personas here, which is as many as a chat may have; /persona delete NAME makes room.`,
    };
  }
  for (let n = 1; n <= MOST_NUMBERED; n++) {
    const name = n === 1 ? wanted : `${wanted} ${n}`;
    const isTaken = [...here, ...inLibrary].some(({ id }) => id === slug(name));
    if (isTaken) continue;
    if (
      lookalike(
        name,
        [...here, ...inLibrary].filter(({ id }) => !isNumbered(id, slug(wanted))),
      ) === null
    )
      return { name };
    return { reason: `The name of this card reads like that of another persona; ${rename}` };
  }
  return { reason: `There are ${MOST_NUMBERED} personas of that name; ${rename}` };
}

async function filesOf(
  shelf: Shelf,
  ask: ImportAsk,
  card: Card,
  named: Record<string, unknown>,
): Promise<Files> {
  const cardFile = `card.${card.form === 'jpeg' ? 'jpg' : card.form}`;
  const portrait = card.portrait === null ? null : await portraitOf(shelf, card);
  const texts = withFewer(card.texts, card.leftOut);
  return new Map<string, string | Buffer>([
    [cardFile, ask.file],
    ...(portrait === null ? [] : [[PORTRAIT, portrait] as const]),
    ...(hasEntries(card.book) ? [[LOREBOOK, bookFile(card.book)] as const] : []),
    // Last: a persona is there when this is.
    [PERSONA, cardPersonaFile(texts, { ...named, card: cardFile, tools: TOOLS })],
  ]);
}

export async function portraitOf(
  { format, toPng }: Shelf,
  { portrait, leftOut }: Card,
): Promise<Buffer | null> {
  const png = portrait && (format.plainPng(portrait) ?? (await toPng(portrait)));
  if (png === null) leftOut.push('the portrait');
  return png;
}

/** A new folder appears whole. In one that is there (a persona that was deleted or is replaced), memory stays. */
async function intoChat(shelf: Shelf, folder: string, files: Files): Promise<void> {
  await mkdir(dirname(folder), { recursive: true });
  await removeHalves(dirname(folder), shelf.clock.now());
  const beside = await mkdtemp(join(dirname(folder), HALF));
  try {
    for (const [name, content] of files) await writeWhole(join(beside, name), content);
    if (!existsSync(folder)) {
      try {
        return await rename(beside, folder);
      } catch (error) {
        if (!['ENOTEMPTY', 'EEXIST'].includes(codeOf(error))) throw error;
      }
    }
    await setAside(shelf, folder, files);
    for (const name of files.keys()) await rename(join(beside, name), join(folder, name));
  } catch (error) {
    throw unavailable('write', folder, error);
  } finally {
    await rm(beside, { recursive: true, force: true });
  }
}

/** Of imports that were killed; another process may be importing now. */
async function removeHalves(folder: string, now: number): Promise<void> {
  for (const name of await namesIn(folder)) {
    if (!name.startsWith(HALF)) continue;
    const path = join(folder, name);
    if ((statIfThere(path)?.mtimeMs ?? now) < now - HALF_LASTS_MS) {
      await rm(path, { recursive: true, force: true });
    }
  }
}

/** The text of the persona that was here; its files that the new card does not bring go with it. */
async function setAside({ clock }: Shelf, folder: string, files: Files): Promise<void> {
  const time = new Date(clock.now()).toISOString().replaceAll(':', '-');
  for (const name of await namesIn(folder)) {
    const isOfCard = CARD.test(name) || name === PORTRAIT || /^lorebook\.(?:ya?ml|json)$/.test(name);
    if (name === PERSONA) await rename(join(folder, name), join(folder, `PERSONA.replaced-${time}.md`));
    else if (isOfCard && !files.has(name))
      await rename(join(folder, name), join(folder, `replaced-${time}.${name}`));
  }
}

async function intoLibrary({ library }: Shelf, id: PersonaId, files: Files): Promise<void> {
  const { [PERSONA]: text, ...others } = Object.fromEntries(files);
  const folder = onDisk(library, id);
  await mkdir(folder, { recursive: true });
  for (const [name, content] of Object.entries(others)) await writeWhole(join(folder, name), content);
  await writeWhole(onDisk(library, `${id}.md`), text ?? '');
}

async function takeBook(
  { groupsDir }: Shelf,
  { chatId, fileName, name }: ImportAsk,
  { book, leftOut }: { book: unknown; leftOut: string[] },
): Promise<ImportAnswer> {
  const read = readLorebook(book, nameIn(name ?? basename(fileName, extname(fileName))));
  if (read === null) return refuse('The lorebook in it has no entries.');
  const id = slug(read.book.name) || 'lorebook';
  const folder = join(chatId === null ? groupsDir : chatFolder(groupsDir, chatId), 'lorebooks');
  await mkdir(folder, { recursive: true });
  await removeLeftOvers(folder, (other) => other === `${id}.json`);
  const named = { ...(book as object), ...(!('spec' in (book as object)) && { name: read.book.name }) };
  await writeWhole(join(folder, `${id}.json`), JSON.stringify(named, null, 2));
  const lines = leftOut.length > 0 ? [`Left out: ${leftOut.join(', ')}.`] : [];
  return { kind: 'lorebook', name: read.book.name, entries: read.book.entries.length, lines };
}

export function cardPath(
  { groupsDir, library }: Shelf,
  chatId: ChatId | null,
  id: PersonaId,
  from: string | null,
  card: string,
): string | null {
  if (!CARD.test(card)) return null;
  const inLibrary = join(onDisk(library, from ?? id), card);
  const own = chatId === null ? inLibrary : join(personaFolder(groupsDir, chatId, id), card);
  return existsSync(own) ? own : inLibrary;
}

function refuse(reason: string): ImportAnswer {
  return { kind: 'refused', reason };
}

/** On one line, as long as a name may be, without signs by which platforms mention people. */
function nameIn(text: string): string {
  const plain = cleanName(inOneLine(text))
    .replace(/[@<>`*]/g, '')
    .replace(/^[#&!\s]+/, '');
  return Array.from(plain).slice(0, CARD_LIMITS.nameChars).join('').trim();
}

function isNumbered(id: PersonaId, wanted: PersonaId): boolean {
  return id === wanted || (id.startsWith(`${wanted}-`) && /^\d+$/.test(id.slice(wanted.length + 1)));
}

export function hasEntries(book: unknown): boolean {
  return (readLorebook(book, '')?.book.entries.length ?? 0) > 0;
}

function bookFile(book: unknown): string {
  const json = JSON.stringify(book, null, 1);
  return json.length > MOST_YAML
    ? json
    : stringify(JSON.parse(json), { lineWidth: 0, aliasDuplicateObjects: false });
}

/** Regardless of the order of keys. */
export function isSame(one: unknown, other: unknown): boolean {
  return JSON.stringify(inOrder(one)) === JSON.stringify(inOrder(other));
}

function inOrder(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inOrder);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, each]) => [key, inOrder(each)]),
  );
}

/** The front matter holds all greetings, and is read for each answer. */
export function withFewer(texts: CardTexts, leftOut: string[]): CardTexts {
  let chars = texts.greeting.length;
  const fits = (text: string) => {
    chars += text.length;
    return chars <= MOST_GREETING_CHARS;
  };
  const greetings = texts.greetings.filter(fits);
  const groupGreetings = texts.groupGreetings.filter(fits);
  if (chars > MOST_GREETING_CHARS) leftOut.push('some of its greetings');
  return { ...texts, greetings, groupGreetings };
}

/** Said of a card to the person who imports it, each only where there is something to say. */
function linesOf({ creatorNotes, texts, book, newer, leftOut }: Card, windowTokens: number | null): string[] {
  const inNumbers = (count: number) => count.toLocaleString('en-US');
  const window = windowTokens === null ? '' : ` of ${inNumbers(windowTokens)}`;
  const greetings = [texts.greeting, ...texts.greetings, ...texts.groupGreetings].filter(
    (text) => text !== '',
  );
  const entries = readLorebook(book, '')?.book.entries.length ?? 0;
  const { description, personality, scenario, instructions, examples, reminder, note } = texts;
  const all = [description, personality, scenario, instructions, examples, reminder, note].join('\n');
  const tokens = estimateTokens(all);
  return [
    creatorNotes === '' ? '' : `The creator writes: ${inOneLine(creatorNotes, CARD_LIMITS.notesChars)}`,
    tokens > 0 ? `about ${inNumbers(tokens)} tokens${window}` : '',
    greetings.length > 0 ? counted(greetings.length, 'greeting') : '',
    entries > 0 ? counted(entries, 'lore entry', 'lore entries') : '',
    newer === null ? '' : `The card is of version ${newer}, which is newer than I know.`,
    leftOut.length > 0 ? `Left out: ${leftOut.join(', ')}.` : '',
  ].filter((line) => line !== '');
}

function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}
