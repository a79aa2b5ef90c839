/**
 * Step 4 of the route: caches a persona's window, rendered as model messages, so that each turn only appends to it. A
 * copy is valid for one revision of its room: anything that changes what was heard there (an edit, forgetting, a reset,
 * a compaction, a suspended turn that resumes, another process) increases the revision, and the copy is rebuilt. Only the newest messages are rendered
 * again in each turn, because whether they were answered and which images are shown may change.
 */
import type { PersonaId, RoomId } from '../../core/ids.js';
import type { PromptMemory } from '../../core/memory.js';
import type { ModelImage } from '../../core/model.js';
import type { RouteStore } from '../../core/route-store.js';
import type { HeardMessage, Position, Span, Step, StoredMessage, ViewRecord } from '../../core/transcript.js';
import type { Trust } from '../turn/ask.js';
import { tokensOf } from '../turn/tokens.js';
import {
  albumsOf,
  answeredTurns,
  asOne,
  type Entry,
  entryOf,
  isUnanswered,
  LOOK_AHEAD,
  type Perspective,
} from './history.js';
import { type Behind, endOfWindow, isAmong, type Said, saidBehind } from './said.js';
import type { Standing } from './standing.js';
import { type Heard, noteHeard, trustOf } from './trust.js';

export interface WindowAsk {
  room: RoomId;
  /** The room's revision when the turn began. */
  revision: number;
  perspective: Perspective;
  /** The personas' names as one text; a different text invalidates the copy. */
  names: string;
  limit: number;
  overheard: number;
  /** The messages being answered, oldest first; the window ends before them. */
  batch: readonly StoredMessage[];
}

export interface RenderedEntry {
  messages: Entry;
  tokens: number;
}

export interface WindowCopy {
  view: ViewRecord;
  /** There were more addressed messages than a request may contain. */
  more: boolean;
  /** Number of messages of each kind, without the batch. */
  addressed: number;
  overheard: number;
  /** The newest messages of the window; an album is one. */
  newest: HeardMessage[];
  /** The newest messages as they are stored, with the batch. */
  heard: HeardMessage[];
  /** The batch and what was overheard since its first message, in the order in which it was said; an album is one. */
  said: Said[];
  /** All entries of the window. `images` is keyed by message id. */
  entries(images: ReadonlyMap<number, ModelImage[]>): RenderedEntry[];
  /** The memory given to the last answer, as stored. */
  promptMemory: PromptMemory | null;
  /** What the requests over this copy begin with; null before the first. */
  standing: Standing | null;
  /** Of the window and the batch. */
  trust: Trust;
}

export interface WindowCopies {
  read(ask: WindowAsk): Promise<WindowCopy>;
  /** What the last request of a view began with; null when there is no copy of it of the room's revision. */
  standing(view: Pick<ViewRecord, 'room' | 'personaId'> & { revision: number }): Standing | null;
  /** Records what a request begins with. */
  noteStanding(room: RoomId, personaId: PersonaId, standing: Standing): void;
  /** Records the memory given to an answer, after the store has committed it. */
  noteGiven(room: RoomId, personaId: PersonaId, given: PromptMemory): void;
}

/** How many of the newest messages are rendered again in each turn. */
const RECENT = LOOK_AHEAD + 4;
/** The limit for all copies together, in characters: some tens of megabytes. */
const MOST_CHARS = 16_000_000;
/** What a rendered message and its objects take beside its text, roughly. */
const CHARS_AROUND_EACH = 400;

interface Recent extends Behind {
  /** The last rendering without images; null if there is none. */
  rendered: { entry: RenderedEntry; isUnanswered: boolean } | null;
}

interface Copy {
  revision: number;
  names: string;
  view: ViewRecord;
  /** The position of its last message. */
  end: Position;
  settled: RenderedEntry[];
  recent: Recent[];
  /** The steps of the recent messages' turns. */
  steps: Map<string, Step[]>;
  addressed: number;
  overheard: number;
  chars: number;
  more: boolean;
  promptMemory: PromptMemory | null;
  standing: Standing | null;
  trusted: Heard;
}

export function createWindowCopies(store: Pick<RouteStore, 'window'>): WindowCopies {
  /** By view, in order of last use (LRU). */
  const copies = new Map<string, Copy>();
  let chars = 0;

  function drop(key: string): void {
    chars -= copies.get(key)?.chars ?? 0;
    copies.delete(key);
  }

  function keep(key: string, copy: Copy): void {
    drop(key);
    copies.set(key, copy);
    chars += copy.chars;
    for (const oldest of copies.keys()) {
      if (chars <= MOST_CHARS || oldest === key) break;
      drop(oldest);
    }
  }

  async function current(key: string, ask: WindowAsk): Promise<Copy> {
    const { room, perspective, limit } = ask;
    // The copy includes the batch; `shownOf` tells it apart.
    const whole = {
      room,
      personaId: perspective.personaId,
      limit: limit + ask.batch.length,
      overheard: ask.overheard,
      except: [],
    };
    const known = copies.get(key);
    if (known && known.revision === ask.revision && known.names === ask.names) {
      const news = await store.window({ ...whole, after: known.end });
      if (isSameView(known.view, news.view) && append(known, news, ask)) return known;
    }
    const span = await store.window(whole);
    const copy: Copy = {
      revision: ask.revision,
      names: ask.names,
      view: span.view,
      end: span.view.windowAfter,
      settled: [],
      recent: [],
      steps: new Map(),
      addressed: 0,
      overheard: 0,
      chars: 0,
      more: false,
      promptMemory: null,
      standing: null,
      trusted: { tainted: false, hosts: new Set() },
    };
    append(copy, span, ask);
    copy.more = span.more;
    return copy;
  }

  return {
    async read(ask) {
      const key = `${ask.room}\n${ask.perspective.personaId}`;
      const before = copies.get(key)?.chars ?? 0;
      const copy = await current(key, ask);
      // Adjusts the total for a copy that has grown in place.
      if (copies.get(key) === copy) chars += copy.chars - before;
      keep(key, copy);
      return shownOf(copy, ask);
    },
    standing({ room, personaId, revision }) {
      const copy = copies.get(`${room}\n${personaId}`);
      return copy?.revision === revision ? copy.standing : null;
    },
    noteStanding(room, personaId, standing) {
      const copy = copies.get(`${room}\n${personaId}`);
      if (copy) copy.standing = standing;
    },
    noteGiven(room, personaId, given) {
      const copy = copies.get(`${room}\n${personaId}`);
      if (copy) copy.promptMemory = given;
    },
  };
}

