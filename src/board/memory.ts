/** The page's routes to memory: its files as whole texts, guarded by their tags, and the history with Undo. */
import { z } from '@hono/zod-openapi';
import {
  BOARD_OWNER,
  EVERY_CHAT,
  type HistoryStore,
  type KeptVersion,
  type WholeFile,
  type WholeFiles,
} from '../core/board.js';
import { daysOf } from '../core/daily-log.js';
import { describe, Fault } from '../core/errors.js';
import { beginsFrontMatter, dataOf, documentOf, LARGE, splitFrontMatter } from '../core/file-text.js';
import { type ChatId, DEFAULT_PERSONA } from '../core/ids.js';
import type { Audit } from '../core/journal.js';
import { readLorebook } from '../core/lorebook.js';
import type { Memory } from '../core/memory.js';
import type { Personas } from '../core/persona.js';
import { type BoardApi, reply } from './api.js';
import { bodyIn, fieldsIn, refused } from './own.js';
import type { MemoryChange, MemoryChat, MemoryPlaces, MemoryText } from './protocol.js';

export interface MemoryParts {
  files: Memory & WholeFiles;
  history: HistoryStore;
  personas: Personas;
  audit: Audit;
  today(): string;
}

const PAGE = 30;

const id = z.string().min(1).max(255);
const Chat = z.object({ chatId: id });
const Place = z.object({ chatId: id, personaId: id, file: id });
const History = z.object({
  chatId: id,
  personaId: id,
  before: z.coerce.number().int().positive().optional(),
});
const count = z.number().int().nonnegative();
/** In UTF-16 units of the text that was read. */
const Edit = z.object({ at: count, gone: count, text: z.string() });
const Undo = z.object({ id });

export function addMemory(api: BoardApi, parts: MemoryParts): void {
  const { files, history, audit } = parts;

  api.get('/api/board/memory', async () => reply(200, { chats: await chatsOf(parts) }));

  api.get('/api/board/memory/places', async (context) => {
    const { chatId } = fieldsIn(context, Chat);
    return reply(200, await readable(() => placesOf(parts, chatId)));
  });

  api.get('/api/board/memory/file', async (context) => {
    const place = placeIn(fieldsIn(context, Place));
    const file = await readable(() => files.readFile(place));
    return reply(200, await textOf(parts, place, file), { ETag: `"${file.tag}"` });
  });

  api.put('/api/board/memory/file', async (context) => {
    const place = placeIn(fieldsIn(context, Place));
    const edit = await bodyIn(context, Edit);
    const tag = /^(?:W\/)?"([\w-]+)"$/.exec(context.req.header('if-match') ?? '')?.[1];
    if (tag === undefined) throw refused(400, { error: 'If-Match has no tag of the file that was read.' });
    const before = await readable(() => files.readFile(place));
    if (before.tag !== tag) throw await changedMeanwhile(parts, place, before);
    const { at, gone, text } = edit;
    const complaint = complaintAbout(
      place.file,
      before.text.slice(0, at) + text + before.text.slice(at + gone),
    );
    if (complaint !== null) throw refused(422, { error: `${place.file} was not saved: ${complaint}.` });
    const where = place.chatId === EVERY_CHAT ? null : place.chatId;
    const what = `edited ${place.file} on the page`;
    await audit.record({ kind: 'command', who: BOARD_OWNER, where, what, word: BOARD_OWNER });
    // The write compares again, and nothing can write between that check and the write.
    const { kind, file } = await readable(() => files.editFile(place, { ...edit, tag }));
    if (kind === 'changed') throw await changedMeanwhile(parts, place, file);
    return reply(200, await textOf(parts, place, file), { ETag: `"${file.tag}"` });
  });

  api.get('/api/board/memory/history', async (context) => {
    const { chatId, personaId, before = null } = fieldsIn(context, History);
    const own = await history.history({ chatId, personaId, before, most: PAGE });
    const shared = await history.history({ chatId: EVERY_CHAT, personaId: '', before, most: PAGE });
    const newest = [...own, ...shared].sort((a, b) => b.n - a.n).slice(0, PAGE);
    return reply(200, pageOf(newest));
  });

  api.post('/api/board/memory/undo', async (context) => {
    const change = (await history.changeWith((await bodyIn(context, Undo)).id)).filter(
      ({ isUndone }) => !isUndone,
    );
    const [version] = change;
    if (version === undefined) throw refused(404, { error: 'There is nothing left to undo.' });
    const { chatId, file } = version;
    const where = chatId === EVERY_CHAT ? null : chatId;
    const what = `undid a change of ${file} on the page`;
    await audit.record({ kind: 'command', who: BOARD_OWNER, where, what, word: BOARD_OWNER });
    const outcome = await readable(() => files.takeBack(change));
    if (outcome === 'changed') {
      const now = await readable(() => textNow(files, version));
      throw refused(409, { error: 'It was changed again since, so nothing was undone.', now });
    }
    await history.markUndone(change.map((each) => each.id));
    return reply(200, { outcome });
  });
}

