/** The memory flush: before messages leave its window, a persona saves lasting facts with the memory tools. Unseen in the chat. */
import { estimateTokens } from '../../core/cut.js';
import { describe } from '../../core/errors.js';
import { backoff } from '../../core/retry.js';
import type { AnyTool } from '../../core/tool.js';
import { isAfter, type Position, type Step, type ViewRecord } from '../../core/transcript.js';
import { summaryMessage } from '../context/context.js';
import { joinNeighbours } from '../context/history.js';
import { gatherKnowledge, type Knowledge } from '../context/knowledge.js';
import type { Subject } from '../services.js';
import { roomForSteps, tokensOf, tokensPerEstimated } from '../turn/tokens.js';
import { runTurn } from '../turn/turn.js';
import { type Chunk, flushMessage, nextChunk, wasHeardByAll } from './content.js';
import {
  type CompactionServices,
  flushTools,
  guarded,
  isTooMuch,
  MOST_HALVINGS,
  memoryTurn,
  metered,
  payerOf,
  READ_IN_PART,
  requestTokensFor,
  subjectOf,
  toolsOf,
  type ViewId,
  viewKey,
  type WindowWork,
} from './subject.js';

type FlushEnd =
  /** Complete up to `to`; `cut`: some messages were shown shortened. */
  | { kind: 'flushed'; cut: boolean }
  /** The persona has said nothing since its cursor, so there is nothing to save. */
  | { kind: 'unspoken' }
  /** The model is down or too slow, a write failed, or somebody else changed the view. */
  | { kind: 'failed'; reason: string };

const TRIES = 3;
const MOST_ROUNDS = 10;

export async function flush(work: WindowWork, to: Position): Promise<FlushEnd> {
  const end = await guarded(work, 'flush', () => flushTo(work, to));
  return end ?? { kind: 'failed', reason: 'it ended the process too often' };
}

/** The progress of a failed try; the next one continues from it, so that nothing is written twice. */
interface FlushProgress {
  steps: Step[];
  /** Failed writes that were not repeated successfully. */
  unsaved: Set<string>;
}

/** Flushes chunk by chunk; a chunk that is too much for the model is halved. */
async function flushTo(work: WindowWork, to: Position): Promise<FlushEnd> {
  const { store, clock, metrics, meter, signal } = work;
  const { room, personaId } = work.subject;
  let cut = false;
  let most = Number.POSITIVE_INFINITY;
  let halvings = 0;
  let tries = 0;
  let spoken = false;
  let progress: FlushProgress = { steps: [], unsaved: new Set() };
  for (;;) {
    const view = await store.view(room, personaId);
    if (!isAfter(to, view.flushedTo)) return { kind: 'flushed', cut };
    const known = await knowledgeOf(work);
    const tokens = Math.min(most, roomFor(work, view, known));
    const chunk = await nextChunk(work, view, to, tokens, known.perspective);
    if (!chunk) return { kind: 'unspoken' };
    spoken ||= chunk.fresh.some(({ author }) => author.kind === 'persona' && author.id === personaId);
    if (!spoken && !isAfter(to, chunk.to)) return { kind: 'unspoken' };
    const failure = await ask(work, view, known, chunk, progress);
    if (failure === null || failure.tooMuch || failure.isOver) progress = { steps: [], unsaved: new Set() };
    if (failure === null) {
      const kept = await store.commitFlush({ view, to: chunk.to, usage: meter.due(), now: clock.now() });
      meter.paid();
      if (!kept) return { kind: 'failed', reason: 'the view was changed meanwhile' };
      metrics.count('flushes_total', { outcome: 'finished' });
      cut ||= chunk.cut;
      tries = 0;
    } else if (failure.tooMuch && halvings < MOST_HALVINGS && !signal.aborted) {
      halvings++;
      most = tokens / 2;
    } else {
      tries++;
      metrics.count('flushes_total', { outcome: 'failed' });
      if (signal.aborted || tries >= TRIES) return { kind: 'failed', reason: failure.reason };
    }
  }
}

export async function knowledgeOf(work: WindowWork): Promise<Knowledge> {
  const { store, lastRequests, clock, subject } = work;
  // A prefix of an older revision could contain words that were forgotten since.
  const { prefix } = lastRequests.of(await store.view(subject.room, subject.personaId));
  return gatherKnowledge(work, subject, toolsOf(work, subject, 'answer'), prefix, clock.now(), false);
}

/** Estimated tokens left for the conversation in the model's window. */
function roomFor(
  work: WindowWork,
  { measured, summary }: ViewRecord,
  { system, memoryNow }: Knowledge,
): number {
  const scale = Math.min(3, Math.max(1, tokensPerEstimated(measured)));
  const { tokens } = flushTools(work);
  const fixed = estimateTokens(system + memoryNow) + estimateTokens(summary ?? '') + tokens + 500;
  return Math.max(500, requestTokensFor(work) / scale - fixed);
}

