/**
 * Compacts one window; the only caller of `moveWindow`. First the flush, then the summary, then the move. If the flush
 * fails, the messages that leave are archived verbatim as well and their flush stays pending: no message leaves unseen.
 * A turn that waits has a deadline; where nobody waits, only the model's silence ends a flush.
 */

import { createHash } from 'node:crypto';
import type { ArchivedMessage, ArchiveHead } from '../../core/chat-record.js';
import { roomParts } from '../../core/ids.js';
import { estimateTokens } from '../../core/model.js';
import { memoryPath } from '../../core/origin.js';
import { personaName } from '../../core/persona.js';
import {
  type HeardMessage,
  isAfter,
  type Position,
  type ViewRecord,
  wordsBy,
} from '../../core/transcript.js';
import { historyEntries } from '../context/history.js';
import type { Knowledge } from '../context/knowledge.js';
import type { MeteredModel, Services, Subject } from '../services.js';
import { tokensOf, tokensPerEstimated } from '../turn/tokens.js';
import { boundaries, cutPlace } from './chunk.js';
import { flush, knowledgeOf } from './flush.js';
import { deadline, flushTools, type PaidServices, requestTokensFor, unlessDeadly } from './subject.js';
import { summarise } from './summary.js';

/** Target size of the request after a compaction, as a share of the context window, fixed parts included. */
const FULL_AFTERWARDS = 0.5;
/** Share of the context window that the newest messages always keep, however long principles and memory are. */
const LEAST_KEPT = 0.1;
/** The largest share of a request that the messages to be answered may take. */
const LONGEST_ASKED = 0.9;
/** The share of its patience that a waiting turn gives the flush; the summary has the rest. */
const FLUSH_SHARE = 2 / 3;
/** More messages than any window should hold. */
const MOST_ROWS = 2_000;

export type CompactionEnd =
  | 'moved'
  /** No message can leave: the rest belongs to one exchange, or is too little. */
  | 'nothing'
  /** Aborted, or overtaken by a reset: nothing was moved. */
  | 'dropped';

/** A turn that waits for room in its request; its own messages are not compacted. */
export interface WaitingTurn {
  id: string;
  /** Our estimate of its request that the server rejected as too long. */
  refused: number | null;
  /** How long it will wait. */
  patienceMs: number;
}

/** Throws when an archive cannot be written; then nothing was moved. */
export async function compact(
  services: PaidServices,
  subject: Subject,
  turn: WaitingTurn | null,
  signal: AbortSignal,
): Promise<CompactionEnd> {
  const { store, clock } = services;
  const { room, personaId } = subject;
  const all = await store.window({
    room,
    personaId,
    except: [],
    limit: MOST_ROWS,
    overheard: services.settings.overheardMessages,
  });
  const isAsked = ({ turnId }: HeardMessage) => turn !== null && turnId === turn.id;
  const window = { ...all, messages: all.messages.filter((message) => !isAsked(message)) };
  const known = await knowledgeOf(services, subject);
  const leavesAt = placeToCut(
    services,
    subject,
    window,
    known,
    turn && { ...turn, asks: all.messages.filter(isAsked) },
  );
  if (!leavesAt) return 'nothing';
  // The flush covers every completed exchange, not only what leaves.
  const last = window.messages[boundaries(window.messages).at(-1) ?? -1]?.position ?? leavesAt;

  const late = turn && deadline(clock, signal, turn.patienceMs);
  const lateFlush = turn && deadline(clock, signal, turn.patienceMs * FLUSH_SHARE);
  try {
    const flushed = await flush(services, subject, last, lateFlush?.signal ?? signal);
    if (signal.aborted) return 'dropped';
    if (flushed.kind === 'failed') {
      services.log.warn(
        { room, persona: personaId, why: flushed.reason },
        'a memory flush did not finish; it stays pending',
      );
    }
    const view = await store.view(room, personaId);
    const isSeen = !isAfter(leavesAt, view.flushedTo);
    const summary = await unlessDeadly(services, 'summary', subject, () =>
      summaryOf(services, subject, view, known, leavesAt, late?.signal ?? signal),
    );
    if (signal.aborted) return 'dropped';
    // An archive is also needed when there is no summary, or when the flush has not seen every message whole.
    const isCut = flushed.kind === 'flushed' && flushed.cut;
    if (summary !== null && isSeen && !isCut)
      return await move(services, view, leavesAt, summary, null, services.purse);
    const archived = await archive(services, subject, view, leavesAt, isSeen);
    return await move(
      services,
      view,
      leavesAt,
      summary ?? noteOf(view, archived),
      archived.file,
      services.purse,
    );
  } finally {
    late?.over();
    lateFlush?.over();
  }
}