/** Appends new messages. False if older ones would have to be removed: then the copy is rebuilt. */
function append(copy: Copy, news: Span & { view: ViewRecord }, ask: WindowAsk): boolean {
  const addressed = news.messages.filter((message) => message.addressed).length;
  const overheard = news.messages.length - addressed;
  const isFresh = copy.settled.length + copy.recent.length === 0;
  const fits =
    copy.addressed + addressed <= ask.limit + ask.batch.length && copy.overheard + overheard <= ask.overheard;
  if (!isFresh && !fits) return false;
  copy.view = news.view;
  copy.addressed += addressed;
  copy.overheard += overheard;
  for (const [turnId, steps] of news.steps) {
    copy.steps.set(turnId, steps);
    for (const step of steps) copy.chars += charsOf(step);
  }
  for (const items of albumsOf(news.messages)) {
    const message = asOne(items);
    for (const item of items) noteHeard(copy.trusted, item);
    copy.recent.push({ message, items, rendered: null });
    copy.chars += message.text.length + CHARS_AROUND_EACH;
  }
  copy.end = news.messages.at(-1)?.position ?? copy.end;
  settle(copy, ask);
  return true;
}

function charsOf(step: Step): number {
  if (step.kind === 'result') return step.content.length;
  const echoed = step.kind === 'answer' && step.echo ? JSON.stringify(step.echo).length : 0;
  return CHARS_AROUND_EACH + echoed;
}

/** Renders messages for good once they are far enough back and precede the batch. */
function settle(copy: Copy, { batch, perspective }: WindowAsk): void {
  const messages = copy.recent.map(({ message }) => message);
  const isOfBatch = isAmong(batch);
  const firstOfBatch = copy.recent.findIndex(isOfBatch);
  const most = Math.min(messages.length - RECENT, firstOfBatch < 0 ? messages.length : firstOfBatch);
  // In batches: settling each message by itself would copy the array in every turn.
  if (most < RECENT) return;
  const answered = answeredTurns(messages);
  for (const [n, { message }] of copy.recent.slice(0, most).entries()) {
    copy.settled.push(render(copy, message, perspective, isUnanswered(messages, n, answered)));
    if (message.turnId !== null && message.author.kind === 'persona') copy.steps.delete(message.turnId);
  }
  copy.recent = copy.recent.slice(most);
}

function render(
  copy: Copy,
  message: HeardMessage,
  perspective: Perspective,
  isOpen: boolean,
  images?: ModelImage[],
): RenderedEntry {
  const steps = message.turnId === null ? undefined : copy.steps.get(message.turnId);
  const messages = entryOf(message, { perspective, steps, images, isUnanswered: isOpen });
  return { messages, tokens: tokensOf(messages) };
}

function shownOf(copy: Copy, { batch, perspective }: WindowAsk): WindowCopy {
  const isOfBatch = isAmong(batch);
  const end = endOfWindow(copy.recent, isOfBatch, perspective.personaId);
  const recent = copy.recent.slice(0, end).filter((each) => !isOfBatch(each));
  const earlier = copy.recent.slice(0, end).filter(isOfBatch);
  const newest = recent.map(({ message }) => message);
  const left = copy.recent.filter(isOfBatch);
  const count = (some: Recent[]) => some.reduce((sum, { items }) => sum + items.length, 0);
  const leftAddressed = count(left.filter(({ message }) => message.addressed));
  return {
    view: copy.view,
    more: copy.more,
    addressed: copy.addressed - leftAddressed,
    overheard: copy.overheard - (count(left) - leftAddressed),
    newest,
    heard: copy.recent.flatMap(({ items }) => items),
    said: saidBehind([...earlier, ...copy.recent.slice(end)], batch, isOfBatch),
    promptMemory: copy.promptMemory,
    standing: copy.standing,
    trust: trustOf({ heard: copy.trusted, view: copy.view }, batch),
    entries(images) {
      const answered = answeredTurns(newest);
      const entries = recent.map((each, n) => {
        const isOpen = isUnanswered(newest, n, answered);
        const pictures = images.get(each.message.id);
        if (pictures) return render(copy, each.message, perspective, isOpen, pictures);
        if (each.rendered?.isUnanswered !== isOpen) {
          each.rendered = { entry: render(copy, each.message, perspective, isOpen), isUnanswered: isOpen };
        }
        return each.rendered.entry;
      });
      return [...copy.settled, ...entries];
    },
  };
}

function isSameView(a: ViewRecord, b: ViewRecord): boolean {
  return (
    a.resetAt === b.resetAt &&
    a.windowAfter.heardAfter === b.windowAfter.heardAfter &&
    a.windowAfter.messageId === b.windowAfter.messageId
  );
}
