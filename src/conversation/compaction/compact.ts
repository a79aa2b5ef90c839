/** Compacts one window: flush, summary, move. If the flush fails, the leaving messages are archived, so none leaves unsaved. */

import { createHash } from 'node:crypto';
import type { ArchiveHead } from '../../core/chat-record.js';
import { OVER } from '../../core/clock.js';
import { estimateTokens } from '../../core/cut.js';
import { roomParts } from '../../core/ids.js';
import { memoryPath } from '../../core/origin.js';
import { personaName } from '../../core/persona.js';
import { putSetting, settingOf } from '../../core/store.js';
import {
  BEGINNING,
  END,
  type HeardMessage,
  isAfter,
  type Position,
  type Span,
  type ViewRecord,
  wordsBy,
} from '../../core/transcript.js';
import { historyEntries } from '../context/history.js';
import type { Knowledge } from '../context/knowledge.js';
import type { ArchiveCopy, MeteredModel, Services } from '../services.js';
import { tokensOf, tokensPerEstimated } from '../turn/tokens.js';
import { boundaries, cutPlace, summarise } from './content.js';
import { flush, knowledgeOf } from './flush.js';
import { flushTools, guarded, type OnWindow, requestTokensFor, type WindowWork } from './subject.js';

/** Target size of the request after a compaction, as a share of the context window, including fixed parts. */
const FULL_AFTERWARDS = 0.5;
/** Minimum share of the context window for the newest messages, however long principles and memory are. */
const LEAST_KEPT = 0.1;
/** Maximum share of a request for the messages to be answered. */
const LONGEST_ASKED = 0.9;
/** The flush's share of a waiting turn's patience; the rest is for the summary. */
const FLUSH_SHARE = 2 / 3;
const MOST_ROWS = 2_000;

export type CompactionEnd =
  | 'moved'
  /** Nothing can leave: the rest is one exchange, or too small. */
  | 'nothing'
  /** Aborted, or overtaken by a reset: nothing was moved. */
  | 'dropped';

/** A turn that waits for space in its request; its own messages are not compacted. */
export interface WaitingTurn {
  id: string;
  /** Our estimate of its request that the server rejected as too long. */
  refused: number | null;
  patienceMs: number;
}

/** Throws if an archive cannot be written; nothing is moved then. */
export async function compact(work: WindowWork, turn: WaitingTurn | null): Promise<CompactionEnd> {
  const { store, clock, settings, log, signal } = work;
  const { room, personaId } = work.subject;
  const about = { room, personaId, limit: MOST_ROWS, overheard: settings.overheardMessages };
  const all = await store.window({ ...about, except: [] });
  const isAsked = ({ turnId }: HeardMessage) => turn !== null && turnId === turn.id;
  const window = { ...all, messages: all.messages.filter((message) => !isAsked(message)) };
  const known = await knowledgeOf(work);
  const leavesAt = placeToCut(work, window, known, turn, all.messages.filter(isAsked));
  if (!leavesAt) return 'nothing';
  // The flush covers every completed exchange, not only the leaving ones.
  const last = window.messages[boundaries(window.messages).at(-1) ?? -1]?.position ?? leavesAt;

  const late = new AbortController();
  const flushLate = new AbortController();
  const cancels = turn && [
    clock.after(turn.patienceMs, () => late.abort(OVER)),
    clock.after(turn.patienceMs * FLUSH_SHARE, () => flushLate.abort(OVER)),
  ];
  try {
    const flushed = await flush({ ...work, signal: AbortSignal.any([signal, flushLate.signal]) }, last);
    if (signal.aborted) return 'dropped';
    if (flushed.kind === 'failed') {
      log.warn({ room, persona: personaId, why: flushed.reason }, 'memory flush failed; it stays pending');
    }
    const view = await store.view(room, personaId);
    const isSeen = !isAfter(leavesAt, view.flushedTo);
    const summary = await guarded(work, 'summary', async () => {
      if (signal.aborted || late.signal.aborted) return null;
      const leaving = await store.span({ ...about, after: view.windowAfter, upTo: leavesAt });
      return summarise({ ...work, signal: AbortSignal.any([signal, late.signal]) }, view, leaving, known);
    });
    if (signal.aborted) return 'dropped';
    // An archive is also needed without a summary, or if the flush did not see every message in full.
    const isCut = flushed.kind === 'flushed' && flushed.cut;
    if (summary !== null && isSeen && !isCut) return await move(work, view, leavesAt, summary, null);
    const { file, messages } = await archive(work, view, leavesAt, isSeen);
    // Without a summary, this note at least tells the model that there was more.
    const note = `(${messages} messages before this are not summed up; they stand in the archive ${file}.)`;
    const noted = view.summary ? `${view.summary}\n\n${note}` : note;
    return await move(work, view, leavesAt, summary ?? noted, file);
  } finally {
    for (const cancel of cancels ?? []) cancel();
  }
}