/** Moves a window past everything it holds, archived but not flushed: for a persona that is being deleted. */
export async function putAway(services: Services, subject: Subject): Promise<void> {
  const { room, personaId } = subject;
  const window = await services.store.window({ room, personaId, except: [], limit: 1, overheard: 0 });
  const last = window.messages.at(-1)?.position;
  if (!last) return;
  const isSeen = !isAfter(last, window.view.flushedTo);
  const archived = isSeen
    ? null
    : await archive(services, subject, window.view, last, false, 'the persona was deleted');
  await move(services, window.view, last, null, archived?.file ?? null, null);
}

function placeToCut(
  services: Services,
  subject: Subject,
  { view, messages, steps, more }: Awaited<ReturnType<Services['store']['window']>>,
  known: Knowledge,
  turn: (WaitingTurn & { asks: HeardMessage[] }) | null,
): Position | null {
  const { keepRecentMessages, compactAfterMessages } = services.settings;
  const refused = turn?.refused ?? null;
  const tokensIn = (some: HeardMessage[]) => tokensOf(historyEntries(some, steps, known.perspective).flat());
  // A rejected request was too long for the model, whatever the configured window says.
  const most = requestTokensFor(services, subject);
  const scale = Math.max(tokensPerEstimated(view.measured), refused === null ? 0 : most / refused);
  const fixed =
    estimateTokens(known.system) + estimateTokens(view.summary ?? '') + flushTools(services, subject).tokens;
  // A batch longer than this is shown shortened.
  const asked = Math.min(tokensIn(turn?.asks ?? []), LONGEST_ASKED * (most / scale - fixed));
  const room = most / scale - fixed - asked;
  const addressed = messages.filter((message) => message.addressed).length;
  if (turn && refused === null && !more && addressed <= compactAfterMessages && tokensIn(messages) <= room)
    return null;
  return cutPlace(messages, {
    messages: keepRecentMessages,
    tokens: Math.max((LEAST_KEPT * most) / scale, Math.min((FULL_AFTERWARDS * most) / scale - fixed, room)),
    tokensOf: (message: HeardMessage) => tokensIn([message]),
  });
}

async function summaryOf(
  services: Services,
  subject: Subject,
  view: ViewRecord,
  known: Knowledge,
  upTo: Position,
  signal: AbortSignal,
): Promise<string | null> {
  if (signal.aborted) return null;
  const { room, personaId } = view;
  const span = await services.store.span({
    room,
    personaId,
    after: view.windowAfter,
    upTo,
    limit: MOST_ROWS,
    overheard: services.settings.overheardMessages,
  });
  const { persona, perspective } = known;
  return summarise(services, { subject, view, span, persona, perspective }, signal);
}

interface Archived {
  file: string;
  messages: number;
}

async function archive(
  services: Services,
  subject: Subject,
  view: ViewRecord,
  to: Position,
  isSeen: boolean,
  reason = isSeen ? 'it left the window without a summary' : 'it left the window before a memory flush',
): Promise<Archived> {
  const { room, personaId, chat } = subject;
  const head = headOf(services, subject, { reason, flushed: isSeen });
  const file = await services.archives.newName(head);
  // Recorded before the file is written, so that a file left incomplete by a crash is found and removed.
  await services.store.beginArchive({ chatId: chat.id, file, room, personaId, after: view.windowAfter, to });
  const span = { after: view.windowAfter, upTo: to };
  const messages = await copySpan(services, subject, span, { name: file, head });
  services.metrics.count('archives_total', { flushed: String(isSeen) });
  return { file, messages };
}

/** Replaces a missing summary, so that the model at least knows there was more. */
function noteOf(view: ViewRecord, { file, messages }: Archived): string {
  const note = `(${messages} messages before this are not summed up; they stand in the archive ${file}.)`;
  return [view.summary ?? '', note].filter((text) => text !== '').join('\n\n');
}

async function move(
  services: Services,
  view: ViewRecord,
  to: Position,
  summary: string | null,
  archiveFile: string | null,
  purse: MeteredModel | null,
): Promise<CompactionEnd> {
  const moved = await services.store.moveWindow({
    view,
    to,
    archive: archiveFile,
    summary,
    usage: purse?.due() ?? null,
    now: services.clock.now(),
  });
  purse?.paid();
  services.metrics.count('compactions_total', { outcome: moved ? 'moved' : 'overtaken' });
  if (moved) {
    services.log.info(
      { room: view.room, persona: view.personaId, archive: archiveFile },
      'a window was compacted',
    );
    return 'moved';
  }
  if (archiveFile !== null) await discard(services, view, archiveFile);
  return 'dropped';
}