/** null: all is saved. `tooMuch`: a retry with less text may work. `isOver`: the model had finished, so the next try starts anew. */
async function ask(
  work: WindowWork,
  view: ViewRecord,
  known: Knowledge,
  chunk: Chunk,
  { steps, unsaved }: FlushProgress,
): Promise<{ reason: string; tooMuch?: boolean; isOver?: boolean } | null> {
  const { room, personaId } = work.subject;
  const set = flushTools(work);
  const summary = view.summary === null ? [] : [summaryMessage(view.summary, view.tainted)];
  const isPrivate = !(await wasHeardByAll(work, chunk));
  const copy = joinNeighbours([{ role: 'system', content: known.system }, ...summary, ...chunk.messages]);
  const messages = [...copy, flushMessage(chunk, known, isPrivate)];
  const tokens = roomForSteps(requestTokensFor(work), tokensOf(messages) + set.tokens);
  const isTainted =
    known.origin === 'outside' || view.tainted || chunk.shown.some((message) => message.tainted);
  const outcome = await runTurn(work, {
    ...memoryTurn(work, isTainted, chunk.shown),
    turnId: `flush-${work.newId()}`,
    tools: { ...set, tools: set.tools.map((tool) => watched(tool, unsaved, isPrivate)) },
    maxToolRounds: MOST_ROUNDS,
    bounds: { ...work.settings.callLimits, tokens },
    persona: known.persona,
    messages,
    seen: known.seen,
    cause: { kind: 'flush', personaId, turnId: null },
    record: { room, turnId: null, parentEventId: null },
    steps,
    isUnread: true,
  });
  if (outcome.kind === 'dropped') return { reason: 'it was aborted' };
  if (outcome.kind === 'suspended') return { reason: 'a memory tool waits for something' };
  if (outcome.kind === 'failed')
    return { reason: describe(outcome.fault), tooMuch: isTooMuch(outcome.fault) };
  if (outcome.cut) return { reason: READ_IN_PART, tooMuch: true };
  if (unsaved.size === 0) return null;
  return { reason: `not everything could be written (${[...unsaved].join(', ')})`, isOver: true };
}

/** Records failed writes (except those rejected for their content) until they are repeated successfully. */
function watched(tool: AnyTool, unsaved: Set<string>, isPrivate: boolean): AnyTool {
  return {
    ...tool,
    async execute(parameters, context) {
      if (isPrivate && tool.name === 'write_memory') return { content: KEPT_PRIVATE, failed: true };
      const { tier } = parameters as { tier?: unknown };
      const what = tier === undefined ? tool.name : `${tool.name} of tier ${String(tier)}`;
      unsaved.add(what);
      const result = await tool.execute(parameters, context);
      if (!('unsaved' in result)) unsaved.delete(what);
      return result;
    },
  };
}

const KEPT_PRIVATE =
  'Not everybody in this chat heard this conversation, and the daily log is read by all its personas: nothing was ' +
  'written. Keep it in your own tiers instead, with its date (write_tiered_memory).';

interface PendingFlush {
  view: ViewId;
  /** Consecutive failures. */
  failures: number;
  notBefore: number;
  /** Times of the tries in the last day. */
  tries: number[];
}

/** An immediate retry would mostly fail again. */
const BREATH_MS = 1_000;
const FIRST_PAUSE_MS = 15_000;
const LONGEST_PAUSE_MS = 4 * 3_600_000;
/** The longest pause while the model answers other requests. */
const PAUSE_WHEN_WELL_MS = 15 * 60_000;
/** After a daily limit was reached; a new day lifts it. */
const PAUSE_AT_LIMIT_MS = 15 * 60_000;
/** Otherwise a view whose flush always fails would cost one flush per message. */
const MOST_PER_DAY = 12;
const DAY_MS = 86_400_000;

export class PendingFlushes {
  private readonly views = new Map<string, PendingFlush>();
  private cancel = () => {};
  private isWorking = false;
  private stopped = false;

  /** `run` queues work behind the other work on a view. */
  constructor(
    private readonly services: CompactionServices,
    private readonly run: (
      subject: Subject,
      work: (signal: AbortSignal) => Promise<'nothing'>,
    ) => Promise<unknown>,
  ) {}

  start(channels: string[]): void {
    const failed = 'archives of an earlier run not checked; retrying at the next start';
    void this.takeUp(channels).catch((error) => this.services.log.error({ err: error }, failed));
  }

  /** A persona's messages were archived unflushed: flush them soon. */
  add(view: ViewId): void {
    this.owe(view, this.services.clock.now() + BREATH_MS);
    this.schedule();
  }

