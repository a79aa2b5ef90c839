/**
 * Step 4 of the route: the contents of a persona's window, read from the store in each turn. Rendered messages are cached by
 * message and by the room's revision, which rises with every change of an earlier message.
 */

import { LRUCache } from 'lru-cache';
import type { PersonaId, RoomId } from '../../core/ids.js';
import type { PromptMemory } from '../../core/memory.js';
import type { ModelImage } from '../../core/model.js';
import type { HeardMessage, StoredMessage, TranscriptStore, ViewRecord } from '../../core/transcript.js';
import type { Trust } from '../turn/taint.js';
import { tokensOf } from '../turn/tokens.js';
import {
  albumsOf,
  answeredTurns,
  asOne,
  entryOf,
  isUnanswered,
  type Perspective,
  type RenderedMessages,
} from './history.js';
import type { PromptPrefix } from './knowledge.js';
import { trustOf } from './trust.js';

export interface WindowRequest {
  room: RoomId;
  /** The room's revision when the turn began. */
  revision: number;
  perspective: Perspective;
  /** The personas' names as one text, part of the cache key because rendered messages contain them. */
  names: string;
  limit: number;
  overheard: number;
  /** The messages being answered, oldest first; the history ends before them. */
  batch: readonly StoredMessage[];
}

export interface RenderedEntry {
  messages: RenderedMessages;
  tokens: number;
}

export interface WindowContent {
  view: ViewRecord;
  /** There were more addressed messages than a request may contain. */
  overfull: boolean;
  /** Number of messages of each kind, without the batch. */
  addressed: number;
  overheard: number;
  /** The messages before the batch; an album counts as one. */
  history: HeardMessage[];
  /** All messages as stored, including the batch. */
  heard: HeardMessage[];
  /** The batch and messages overheard since its first message, in order; an album counts as one. */
  asked: AskedMessage[];
  /** Of the window and the batch. */
  trust: Trust;
  /** The history, rendered. `images` is keyed by message id. */
  entries(images: ReadonlyMap<number, ModelImage[]>): RenderedEntry[];
}

/** A message at the end of a request. */
export interface AskedMessage {
  message: StoredMessage;
  /** False if it was only overheard. */
  answered: boolean;
}

/** The state of a view's last request; null before the first. */
export interface LastRequest {
  prefix: PromptPrefix | null;
  /** The memory given to the last answer, as stored. */
  memory: PromptMemory | null;
}

type ViewState = Pick<ViewRecord, 'room' | 'personaId'> & { revision: number };

export interface WindowCache {
  read(request: WindowRequest): Promise<WindowContent>;
  /** Empty if the room's revision has changed since. */
  last(view: ViewState): LastRequest;
  keep(view: ViewState, changed: Partial<LastRequest>): void;
}

/** The limits of the two caches, in characters: some tens of megabytes together. */
const MOST_RENDERED = 16_000_000;
const MOST_KEPT = 8_000_000;
/** Approximate size of an entry's objects besides its text. */
const OVERHEAD = 400;
const NO_REQUEST: LastRequest = { prefix: null, memory: null };