async function discard(services: Services, view: ViewRecord, file: string): Promise<void> {
  const { chatId } = roomParts(view.room);
  await services.archives
    .remove(chatId, file)
    .catch((error) =>
      services.log.warn(
        { err: error, chat: chatId, file },
        'an archive that is no longer needed could not be removed',
      ),
    );
  await services.store.dropArchive(chatId, file);
}

// Copies a span of a persona's view into an archive file, verbatim, page by page. Used by compaction and by `/archive`.

const PAGE = 500;

/** Returns how many messages were written. Overheard messages are left out; the store keeps them. */
export async function copySpan(
  services: Services,
  subject: Subject,
  span: { after: Position; upTo: Position },
  file: { name: string; head: ArchiveHead },
): Promise<number> {
  const { room, personaId, chat, personas } = subject;
  const path = memoryPath(chat.id, `archive/${file.name}`);
  let written = 0;
  let isOutside = false;

  const nameOf = (message: HeardMessage) => wordsBy(message, (id) => personaName(personas, id));

  async function* pages(): AsyncGenerator<ArchivedMessage[]> {
    let { after } = span;
    for (let more = true; more; ) {
      const page = await services.store.span({
        room,
        personaId,
        after,
        upTo: span.upTo,
        limit: PAGE,
        overheard: 0,
      });
      written += page.messages.length;
      if (!isOutside && page.messages.some(({ tainted }) => tainted)) {
        isOutside = true;
        // Before the file is there: a process that dies then leaves none without its mark.
        await services.store.markOutside(path, null);
      }
      yield page.messages.map((message) => ({
        id: message.id,
        name: nameOf(message),
        text: message.text,
        sentAt: message.sentAt,
      }));
      const last = page.messages.at(-1);
      more = page.more && last !== undefined;
      if (last) after = last.position;
    }
  }

  await services.archives.write(file.head, file.name, pages());
  services.log.info(
    { chat: chat.id, room, file: file.name, messages: written },
    'a conversation was archived',
  );
  return written;
}

/** What is known of the copies that people asked for, as JSON in a setting of their view. */
interface Copies {
  /** Of what the newest holds. */
  print: string;
  file: string;
  messages: number;
  /** When those of the last hour were made. */
  at: number[];
}

const MOST_COPIES_AN_HOUR = 20;
const HOUR_MS = 3_600_000;

/** For `/archive`: whoever asks again and again fills no disk. */
export async function copyOnce(
  services: Services,
  subject: Subject,
  span: { after: Position; upTo: Position },
): Promise<{ file: string; messages: number; isOld: boolean } | 'too many' | null> {
  const { store, archives, clock } = services;
  const { room, personaId, chat } = subject;
  const key = `archive.copies:${room}/${personaId}`;
  const print = await printOf(services, subject, span);
  if (print === null) return null;
  const stored = await store.setting(key);
  const known: Copies = stored === null ? { print: '', file: '', messages: 0, at: [] } : JSON.parse(stored);
  const { file, messages } = known;
  if (print === known.print && (await archives.find(chat.id, file)) !== null) {
    return { file, messages, isOld: true };
  }
  const now = clock.now();
  const at = known.at.filter((each) => each > now - HOUR_MS && each <= now);
  if (at.length >= MOST_COPIES_AN_HOUR) return 'too many';
  const head = headOf(services, subject, { reason: 'somebody asked for a copy', flushed: true });
  const name = await archives.newName(head);
  const written = await copySpan(services, subject, span, { name, head });
  const copies: Copies = { print, file: name, messages: written, at: [...at, now] };
  await store.setSetting(key, JSON.stringify(copies));
  return { file: name, messages: written, isOld: false };
}

/** Another one whenever a copy would be; null where nothing was said. */
async function printOf(
  { store }: Pick<Services, 'store'>,
  { room, personaId }: Subject,
  { after, upTo }: { after: Position; upTo: Position },
): Promise<string | null> {
  const hash = createHash('sha256');
  let from = after;
  let isEmpty = true;
  for (let more = true; more; ) {
    const page = await store.span({ room, personaId, after: from, upTo, limit: PAGE, overheard: 0 });
    for (const { id, author, text } of page.messages) hash.update(JSON.stringify([id, author, text]));
    const last = page.messages.at(-1);
    isEmpty &&= last === undefined;
    more = page.more && last !== undefined;
    if (last) from = last.position;
  }
  return isEmpty ? null : hash.digest('base64url');
}

function headOf(
  services: Services,
  { chat, room, personaId, personas }: Subject,
  why: { reason: string; flushed: boolean },
): ArchiveHead {
  return {
    chatId: chat.id,
    threadId: roomParts(room).threadId,
    personaId,
    personaName: personaName(personas, personaId),
    ...why,
    at: services.clock.now(),
  };
}