/** A file that cannot be used says why: the page is for who can mend it. */
async function readable<Value>(work: () => Promise<Value>): Promise<Value> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Fault) || error.code !== 'memory_unavailable') throw error;
    throw refused(503, { error: `${error.message}.` });
  }
}

type FoundPlace = z.output<typeof Place>;

/** The page names a chat and persona also for the files above them; those of a chat may have the same name. */
function placeIn({ chatId, personaId, file }: FoundPlace): FoundPlace {
  if (file.startsWith(`${EVERY_CHAT}/`))
    return { chatId: EVERY_CHAT, personaId: '', file: file.slice(EVERY_CHAT.length + 1) };
  const isAbove = file === 'AGENTS.md' || file.startsWith('personas/');
  return isAbove ? { chatId: EVERY_CHAT, personaId: '', file } : { chatId, personaId, file };
}

/** Chats of the store, and those that only have a folder. */
async function chatsOf({ files, history }: MemoryParts): Promise<MemoryChat[]> {
  const titles = new Map((await history.titles()).map(({ id, title }) => [id, title]));
  const folders = await readable(() => files.chatFolders());
  const ids = [...new Set([...titles.keys(), ...folders])].sort();
  return ids.map((chatId) => ({ chatId, title: titles.get(chatId)?.trim() || chatId }));
}

async function placesOf({ files, personas, today }: MemoryParts, chatId: ChatId): Promise<MemoryPlaces> {
  const [listed, folders, days, books, ofAll] = await Promise.all([
    personas.list(chatId),
    files.personaFolders(chatId),
    files.dailyLogs(chatId),
    files.bookFiles(chatId),
    files.bookFiles(EVERY_CHAT),
  ]);
  const rest = folders.filter((id) => !listed.some((persona) => persona.id === id));
  const shown = daysOf(await files.recentDaily(chatId, today())).map(({ date }) => `${date}.md`);
  const newest = `${today()}.md`;
  return {
    personas: [
      ...listed.map((persona) => ({
        id: persona.id,
        name: persona.name,
        library: `personas/${persona.from ?? persona.id}.md`,
      })),
      // Of a persona that was deleted, the memory stays.
      ...rest.map((id) => ({ id, name: id, library: null })),
    ].sort((a, b) => Number(b.id === DEFAULT_PERSONA) - Number(a.id === DEFAULT_PERSONA)),
    days: [...new Set([newest, ...days])].map((file) => ({
      file,
      isThere: days.includes(file),
      isShown: shown.includes(file),
    })),
    books: [...books, ...ofAll.map((file) => `${EVERY_CHAT}/${file}`)],
  };
}