  /** After a flush or compaction of a view: settles the archives that it covered. */
  async settle({ room, personaId }: ViewId): Promise<void> {
    const { store, archives } = this.services;
    const { flushedTo } = await store.view(room, personaId);
    let isOwed = false;
    for (const { state, to, chatId, file } of await store.openArchives({ room, personaId })) {
      if (state !== 'unflushed') continue;
      if (isAfter(to, flushedTo)) {
        isOwed = true;
        continue;
      }
      // The file first: after a crash in between, the next call settles the row.
      await archives.mark(chatId, file, 'flushed');
      await store.settleArchive(chatId, file);
    }
    if (isOwed) this.add({ room, personaId });
    else this.views.delete(viewKey({ room, personaId }));
  }

  modelAnswers(): void {
    for (const one of this.views.values()) {
      const last = one.tries.at(-1) ?? Number.NEGATIVE_INFINITY;
      const soonest = last + Math.min(pauseAfter(one.failures), PAUSE_WHEN_WELL_MS);
      one.notBefore = Math.min(one.notBefore, Math.max(soonest, nextFree(one)));
    }
    this.schedule();
  }

  stop(): void {
    this.stopped = true;
    this.cancel();
  }

  private schedule(): void {
    this.cancel();
    if (this.isWorking || this.stopped || this.views.size === 0) return;
    const { clock } = this.services;
    const pause = Math.min(...[...this.views.values()].map(({ notBefore }) => notBefore)) - clock.now();
    if (pause > 0) this.cancel = clock.after(pause, () => this.schedule());
    else void this.work();
  }

  private async work(): Promise<void> {
    const { clock, log } = this.services;
    this.isWorking = true;
    for (const one of this.views.values()) {
      if (this.stopped || one.notBefore > clock.now()) continue;
      await this.attempt(one).catch((error) =>
        log.error({ err: error }, 'pending flush failed; retrying later'),
      );
    }
    this.isWorking = false;
    this.schedule();
  }

  private async attempt(one: PendingFlush): Promise<void> {
    const { clock, dailyLimits } = this.services;
    const now = clock.now();
    one.notBefore = now + PAUSE_AT_LIMIT_MS;
    const subject = await subjectOf(this.services, one.view);
    if (!subject) {
      this.views.delete(viewKey(one.view));
      return;
    }
    if (await dailyLimits.reached(payerOf(one.view))) return;
    one.tries = [...one.tries.filter((at) => at > now - DAY_MS), now];
    let isDone = false;
    await this.run(subject, async (signal) => {
      isDone = await this.makeUp(subject, signal);
      return 'nothing';
    });
    one.failures = isDone ? 0 : one.failures + 1;
    one.notBefore = Math.max(clock.now() + pauseAfter(one.failures), nextFree(one));
  }

  /** False if the flush failed. */
  private async makeUp(subject: Subject, signal: AbortSignal): Promise<boolean> {
    const { store, log } = this.services;
    const { room, personaId } = subject;
    const open = (await store.openArchives({ room, personaId })).map(({ to }) => to);
    const last = open.sort((a, b) => (isAfter(a, b) ? 1 : -1)).at(-1);
    if (last === undefined) {
      this.views.delete(viewKey(subject));
      return true;
    }
    const end = await metered(this.services, subject, signal, (work) => flush(work, last));
    await this.settle(subject);
    // There is nothing to save; the next flush will start here.
    if (end.kind === 'unspoken') this.views.delete(viewKey(subject));
    if (end.kind !== 'failed') return true;
    log.warn({ room, persona: personaId, why: end.reason }, 'pending flush failed; retrying later');
    return false;
  }

  /** An already pending view keeps its pause. */
  private owe({ room, personaId }: ViewId, notBefore: number): void {
    const view = { room, personaId };
    const key = viewKey(view);
    if (!this.views.has(key)) this.views.set(key, { view, failures: 0, notBefore, tries: [] });
  }

  private async takeUp(channels: string[]): Promise<void> {
    const { store, clock } = this.services;
    for (const span of await store.openArchives({ channels })) {
      if (span.state === 'unflushed') {
        this.owe(span, clock.now());
        continue;
      }
      const subject = await subjectOf(this.services, span);
      // Queued, because a compaction may be writing such a file right now.
      if (subject) await this.run(subject, () => this.discardUnfinished(span));
    }
    this.schedule();
  }

  /** The process ended before the window moved past the file: its messages are still in the window. */
  private async discardUnfinished({ room, personaId }: ViewId): Promise<'nothing'> {
    const { store, archives } = this.services;
    for (const { chatId, file, state } of await store.openArchives({ room, personaId })) {
      if (state !== 'writing') continue;
      await archives.remove(chatId, file);
      await store.dropArchive(chatId, file);
    }
    return 'nothing';
  }
}

/** When the daily limit allows another try. */
function nextFree({ tries }: PendingFlush): number {
  return (tries.at(-MOST_PER_DAY) ?? Number.NEGATIVE_INFINITY) + DAY_MS;
}

function pauseAfter(failures: number): number {
  return backoff(failures, FIRST_PAUSE_MS, LONGEST_PAUSE_MS);
}
