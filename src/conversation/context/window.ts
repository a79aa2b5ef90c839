/** Step 4 of the route: the contents of a persona's window. Each turn reads only what was heard since the last request. */
import type { PersonaId, RoomId } from '../../core/ids.js';
import type { ModelImage, ModelMessage } from '../../core/model.js';
import {
  BEGINNING,
  type HeardMessage,
  type StoredMessage,
  type ViewRecord,
  type WindowAsk,
} from '../../core/transcript.js';
import type { Services } from '../services.js';
import { isNamed, type Trust } from '../turn/taint.js';
import type { ShownMessage } from './albums.js';
import { asShown, historyEntries, type Perspective } from './history.js';
import type { StoredWindow } from './knowledge.js';

export interface WindowContent {
  view: ViewRecord;
  /** As stored, to be kept for the next turn. */
  stored: StoredWindow;
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
  entries(images: ReadonlyMap<number, ModelImage[]>): ModelMessage[][];
}

/** A message at the end of a request. */
export interface AskedMessage {
  message: StoredMessage;
  /** False if it was only overheard. */
  answered: boolean;
}

/** Safety limit: windows are compacted long before; a longer one is cut for this request. */
const ROWS_PER_WINDOW = 4;

/** `batch`: the messages being answered, oldest first; the history ends before them. */
export async function readWindow(
  { store, settings }: Services,
  room: RoomId,
  perspective: Perspective,
  batch: readonly StoredMessage[],
  last: StoredWindow | null,
  except: readonly number[] = [],
): Promise<WindowContent> {
  const { compactAfterMessages, overheardMessages } = settings;
  const { personaId } = perspective;
  const limit = compactAfterMessages * ROWS_PER_WINDOW + batch.length;
  const ask = { room, personaId, limit, overheard: overheardMessages, except };
  const stored = (last && (await continued(store, ask, last))) ?? (await store.window(ask));
  const { view, more, steps } = stored;
  const heard = asShown(stored.messages);
  const ids = new Set(batch.map(({ id }) => id));
  const isOfBatch = ({ items }: ShownMessage<HeardMessage>) => items.some(({ id }) => ids.has(id));
  const end = endOfHistory(heard, isOfBatch, personaId);
  const history = heard.slice(0, end).filter((each) => !isOfBatch(each));
  const asked = [...heard.slice(0, end).filter(isOfBatch), ...heard.slice(end)];
  const others = heard.filter((each) => !isOfBatch(each)).flatMap(({ items }) => items);
  const addressed = others.filter((message) => message.addressed).length;
  const messages = history.map(({ message }) => message);
  const all = [...stored.messages, ...batch];
  return {
    view,
    stored,
    overfull: more,
    addressed,
    overheard: others.length - addressed,
    history: messages,
    heard: stored.messages,
    asked: askedMessages(asked, batch, isOfBatch),
    trust: {
      isTainted: view.tainted || all.some(({ tainted }) => tainted),
      isNamed: (address) => isNamed(address, all),
    },
    entries: (images) => historyEntries(messages, steps, perspective, { images }),
  };
}

/** The last window and the messages heard since; null if the window has moved, or older messages would have to go. */
async function continued(
  store: Services['store'],
  ask: WindowAsk,
  last: StoredWindow,
): Promise<StoredWindow | null> {
  const news = await store.window({ ...ask, after: last.messages.at(-1)?.position ?? BEGINNING });
  const { resetAt, windowAfter } = last.view;
  const isOther =
    news.more ||
    news.view.resetAt !== resetAt ||
    news.view.windowAfter.heardAfter !== windowAfter.heardAfter ||
    news.view.windowAfter.messageId !== windowAfter.messageId;
  const messages = [...last.messages, ...news.messages];
  const addressed = messages.filter((message) => message.addressed).length;
  if (isOther || addressed > ask.limit || messages.length - addressed > ask.overheard) return null;
  return { view: news.view, messages, steps: new Map([...last.steps, ...news.steps]), more: last.more };
}

/**
 * Index from which messages are placed with the batch. Overheard messages between and after the batch stay in place: "should I
 * delete it?", "wait, not that one", "so?".
 */
function endOfHistory(
  heard: ShownMessage<HeardMessage>[],
  isOfBatch: (heard: ShownMessage<HeardMessage>) => boolean,
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
  heard: ShownMessage<HeardMessage>[],
  batch: readonly StoredMessage[],
  isOfBatch: (heard: ShownMessage<HeardMessage>) => boolean,
): AskedMessage[] {
  const asked: AskedMessage[] = heard.map((each) => ({ message: each.message, answered: isOfBatch(each) }));
  const held = new Set(heard.flatMap(({ items }) => items.map(({ id }) => id)));
  for (const { message } of asShown(batch.filter(({ id }) => !held.has(id)))) {
    const next = asked.findIndex((each) => each.message.id > message.id);
    asked.splice(next < 0 ? asked.length : next, 0, { message, answered: true });
  }
  return asked;
}