async function textOf(
  { files, personas }: MemoryParts,
  { chatId, personaId, file }: FoundPlace,
  { text, tag, changedAt, isCrlf }: WholeFile,
): Promise<MemoryText> {
  const { longTermMaxChars, dailyPerDayMaxChars } = files.budgets;
  const isMemory = file.endsWith('/MEMORY.md');
  const isDay = file.startsWith('memory/');
  const faults = file.endsWith('/PERSONA.md') ? (await personas.get(chatId, personaId))?.faults : undefined;
  return {
    ...{ text, tag, changedAt, isCrlf },
    most: isMemory ? longTermMaxChars : isDay ? dailyPerDayMaxChars : null,
    faults: [...(faults ?? [])],
  };
}

/** Why a text with YAML in it could not be read again, with its line; null: it can be saved. A lorebook may be emptied. */
function complaintAbout(file: string, text: string): string | null {
  if (/\.(?:ya?ml|json)$/i.test(file)) return text.trim() === '' ? null : bookComplaint(file, text);
  if (!/(?:^|\/)PERSONA\.md$/.test(file) && !/^personas\/[^/]+\.md$/.test(file)) return null;
  const parts = splitFrontMatter(text);
  if (parts === null) return beginsFrontMatter(text) ? 'the front matter has no closing line of ---' : null;
  const [error] = documentOf(parts.matter).errors;
  // The matter begins on the second line.
  return error === undefined
    ? null
    : error.message.replace(/ at line (\d+)/, (_, line) => ` at line ${Number(line) + 1}`);
}

function bookComplaint(file: string, text: string): string | null {
  try {
    const data = /\.json$/i.test(file) || isJson(text) ? JSON.parse(text) : dataOf(text, LARGE);
    return readLorebook(data, '') === null ? 'it has no list of “entries”' : null;
  } catch (error) {
    const why = describe(error);
    // Of a wrong sign JSON tells its surroundings instead.
    const at = /at position (\d+)/.exec(why)?.[1];
    return at === undefined ? why : `it is no JSON at line ${text.slice(0, Number(at)).split('\n').length}`;
  }
}

/** JSON in a file of YAML is read a hundred times as fast. */
function isJson(text: string): boolean {
  if (!text.trimStart().startsWith('{')) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

async function changedMeanwhile(parts: MemoryParts, place: FoundPlace, file: WholeFile) {
  const error = `${place.file} was changed meanwhile.`;
  const onDisk = await textOf(parts, place, file);
  return refused(409, { error, onDisk }, { ETag: `"${file.tag}"` });
}

/** The text that a version is about, as it is now. */
async function textNow(files: MemoryParts['files'], version: KeptVersion): Promise<string> {
  const { chatId, personaId, tier } = version;
  if (tier !== null) return files.readTier({ chatId, personaId }, tier);
  return (await files.readFile(version)).text;
}

/** Versions of one change together; the last one may go on behind the page. */
function pageOf(versions: KeptVersion[]): { changes: MemoryChange[]; before: number | null } {
  const changes: KeptVersion[][] = [];
  for (const version of versions) {
    const last = changes.at(-1);
    if (last?.[0] && isSameChange(last[0], version)) last.push(version);
    else changes.push([version]);
  }
  const isFull = versions.length === PAGE;
  if (isFull && changes.length > 1) changes.pop();
  const before = isFull ? (changes.at(-1)?.at(-1)?.n ?? null) : null;
  return { changes: changes.flatMap(changeOf), before };
}

function isSameChange({ cause: a }: KeptVersion, { cause: b }: KeptVersion): boolean {
  return (a.kind === 'night' || a.kind === 'owner') && a.kind === b.kind && a.turnId === b.turnId;
}

function changeOf(versions: KeptVersion[]): MemoryChange[] {
  const [first] = versions;
  if (first === undefined) return [];
  const { id, chatId, file, at, cause, isUndone } = first;
  // Of a whole file, the tiers are parts of it.
  const whole = versions.find(({ tier }) => tier === null && cause.kind === 'owner');
  const parts = whole ? [whole] : versions;
  return [
    {
      ...{ id, chatId, file, at, isUndone },
      kind: cause.kind,
      personaId: cause.personaId,
      isTainted: versions.some((version) => version.cause.tainted),
      parts: parts.map(({ tier, before, after }) => ({ tier, before, after })),
    },
  ];
}
