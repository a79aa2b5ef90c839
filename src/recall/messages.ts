/**
 * Keeps the index up with the store: what each persona heard in each room, from where the index stands on, a page at
 * a time. Begins with all views at the start and when the index was made anew, then follows what is told.
 */
import type { RoomId } from '../core/ids.js';
import { roomParts } from '../core/ids.js';
import type { HeardView, RecallFeed, RecallFiles, Scope } from '../core/recall.js';
import type { HeardMessage, Place } from '../core/view.js';
import type { Index } from './thread.js';

export interface Messages {
  heard(room: RoomId): void;
  /** All views are to be looked at again. */
  again(): void;
  /** How many rooms are known to wait. */
  waiting(): number;
  /** Does what there is to do; resolves when nothing is left. Throws what the store or the index throws. */
  catchUp(signal: AbortSignal): Promise<void>;
}

/** Small enough that neither thread is held up. */
const PAGE = 200;
/** Views of one room, mostly one; what comes behind them in the order are those of others. */
const FEW = 2;

export function createMessages({
  feed,
  files,
  index,
}: {
  feed: RecallFeed;
  files: RecallFiles;
  index: Index;
}): Messages {
  const rooms = new Set<RoomId>();
  /** Rooms that were heard in while all views are looked at. */
  let meanwhile: Set<RoomId> | null = null;
  /** How often all views were asked for, and for which of those they were looked at. */
  let asked = 1;
  let looked = 0;
  let busy = 0;

  async function lookAtAll(signal: AbortSignal): Promise<void> {
    meanwhile = new Set();
    const views: HeardView[] = [];
    for (let after: HeardView | null = null; !signal.aborted; ) {
      const page: HeardView[] = await feed.heardViews(after, PAGE);
      await dropLost(page);
      for (const view of page) if (!signal.aborted) await follow(view, signal);
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
    // A view that began meanwhile was on no page, and was taken for one that is gone.
    for (const room of meanwhile) rooms.add(room);
    meanwhile = null;
  }

  /** A store that was made anew counts its messages from one again: what is indexed of the old one is void. */
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

  async function lookAtRoom(room: RoomId, signal: AbortSignal): Promise<void> {
    for (let after = { room, personaId: '' }; !signal.aborted; ) {
      const page = await feed.heardViews(after, FEW);
      const views = page.filter((view) => view.room === room);
      for (const view of views) if (!signal.aborted) await follow(view, signal);
      const last = views.at(-1);
      if (last === undefined || views.length < page.length) return;
      after = { room, personaId: last.personaId };
    }
  }

  async function follow(view: HeardView, signal: AbortSignal): Promise<void> {
    const { room, personaId, resetAt } = view;
    const scope = scopeOf(view);
    const [stands] = await index.views([{ room, scope, resetAt }]);
    if (stands === undefined) return;
    for (const addressed of [true, false]) {
      let after: Place = addressed ? stands.addressed : stands.overheard;
      while (!signal.aborted) {
        const heard = await feed.heardSince({ room, personaId, addressed, after, most: PAGE });
        const last = heard.at(-1);
        if (last === undefined) break;
        const messages = heard.map((message) => indexed(message, personaId));
        // Not taken: another process was faster, or the view was reset. Both will be told of again.
        if (!(await index.addMessages({ scope, room, resetAt, addressed, after, messages }))) break;
        after = last.place;
      }
    }
  }

  return {
    heard(room) {
      rooms.add(room);
      meanwhile?.add(room);
    },
    again() {
      asked++;
    },
    waiting: () => rooms.size + busy + (looked < asked ? 1 : 0),

    async catchUp(signal) {
      while (!signal.aborted && (looked < asked || rooms.size > 0)) {
        if (looked < asked) {
          const asking = asked;
          await lookAtAll(signal);
          if (!signal.aborted) looked = asking;
        }
        for (const room of [...rooms]) {
          if (signal.aborted) return;
          rooms.delete(room);
          busy = 1;
          try {
            await lookAtRoom(room, signal);
          } catch (error) {
            rooms.add(room);
            throw error;
          } finally {
            busy = 0;
          }
        }
      }
    },
  };
}

function scopeOf(view: HeardView): Scope {
  return { chatId: roomParts(view.room).chatId, personaId: view.personaId };
}

function indexed(message: HeardMessage, personaId: string) {
  const { id, author, sentAt: at, text, place } = message;
  return {
    ...{ id, at, text, heardAfter: place.heardAfter },
    author: authorName(message),
    own: author.kind === 'persona' && author.id === personaId,
  };
}

export function authorName({ author }: HeardMessage): string {
  if (author.kind === 'gateway') return author.about;
  return author.kind === 'person' ? author.name : author.id;
}
