/** `chat.yaml` of each chat: its title, and alias ids, which find a chat that moved on its platform. */
import { lstatSync } from 'node:fs';
import { join } from 'node:path';
import { isSeq } from 'yaml';
import type { Clock } from '../core/clock.js';
import { locks } from '../core/concurrency.js';
import { describe } from '../core/errors.js';
import { namesIn, readIfThere, unhurried } from '../core/file-access.js';
import { readOr, readUnlessUnchanged } from '../core/file-cache.js';
import { documentOf, withKey } from '../core/file-text.js';
import type { ChatId } from '../core/ids.js';
import type { Log } from '../core/log.js';
import type { ChatFiles } from '../core/persona.js';
import { putSetting, settingOf, type ValueStore } from '../core/store.js';
import { fileUpdater } from '../core/write-whole.js';
import { createNotes, editable, listIn } from './chat-notes.js';
import { chatFolder, isChatId } from './paths.js';

export function createChatFiles(
  groupsDir: string,
  store: ValueStore,
  clock: Pick<Clock, 'now'>,
  log: Log,
  exclusive = locks(),
): ChatFiles {
  const update = fileUpdater(exclusive);
  const fileOf = (chatId: ChatId) => join(chatFolder(groupsDir, chatId), 'chat.yaml');
  /** Alias ids to chats: read at the first lookup, kept current by our own writes. */
  let index: Promise<Map<ChatId, ChatId>> | null = null;
  /** Paths of files whose title cannot be changed. */
  const toldOf = new Set<string>();
  /** Needed in every turn, rarely changed, but perhaps by another gateway. */
  const titleIn = readUnlessUnchanged<unknown>(null, async (path) =>
    documentOf((await readIfThere(path))?.toString('utf8') ?? '').get('title'),
  );

  function indexed(): Promise<Map<ChatId, ChatId>> {
    index ??= readIndex(groupsDir, store, clock, log).catch((error: unknown) => {
      index = null;
      throw error;
    });
    return index;
  }

  return {
    async setTitle(chatId, title) {
      const path = fileOf(chatId);
      if ((await titleIn(path)) === title) return;
      await update(path, (bytes) => {
        const source = bytes?.toString('utf8') ?? '';
        if (documentOf(source).get('title') === title) return null;
        const edited = withKey(source, 'title', title);
        if (edited === null && !toldOf.has(path))
          log.warn({ path }, 'title not updated: the file is not plain YAML');
        if (edited === null) toldOf.add(path);
        return edited === null ? null : Buffer.from(edited, 'utf8');
      });
    },

    async addAlias(chatId, alias) {
      const path = fileOf(chatId);
      await update(path, (bytes) => {
        const source = bytes?.toString('utf8') ?? '';
        return idsIn(source).includes(alias) ? null : Buffer.from(withId(path, source, alias), 'utf8');
      });
      (await index)?.set(alias, chatId);
    },

    resolve: async (alias) => (await indexed()).get(alias) ?? null,

    ...createNotes(fileOf, update, log),

    async prepare() {
      await indexed().catch((error) =>
        log.warn({ error: describe(error) }, 'searching groups/ for moved chats failed'),
      );
    },
  };
}

/** Files checked, or read, per pass of the event loop: about a millisecond. */
const STATS_AT_ONCE = 400;
const READS_AT_ONCE = 100;
/** Setting: ids as last read from all files, so that a start rereads only changed files. */
const READ_IDS = 'groups.ids';
/** Files changed this shortly before are reread: a file server's clock may differ from ours. */
const LEEWAY_MS = 86_400_000;

interface ReadIds {
  at: number;
  ids: Record<ChatId, ChatId[]>;
}

/** Maps further ids to chats. */
async function readIndex(
  groupsDir: string,
  store: ValueStore,
  clock: { now(): number },
  log: Log,
): Promise<Map<ChatId, ChatId>> {
  const at = clock.now();
  const stored: ReadIds = JSON.parse((await settingOf(store, READ_IDS)) ?? '{"at":0,"ids":{}}');
  // If our clock was ahead then, the time tells nothing about later changes.
  const before: ReadIds = stored.at > at ? { at: 0, ids: {} } : stored;
  const ids = new Map<ChatId, ChatId[]>();
  const changed: ChatId[] = [];
  for await (const chatId of unhurried((await namesIn(groupsDir)).filter(isChatId), STATS_AT_ONCE)) {
    const known = before.ids[chatId];
    if (!isOlder(`${groupsDir}/${chatId}/chat.yaml`, before.at - LEEWAY_MS)) changed.push(chatId);
    else if (known) ids.set(chatId, known);
  }
  for await (const chatId of unhurried(changed, READS_AT_ONCE)) {
    const message = 'further ids of a chat skipped: its file cannot be read';
    const bytes = await readOr(null, `${groupsDir}/${chatId}/chat.yaml`, readIfThere, log, message);
    const source = bytes?.toString('utf8') ?? '';
    const found = source.includes('ids') ? idsIn(source) : [];
    if (found.length > 0) ids.set(chatId, found);
  }
  // If two chats claim an id, the same one gets it at every start.
  const inOrder = [...ids].sort(([a], [b]) => (a < b ? -1 : 1));
  const read: ReadIds = { at, ids: Object.fromEntries(inOrder) };
  await putSetting(store, READ_IDS, JSON.stringify(read)).catch((error) => {
    const message = 'storing the further ids of chats failed; the next start reads every chat.yaml';
    log.warn({ error: describe(error) }, message);
  });
  return new Map(inOrder.flatMap(([chatId, ofIt]) => ofIt.map((id) => [id, chatId] as const)));
}

/** A copy, even one that keeps its date, counts as a change. */
function isOlder(path: string, time: number): boolean {
  try {
    const found = lstatSync(path, { throwIfNoEntry: false });
    return found?.isFile() === true && found.ctimeMs < time;
  } catch {
    // Reading it reports the problem.
    return false;
  }
}

function idsIn(source: string): ChatId[] {
  return listIn(source, 'ids');
}

function withId(path: string, source: string, alias: ChatId): string {
  const document = editable(path, source, 'ids');
  if (isSeq(document.get('ids'))) document.addIn(['ids'], alias);
  else document.set('ids', [alias]);
  return document.toString({ lineWidth: 0 });
}
