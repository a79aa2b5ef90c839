/**
 * Keeps the index up to date with the store: reads what each persona heard in each room, from where it stopped before.
 * At startup, and when the index was lost, it goes through all views; after that, only through rooms where something
 * was heard.
 */
import { setImmediate } from 'node:timers/promises';
import { type RoomId, roomParts } from '../core/ids.js';
import type { HeardView, RecallFeed, RecallFiles, RecallQuery, Scope } from '../core/recall.js';
import { type HeardMessage, isAfter, type Position, wordsBy } from '../core/transcript.js';
import type { IndexedView, MessagePage } from './index-port.js';
import type { RemoteIndex } from './index-thread.js';

/** How much is read from the store and passed to the index at once: small enough to block neither thread. */
const PAGE = 200;
/** After this many reads, other work on the gateway's thread gets its turn. */
const READS_AT_ONCE = 20;
const ROOMS_AT_ONCE = 10;
/** A room usually has one view; the next in order then belongs to another room. */
const FEW = 2;
const MOST_POSITIONS = 5_000;

/** One kind of message of one view, to be read to its end. */
interface Cursor {
  view: HeardView;
  addressed: boolean;
  /** A page was refused once, because the index had moved on. */
  refused: boolean;
}

export function createMessageIndexing(feed: RecallFeed, files: RecallFiles, index: RemoteIndex) {
  const rooms = new Set<RoomId>();
  /** Rooms in which something was heard while all views were being checked. */
  let meanwhile: Set<RoomId> | null = null;
  let allWaits = true;
  let busy = false;
  /** How far the most recently read views are indexed. */
  const positions = new Map<string, IndexedView & { resetAt: number }>();

  async function lookAtAll(signal: AbortSignal): Promise<void> {
    meanwhile = new Set();
    const views: HeardView[] = [];
    for (let after: HeardView | null = null; !signal.aborted; ) {
      const page: HeardView[] = await feed.heardViews(after, PAGE);
      await dropLost(page);
      await readOn(page, signal);
      views.push(...page);
      after = page.at(-1) ?? null;
      if (after === null) break;
    }
    const scopes = await files.scopes();
    if (signal.aborted) return;
    await index.keepOnly(
      views.map((view) => ({ ...scopeOf(view), room: view.room })),
      scopes,
    );
    // A view that began meanwhile was on no page, so `keepOnly` has dropped it.
    for (const room of meanwhile) rooms.add(room);
    meanwhile = null;
  }

  /** A new store counts its messages from one again, so what was indexed of the old one is void. */
  async function dropLost(views: HeardView[]): Promise<void> {
    const known = views.map((view) => ({ room: view.room, scope: scopeOf(view) }));
    for (const [n, newest] of (await index.newest(known)).entries()) {
      const view = known[n];
      if (newest === null || view === undefined) continue;
      const [message] = await feed.visible(view.scope, [newest.messageId]);
      if (message === undefined || message.room !== view.room || message.sentAt !== newest.at) {
        await index.dropView(view.scope, view.room);
      }
    }
  }

  async function viewsOf(room: RoomId): Promise<HeardView[]> {
    const found: HeardView[] = [];
    for (;;) {
      const after = { room, personaId: found.at(-1)?.personaId ?? '' };
      const page = await feed.heardViews(after, FEW);
      const views = page.filter((view) => view.room === room);
      found.push(...views);
      if (views.length < FEW) return found;
    }
  }

  /** Reads until the index holds everything heard in these views. */
  async function readOn(views: HeardView[], signal: AbortSignal): Promise<void> {
    const cursors = views.flatMap((view): Cursor[] => [
      { view, addressed: true, refused: false },
      { view, addressed: false, refused: false },
    ]);
    while (cursors.length > 0 && !signal.aborted) {
      await askForPositions(cursors.slice(0, READS_AT_ONCE));
      const pages = await readPages(cursors);
      if (pages.length === 0) {
        await setImmediate();
        continue;
      }
      const taken = await index.addMessages(pages.map(({ page }) => page));
      for (const [n, { cursor, page, last }] of pages.entries()) {
        const position = positions.get(keyOf(cursor.view));
        if (taken[n]) {
          if (position) position[cursor.addressed ? 'addressed' : 'overheard'] = last.position;
          if (page.messages.length === PAGE) cursors.push(cursor);
        } else {
          // Another process was faster, or the view was reset. If it happens twice, a later `heard` starts again.
          positions.delete(keyOf(cursor.view));
          if (!cursor.refused) cursors.push({ ...cursor, refused: true });
        }
      }
    }
  }

  /** Reads a page of each cursor and removes those that are done; a cursor without a page is at its end. */
  async function readPages(cursors: Cursor[]) {
    const pages: { cursor: Cursor; page: MessagePage; last: HeardMessage }[] = [];
    let messages = 0;
    for (let reads = 0; reads < READS_AT_ONCE && messages < PAGE; reads++) {
      const cursor = cursors[0];
      const position = cursor && positions.get(keyOf(cursor.view));
      if (cursor === undefined || position === undefined) break;
      cursors.shift();
      const { view, addressed } = cursor;
      const { room, personaId, resetAt } = view;
      const after = addressed ? position.addressed : position.overheard;
      const heard = await feed.heardSince({ room, personaId, addressed, after, most: PAGE });
      const last = heard.at(-1);
      if (last === undefined) continue;
      const page = { scope: scopeOf(view), room, resetAt, addressed, after, messages: heard.map(indexed) };
      pages.push({ cursor, page, last });
      messages += heard.length;
    }
    return pages;
  }

  async function askForPositions(cursors: Cursor[]): Promise<void> {
    const isUnknown = (view: HeardView) => positions.get(keyOf(view))?.resetAt !== view.resetAt;
    const unknown = new Map(
      cursors.filter(({ view }) => isUnknown(view)).map(({ view }) => [keyOf(view), view]),
    );
    if (unknown.size === 0) return;
    if (positions.size > MOST_POSITIONS) positions.clear();
    const asked = [...unknown.values()].map((view) => ({ ...view, scope: scopeOf(view) }));
    for (const [n, position] of (await index.views(asked)).entries()) {
      const view = asked[n];
      if (view !== undefined) positions.set(keyOf(view), { ...position, resetAt: view.resetAt });
    }
  }

  async function readRooms(some: RoomId[], signal: AbortSignal): Promise<void> {
    try {
      const views: HeardView[] = [];
      for (const room of some) views.push(...(await viewsOf(room)));
      await readOn(views, signal);
    } catch (error) {
      for (const room of some) rooms.add(room);
      throw error;
    }
  }

  /** Whether the index holds everything that the scope heard in the room before a position. */
  function reaches(room: RoomId, { personaId }: Scope, place: Position): boolean {
    const position = positions.get(keyOf({ room, personaId }));
    return (
      position !== undefined && [position.addressed, position.overheard].every((at) => !isAfter(place, at))
    );
  }

  return {
    heard(room: RoomId): void {
      rooms.add(room);
      meanwhile?.add(room);
    },

    /** All views have to be checked again. */
    again(): void {
      positions.clear();
      allWaits = true;
    },

    /** Only what was said in these rooms is missing. */
    onlyMissing(some: RoomId[]): void {
      allWaits = false;
      for (const room of some) rooms.add(room);
    },

    /** Before a search: indexes pending messages of its chat, except those that the prompt shows anyway. */
    async refresh(scope: Scope, except: RecallQuery['except'], signal: AbortSignal): Promise<void> {
      const isShown = (room: RoomId) => room === except?.room && reaches(room, scope, except.after);
      const some = [...rooms].filter((room) => roomParts(room).chatId === scope.chatId && !isShown(room));
      for (const room of some) rooms.delete(room);
      if (some.length > 0) await readRooms(some, signal);
    },

    /** The number of rooms known to be pending. */
    waiting: () => rooms.size + (busy ? 1 : 0) + (allWaits ? 1 : 0),

    /** Does all pending work; resolves when nothing is left. Passes on errors of the store and the index. */
    async catchUp(signal: AbortSignal): Promise<void> {
      while (!signal.aborted && (allWaits || rooms.size > 0)) {
        const all = allWaits;
        const some = all ? [] : [...take(rooms, ROOMS_AT_ONCE)];
        allWaits = false;
        busy = true;
        try {
          if (all) await lookAtAll(signal);
          else await readRooms(some, signal);
        } catch (error) {
          allWaits ||= all;
          throw error;
        } finally {
          busy = false;
        }
      }
    },
  };
}

function* take<T>(set: Set<T>, most: number): Generator<T> {
  for (const item of set) {
    if (most-- === 0) return;
    set.delete(item);
    yield item;
  }
}

function keyOf({ room, personaId }: Pick<HeardView, 'room' | 'personaId'>): string {
  return `${room} ${personaId}`;
}

function scopeOf(view: HeardView): Scope {
  return { chatId: roomParts(view.room).chatId, personaId: view.personaId };
}

function indexed(message: HeardMessage) {
  const { id, sentAt: at, text, position } = message;
  return { id, at, text, heardAfter: position.heardAfter, author: wordsBy(message) };
}