/** null if nothing has to leave, or nothing can. `asked`: the messages of the waiting turn. */
function placeToCut(
  work: WindowWork,
  { view, messages, steps, more }: Span & { view: ViewRecord },
  known: Knowledge,
  turn: WaitingTurn | null,
  asked: HeardMessage[],
): Position | null {
  const { keepRecentMessages, compactAfterMessages } = work.settings;
  const refused = turn?.refused ?? null;
  const tokensIn = (some: HeardMessage[]) => tokensOf(historyEntries(some, steps, known.perspective).flat());
  // A rejected request was too long for the model, whatever its configured window is.
  const window = requestTokensFor(work);
  const scale = Math.max(tokensPerEstimated(view.measured), refused === null ? 0 : window / refused);
  const most = window / scale;
  const fixed = estimateTokens(known.system) + estimateTokens(view.summary ?? '') + flushTools(work).tokens;
  // A longer batch is shown shortened.
  const left = most - fixed - Math.min(tokensIn(asked), LONGEST_ASKED * (most - fixed));
  const addressed = messages.filter((message) => message.addressed).length;
  const fits = !more && addressed <= compactAfterMessages && tokensIn(messages) <= left;
  if (turn && refused === null && fits) return null;
  return cutPlace(messages, {
    messages: keepRecentMessages,
    tokens: Math.max(LEAST_KEPT * most, Math.min(FULL_AFTERWARDS * most - fixed, left)),
    tokensOf: (message) => tokensIn([message]),
  });
}

/** `file`: the archive of what leaves; it is removed again if somebody else has changed the view. */
async function move(
  { store, archives, metrics, log, clock, meter }: Services & { meter?: MeteredModel },
  view: ViewRecord,
  to: Position,
  summary: string | null,
  file: string | null,
): Promise<CompactionEnd> {
  const usage = meter?.due() ?? null;
  const moved = await store.moveWindow({ view, to, archive: file, summary, usage, now: clock.now() });
  meter?.paid();
  metrics.count('compactions_total', { outcome: moved ? 'moved' : 'overtaken' });
  if (moved) {
    log.info({ room: view.room, persona: view.personaId, archive: file }, 'window compacted');
    return 'moved';
  }
  if (file !== null) {
    const { chatId } = roomParts(view.room);
    await archives.remove(chatId, file).catch((error) => {
      log.warn({ err: error, chat: chatId, file }, 'unneeded archive not removed');
    });
    await store.noteArchive({ chatId, file, state: 'dropped' });
  }
  return 'dropped';
}

/** Moves a window past all its messages, archived but not flushed: for the deletion of a persona. */
export async function putAway(services: OnWindow): Promise<void> {
  const { room, personaId } = services.subject;
  const window = await services.store.window({ room, personaId, except: [], limit: 1, overheard: 0 });
  const last = window.messages.at(-1)?.position;
  if (!last) return;
  const { view } = window;
  const isSeen = !isAfter(last, view.flushedTo);
  const file = isSeen ? null : (await archive(services, view, last, false, 'the persona was deleted')).file;
  await move(services, view, last, null, file);
}

interface CopiedSpan {
  after: Position;
  upTo: Position;
}

const PAGE = 500;

