/** The memory flush: before messages leave its window, a persona saves lasting facts with the memory tools. Unseen in the chat. */
import { estimateTokens } from '../../core/cut.js';
import { describe } from '../../core/errors.js';
import type { AnyTool } from '../../core/tool.js';
import { isAfter, type Position, type Step, type ViewRecord } from '../../core/transcript.js';
import { summaryMessage } from '../context/context.js';
import { joinNeighbours } from '../context/history.js';
import { gatherKnowledge, type Knowledge } from '../context/knowledge.js';
import { roomForSteps, tokensOf, tokensPerEstimated } from '../turn/tokens.js';
import { runTurn } from '../turn/turn.js';
import { type Chunk, flushMessage, nextChunk, wasHeardByAll } from './content.js';
import {
  flushTools,
  guarded,
  isTooMuch,
  MOST_HALVINGS,
  memoryTurn,
  READ_IN_PART,
  requestTokensFor,
  toolsOf,
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
  const view = await store.view(subject.room, subject.personaId);
  const now = clock.now();
  const { prefix } = lastRequests.of(view);
  const drawn = lastRequests.drawn(view, now);
  return gatherKnowledge(work, subject, toolsOf(work, subject, 'answer'), { prefix, drawn }, now, false);
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
