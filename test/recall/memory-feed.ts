/** A store and files in memory that do what the ports of recall say, for tests and for the bench. */
import { type RoomId, roomParts } from '../../src/core/ids.js';
import type { HeardView, RecallFeed, RecallFile, RecallFiles, Scope } from '../../src/core/recall.js';
import { type HeardMessage, isAfter } from '../../src/core/transcript.js';

export interface Said {
  room: RoomId;
  /** Who hears it; the first one is addressed, the others overhear it. */
  heardBy: string[];
  text: string;
  at?: number;
  author?: string;
  /** Whose words they only forwarded. */
  forwardedFrom?: string;
  /** The persona that says it. */
  by?: string;
}

export interface MemoryFeed extends RecallFeed {
  say(said: Said): number;
  /** Forgets everything so far in that room for that persona. */
  reset(room: RoomId, personaId: string): void;
  forget(chatId: string): void;
  edit(id: number, text: string): void;
  asked: { visible: number; heardSince: number };
}

export function memoryFeed(start = Date.UTC(2026, 0, 1)): MemoryFeed {
  const views = new Map<string, HeardView & { messages: HeardMessage[] }>();
  let lastId = 0;
  const asked = { visible: 0, heardSince: 0 };
  const keyOf = (room: RoomId, personaId: string) => `${room}\0${personaId}`;
  const inOrder = () => [...views.entries()].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  const seen = (view: HeardView & { messages: HeardMessage[] }) =>
    view.messages.filter(({ id }) => id > view.resetAt);

  return {
    asked,
    originIn: async () => 'inside',
    say({ room, heardBy, text, at, author = 'Ann', forwardedFrom, by }) {
      const id = ++lastId;
      heardBy.forEach((personaId, n) => {
        const key = keyOf(room, personaId);
        const view = views.get(key) ?? { room, personaId, resetAt: 0, messages: [] };
        views.set(key, view);
        view.messages.push({
          id,
          room,
          text,
          sentAt: at ?? start + id * 60_000,
          receivedAt: 0,
          platformMessageId: null,
          mentionsBot: false,
          replyTo: null,
          edited: false,
          turnId: null,
          author:
            by === undefined
              ? { kind: 'person', id: `terminal_${author}`, name: author, administrator: false }
              : { kind: 'persona', id: by },
          position: { heardAfter: id - 1, messageId: id },
          addressed: n === 0,
          ...(forwardedFrom === undefined ? {} : { forwardedFrom, tainted: true as const }),
        });
      });
      return id;
    },
    reset(room, personaId) {
      const view = views.get(keyOf(room, personaId));
      if (view) view.resetAt = lastId;
    },
    forget(chatId) {
      for (const [key, { room }] of views) if (roomParts(room).chatId === chatId) views.delete(key);
    },
    edit(id, text) {
      for (const view of views.values()) {
        view.messages = view.messages.map((message) => (message.id === id ? { ...message, text } : message));
      }
    },

    async heardViews(after, most) {
      const from = after === null ? '' : keyOf(after.room, after.personaId);
      const page = inOrder().filter(([key]) => key > from);
      return page.slice(0, most).map(([, { room, personaId, resetAt }]) => ({ room, personaId, resetAt }));
    },
    async heardSince({ room, personaId, addressed, after, most }) {
      asked.heardSince++;
      const view = views.get(keyOf(room, personaId));
      if (view === undefined) return [];
      const found: HeardMessage[] = [];
      for (
        let n = after.messageId === 0 ? 0 : Math.max(0, first(view.messages, after.messageId) - 1);
        n < view.messages.length;
        n++
      ) {
        const message = view.messages[n];
        if (message === undefined || found.length >= most) break;
        if (message.id > view.resetAt && message.addressed === addressed && isAfter(message.position, after))
          found.push(message);
      }
      return found;
    },
    async visible(scope, ids) {
      asked.visible++;
      const wanted = new Set(ids);
      const found = new Map<number, HeardMessage>();
      for (const view of views.values()) {
        if (view.personaId !== scope.personaId || roomParts(view.room).chatId !== scope.chatId) continue;
        for (const message of ids.length > 1000 ? seen(view) : some(view.messages, wanted)) {
          if (wanted.has(message.id) && message.id > view.resetAt) found.set(message.id, message);
        }
      }
      return [...found.values()];
    },
  };
}

function first(messages: HeardMessage[], id: number): number {
  let low = 0;
  let high = messages.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((messages[middle]?.id ?? 0) < id) low = middle + 1;
    else high = middle;
  }
  return low;
}

function some(messages: HeardMessage[], ids: Set<number>): HeardMessage[] {
  return [...ids].flatMap((id) => {
    const message = messages[first(messages, id)];
    return message?.id === id ? [message] : [];
  });
}

export interface MemoryFiles extends RecallFiles {
  put(scope: Scope, file: string, text: string): void;
  remove(scope: Scope, file: string): void;
  reads: string[];
}

export function memoryFiles(): MemoryFiles {
  const folders = new Map<string, { scope: Scope; files: Map<string, { text: string; stamp: number }> }>();
  const keyOf = ({ chatId, personaId }: Scope) => `${chatId}\0${personaId}`;
  let stamps = 0;
  const reads: string[] = [];
  return {
    reads,
    put(scope, file, text) {
      const folder = folders.get(keyOf(scope)) ?? { scope, files: new Map() };
      folders.set(keyOf(scope), folder);
      folder.files.set(file, { text, stamp: ++stamps });
    },
    remove: (scope, file) => void folders.get(keyOf(scope))?.files.delete(file),
    scopes: async () => [...folders.values()].map(({ scope }) => scope),
    list: async (scope) => {
      const found = folders.get(keyOf(scope))?.files ?? new Map<string, { text: string; stamp: number }>();
      return [...found].map(
        ([file, { text, stamp }]): RecallFile => ({ file, stamp: String(stamp), bytes: text.length }),
      );
    },
    async read(scope, file) {
      reads.push(file);
      return folders.get(keyOf(scope))?.files.get(file)?.text ?? null;
    },
  };
}