async function archive(
  services: OnWindow,
  { windowAfter: after }: ViewRecord,
  to: Position,
  isSeen: boolean,
  reason = isSeen ? 'it left the window without a summary' : 'it left the window before a memory flush',
): Promise<{ file: string; messages: number }> {
  const { store, archives, metrics } = services;
  const { room, personaId, chat } = services.subject;
  const head = headOf(services, reason, isSeen);
  const file = await archives.newName(head);
  // Recorded before the file is written, so that a file left incomplete by a crash is found and removed.
  const span = { chatId: chat.id, file, room, personaId, after, to };
  await store.noteArchive({ ...span, state: 'writing' });
  const messages = await copySpan(services, { after, upTo: to }, file, head);
  metrics.count('archives_total', { flushed: String(isSeen) });
  return { file, messages };
}

async function* pagesOf({ store, subject }: OnWindow, { after, upTo }: CopiedSpan) {
  const { room, personaId } = subject;
  let from: Position | undefined = after;
  while (from) {
    const page = await store.span({ room, personaId, after: from, upTo, limit: PAGE, overheard: 0 });
    yield page.messages;
    from = page.more ? page.messages.at(-1)?.position : undefined;
  }
}

/** Copies a span verbatim into an archive file, without overheard messages. Returns the number of messages. */
export async function copySpan(
  services: OnWindow,
  span: CopiedSpan,
  file: string,
  head: ArchiveHead,
): Promise<number> {
  const { store, archives, log } = services;
  const { room, chat, personas } = services.subject;
  const path = memoryPath(chat.id, `archive/${file}`);
  let written = 0;
  let isOutside = false;

  async function* pages() {
    for await (const messages of pagesOf(services, span)) {
      written += messages.length;
      if (!isOutside && messages.some(({ tainted }) => tainted)) {
        isOutside = true;
        // Marked before the file exists, so a crash cannot leave an unmarked file.
        await store.markOutside(path, null);
      }
      yield messages.map((message) => {
        const { id, text, sentAt } = message;
        return { id, name: wordsBy(message, (by) => personaName(personas, by)), text, sentAt };
      });
    }
  }

  await archives.write(head, file, pages());
  log.info({ chat: chat.id, room, file, messages: written }, 'conversation archived');
  return written;
}

/** Copies that people requested, as JSON in a setting per view. */
interface Copies {
  /** Hash of the messages in the newest copy. */
  print: string;
  file: string;
  messages: number;
  /** Times of the copies in the last hour. */
  at: number[];
}

const MOST_COPIES_AN_HOUR = 20;
const HOUR_MS = 3_600_000;

/** For `/archive`. An unchanged conversation is not copied twice, and copies per hour are limited. */
export async function copyOnce(services: OnWindow): Promise<ArchiveCopy | 'too many' | null> {
  const { store, archives, clock } = services;
  const { room, personaId, chat } = services.subject;
  const whole = { after: BEGINNING, upTo: END };
  const hash = createHash('sha256');
  let isEmpty = true;
  for await (const messages of pagesOf(services, whole)) {
    isEmpty &&= messages.length === 0;
    for (const { id, author, text } of messages) hash.update(JSON.stringify([id, author, text]));
  }
  if (isEmpty) return null;
  const print = hash.digest('base64url');
  const key = `archive.copies:${room}/${personaId}`;
  const known: Copies | null = JSON.parse((await settingOf(store, key)) ?? 'null');
  if (known?.print === print && (await archives.find(chat.id, known.file)) !== null) {
    return { file: known.file, messages: known.messages, isOld: true };
  }
  const now = clock.now();
  const at = known?.at.filter((each) => each > now - HOUR_MS && each <= now) ?? [];
  if (at.length >= MOST_COPIES_AN_HOUR) return 'too many';
  const head = headOf(services, 'somebody asked for a copy', true);
  const file = await archives.newName(head);
  const messages = await copySpan(services, whole, file, head);
  const copies: Copies = { print, file, messages, at: [...at, now] };
  await putSetting(store, key, JSON.stringify(copies));
  return { file, messages, isOld: false };
}

function headOf({ clock, subject }: OnWindow, reason: string, flushed: boolean): ArchiveHead {
  const { chat, room, personaId, personas } = subject;
  const { threadId } = roomParts(room);
  const name = personaName(personas, personaId);
  return { chatId: chat.id, threadId, personaId, personaName: name, reason, flushed, at: clock.now() };
}