export function createWindowCache(store: TranscriptStore): WindowCache {
  const rendered = new LRUCache<string, RenderedEntry>({
    maxSize: MOST_RENDERED,
    sizeCalculation: ({ tokens }) => OVERHEAD + 4 * tokens,
  });
  const requests = new LRUCache<string, LastRequest & { revision: number }>({
    maxSize: MOST_KEPT,
    sizeCalculation: ({ prefix, memory }) =>
      OVERHEAD + (prefix?.frame.length ?? 0) + 2 * (prefix?.shown.memory.text.length ?? 0) + sizeOf(memory),
  });

  return {
    async read({ room, revision, perspective, names, limit, overheard, batch }) {
      const { personaId } = perspective;
      const span = await store.window({
        room,
        personaId,
        limit: limit + batch.length,
        overheard,
        except: [],
      });
      const heard = albumsOf(span.messages).map((items) => ({ message: asOne(items), items }));
      const isOfBatch = isAmong(batch);
      const end = endOfHistory(heard, isOfBatch, personaId);
      const history = heard.slice(0, end).filter((each) => !isOfBatch(each));
      const isAsked = heard.slice(0, end).filter(isOfBatch);
      const others = heard.filter((each) => !isOfBatch(each)).flatMap(({ items }) => items);
      const addressed = others.filter((message) => message.addressed).length;
      const messages = history.map(({ message }) => message);
      return {
        view: span.view,
        overfull: span.more,
        addressed,
        overheard: others.length - addressed,
        history: messages,
        heard: span.messages,
        asked: askedMessages([...isAsked, ...heard.slice(end)], batch, isOfBatch),
        trust: trustOf([...span.messages, ...batch], span.view),
        entries(images) {
          const answered = answeredTurns(messages);
          return messages.map((message, n) => {
            const isOpen = isUnanswered(messages, n, answered);
            const pictures = images.get(message.id);
            const render = () => {
              const steps = message.turnId === null ? undefined : span.steps.get(message.turnId);
              const entry = entryOf(message, { perspective, steps, images: pictures, isUnanswered: isOpen });
              return { messages: entry, tokens: tokensOf(entry) };
            };
            if (pictures) return render();
            const key = [message.id, revision, personaId, isOpen, perspective.namesIds, names].join(' ');
            const known = rendered.get(key) ?? render();
            rendered.set(key, known);
            return known;
          });
        },
      };
    },
    last(view) {
      const known = requests.get(keyOf(view));
      return known?.revision === view.revision ? known : NO_REQUEST;
    },
    keep(view, changed) {
      const known = requests.get(keyOf(view));
      const revision = Math.max(view.revision, known?.revision ?? 0);
      const before = known?.revision === revision ? known : NO_REQUEST;
      requests.set(keyOf(view), { ...before, ...changed, revision });
    },
  };
}

function keyOf({ room, personaId }: ViewState): string {
  return `${room}\n${personaId}`;
}

function sizeOf(memory: PromptMemory | null): number {
  return memory === null ? 0 : Object.values(memory).join('').length;
}

/** A heard message as it is shown, and as stored: an album has several. */
interface HeardEntry {
  message: HeardMessage;
  items: HeardMessage[];
}

function isAmong(batch: readonly StoredMessage[]): (heard: HeardEntry) => boolean {
  const ids = new Set(batch.map(({ id }) => id));
  return ({ items }) => items.some(({ id }) => ids.has(id));
}

/**
 * Index from which messages are placed with the batch. Overheard messages between and after the batch stay in place: "should I
 * delete it?", "wait, not that one", "so?".
 */
function endOfHistory(
  heard: HeardEntry[],
  isOfBatch: (heard: HeardEntry) => boolean,
  own: PersonaId,
): number {
  // A resumed turn continues at the end, after everything answered meanwhile.
  const closed = heard.findLastIndex((each) => {
    const { author, turnId } = each.message;
    if (isOfBatch(each)) return false;
    return author.kind === 'persona' ? author.id === own : turnId !== null;
  });
  const first = heard.findIndex((each, n) => n > closed && isOfBatch(each));
  return first < 0 ? heard.length : first;
}

/** The whole batch, including messages the window does not hold, and the others in their order. */
function askedMessages(
  heard: HeardEntry[],
  batch: readonly StoredMessage[],
  isOfBatch: (heard: HeardEntry) => boolean,
): AskedMessage[] {
  const asked: AskedMessage[] = heard.map((each) => ({ message: each.message, answered: isOfBatch(each) }));
  const held = new Set(heard.flatMap(({ items }) => items.map(({ id }) => id)));
  for (const items of albumsOf(batch.filter(({ id }) => !held.has(id)))) {
    const message = asOne(items);
    const next = asked.findIndex((each) => each.message.id > message.id);
    asked.splice(next < 0 ? asked.length : next, 0, { message, answered: true });
  }
  return asked;
}
