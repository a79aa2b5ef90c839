/**
 * The memory flush: before messages leave a persona's window, the persona reads a copy of the conversation and saves
 * what should last, with only the memory tools. It is invisible in the chat. Only a completed flush advances the view's
 * flush cursor.
 */

import { cutAt } from '../../core/cut.js';
import { describe } from '../../core/errors.js';
import type { PersonaId } from '../../core/ids.js';
import { estimateTokens, type ModelMessage } from '../../core/model.js';
import { element } from '../../core/origin.js';
import type { AnyTool, ToolResult, Wait } from '../../core/tool.js';
import { isAfter, type Position, type SeenView, type Step, type ViewRecord } from '../../core/transcript.js';
import { summaryMessage } from '../context/context.js';
import { joinNeighbours } from '../context/history.js';
import { gatherKnowledge, type Knowledge } from '../context/knowledge.js';
import { presentIn } from '../participants.js';
import { askerOf } from '../rights.js';
import type { Services, Subject } from '../services.js';
import { roomForSteps } from '../turn/bounds.js';
import { tokensOf, tokensPerEstimated } from '../turn/tokens.js';
import { runTurn } from '../turn/turn.js';
import { type Chunk, nextChunk } from './chunk.js';
import {
  answerTools,
  type CompactionServices,
  flushTools,
  isTooMuch,
  MOST_HALVINGS,
  type PaidServices,
  READ_IN_PART,
  requestTokensFor,
  unlessDeadly,
  unstored,
} from './subject.js';

export type FlushEnd =
  /** A completed flush has seen everything up to the position; `cut`: some messages only in part. */
  | { kind: 'flushed'; cut: boolean }
  /** The persona has said nothing since its cursor, so it has nothing to save. */
  | { kind: 'unspoken' }
  /** The model is down or too slow, a write failed, or the view was changed by somebody else. */
  | { kind: 'failed'; reason: string };

const TRIES = 3;
const MOST_ROUNDS = 10;

export async function flush(
  services: PaidServices,
  subject: Subject,
  to: Position,
  signal: AbortSignal,
): Promise<FlushEnd> {
  const end = await unlessDeadly(services, 'flush', subject, () => flushTo(services, subject, to, signal));
  return end ?? { kind: 'failed', reason: 'it has ended the process too often' };
}

async function flushTo(
  services: PaidServices,
  subject: Subject,
  to: Position,
  signal: AbortSignal,
): Promise<FlushEnd> {
  let cut = false;
  let most = Number.POSITIVE_INFINITY;
  let halvings = 0;
  let tries = 0;
  let spoken = false;
  let begun = nothing();
  for (;;) {
    const view = await services.store.view(subject.room, subject.personaId);
    if (!isAfter(to, view.flushedTo)) return { kind: 'flushed', cut };
    const known = await knowledgeOf(services, subject);
    const tokens = Math.min(most, roomFor(services, subject, view, known));
    const chunk = await nextChunk(services, view, to, tokens, known.perspective);
    if (!chunk) return { kind: 'unspoken' };
    spoken ||= chunk.fresh.some(({ author }) => author.kind === 'persona' && author.id === subject.personaId);
    if (!spoken && !isAfter(to, chunk.to)) return { kind: 'unspoken' };
    const end = await ask(services, subject, view, known, chunk, begun, signal);
    if (end.kind === 'finished') {
      const { purse, store, clock } = services;
      const seen: SeenView = view;
      const kept = await store.commitFlush({
        view: seen,
        to: chunk.to,
        usage: purse.due(),
        now: clock.now(),
      });
      purse.paid();
      if (!kept) return { kind: 'failed', reason: 'the view was changed meanwhile' };
      services.metrics.count('flushes_total', { outcome: 'finished' });
      cut ||= chunk.cut;
      tries = 0;
      begun = nothing();
      continue;
    }
    if (end.tooMuch || end.isOver) begun = nothing();
    if (end.tooMuch && halvings < MOST_HALVINGS && !signal.aborted) {
      halvings++;
      most = tokens / 2;
      continue;
    }
    tries++;
    services.metrics.count('flushes_total', { outcome: 'failed' });
    if (signal.aborted || tries >= TRIES) return { kind: 'failed', reason: end.reason };
  }
}

/** What a try that broke off has done, for the next to go on from, so that nothing is written twice. */
interface Begun {
  steps: Step[];
  /** Writes that failed and were not repeated with success. */
  unsaved: Set<string>;
}

const nothing = (): Begun => ({ steps: [], unsaved: new Set() });

export async function knowledgeOf(services: CompactionServices, subject: Subject): Promise<Knowledge> {
  const { chat, room, personaId, personas } = subject;
  return gatherKnowledge(services, {
    chat,
    personaId,
    personas,
    now: services.clock.now(),
    tools: answerTools(services, subject),
    seesWorkspace: false,
    // Not of an older revision: what was forgotten since stands in it.
    prefix: services.windowCache.last(await services.store.view(room, personaId)).prefix,
  });
}

/** The tokens left for the conversation in the model's window, by our estimate. */
function roomFor(
  services: Services,
  subject: Subject,
  view: ViewRecord,
  { system, memoryNow }: Knowledge,
): number {
  const scale = Math.max(1, tokensPerEstimated(view.measured));
  const { tokens } = flushTools(services, subject);
  const fixed = estimateTokens(system + memoryNow) + estimateTokens(view.summary ?? '') + tokens + 500;
  return Math.max(500, requestTokensFor(services, subject) / Math.min(scale, 3) - fixed);
}

type AskEnd =
  | { kind: 'finished' }
  /** `tooMuch`: less text may do. `isOver`: the model had ended it, so that the next try begins anew. */
  | { kind: 'failed'; reason: string; tooMuch?: boolean; isOver?: true };

async function ask(
  services: Services,
  subject: Subject,
  view: ViewRecord,
  known: Knowledge,
  chunk: Chunk,
  { steps, unsaved }: Begun,
  signal: AbortSignal,
): Promise<AskEnd> {
  const { chat, room, personaId } = subject;
  const set = flushTools(services, subject);
  const summary = view.summary === null ? [] : [summaryMessage(view.summary, view.tainted)];
  const isPrivate = !(await wasHeardByAll(services, subject, chunk));
  const copy = joinNeighbours([{ role: 'system', content: known.system }, ...summary, ...chunk.messages]);
  const messages = [...copy, request(chunk, known, isPrivate)];
  const tokens = roomForSteps(requestTokensFor(services, subject), tokensOf(messages) + set.tokens);
  const outcome = await runTurn(services, {
    turnId: `flush-${services.newId()}`,
    room,
    tools: { ...set, tools: set.tools.map((tool) => watched(isPrivate ? keptPrivate(tool) : tool, unsaved)) },
    maxToolRounds: MOST_ROUNDS,
    bounds: { ...services.settings.callLimits, tokens },
    persona: known.persona,
    messages,
    seen: known.seen,
    authorisation: {
      ...{ chatId: chat.id, personaId, channel: chat.channel, senderId: '', controlChats: [] },
      asker: askerOf(services, chat, async () => chunk.shown),
    },
    cause: { kind: 'flush', personaId, turnId: null },
    record: { room, turnId: null, parentEventId: null },
    // Nothing that it can call reaches beyond the chat; only its memory keeps the mark.
    trust: { isTainted: isFromOutside(chunk, view, known), isNamed: () => false },
    approvalMs: null,
    steps,
    isUnread: true,
    // Steps are not stored: after a crash the flush is repeated, and what it had saved is in the files.
    ...unstored(services, signal),
    signal,
  });
  switch (outcome.kind) {
    case 'dropped':
      return { kind: 'failed', reason: 'it was ended' };
    case 'suspended':
      return { kind: 'failed', reason: 'a memory tool waits for something' };
    case 'failed': {
      const { fault } = outcome;
      return { kind: 'failed', reason: describe(fault), tooMuch: isTooMuch(fault) };
    }
    case 'answered': {
      if (outcome.cut) return { kind: 'failed', reason: READ_IN_PART, tooMuch: true };
      if (unsaved.size === 0) return { kind: 'finished' };
      const reason = `not everything could be written (${[...unsaved].join(', ')})`;
      return { kind: 'failed', reason, isOver: true };
    }
  }
}

function isFromOutside({ shown }: Chunk, view: ViewRecord, known: Knowledge): boolean {
  return known.origin === 'outside' || view.tainted || shown.some(({ tainted }) => tainted);
}

/** Records which writes failed for a reason other than their content and were not repeated successfully. */
function watched(tool: AnyTool, unsaved: Set<string>): AnyTool {
  return {
    ...tool,
    async execute(parameters, context): Promise<ToolResult | Wait> {
      const { tier } = parameters as { tier?: unknown };
      const what = tier === undefined ? tool.name : `${tool.name} of tier ${String(tier)}`;
      unsaved.add(what);
      const result = await tool.execute(parameters, context);
      if (!('unsaved' in result)) unsaved.delete(what);
      return result;
    },
  };
}

/**
 * The daily log is in the prompt of every persona of the chat, so it must not tell what only some of them heard. A
 * persona that was never here (as `default`, where others are talked to) is not among them.
 */
async function wasHeardByAll(
  { store }: Pick<Services, 'store'>,
  { chat, room, personaId, personas }: Subject,
  { shown }: Chunk,
): Promise<boolean> {
  const present = presentIn(chat, personas);
  const others: PersonaId[] = [];
  for (const { id } of personas) {
    if (id === personaId) continue;
    if (present.includes(id) || (await store.roomsHeard(chat.id, id)).length > 0) others.push(id);
  }
  const ids = shown.map(({ id }) => id);
  return others.length === 0 || store.allHeard(room, others, ids);
}

const KEPT_PRIVATE =
  'Not everybody in this chat heard this conversation, and the daily log is read by all its personas: nothing was ' +
  'written. Keep it in your own tiers instead, with its date (write_tiered_memory).';

function keptPrivate(tool: AnyTool): AnyTool {
  if (tool.name !== DAILY_LOG_WRITER) return tool;
  return { ...tool, execute: async () => ({ content: KEPT_PRIVATE, failed: true }) };
}

const DAILY_LOG_WRITER = 'write_memory';
const DAILY_LINE =
  'into the tier it belongs to, or as a line of the daily log (write_memory) under the date of the day it happened, unless it stands there already.';
const NO_DAILY_LINE =
  'into the tier it belongs to, with its date. Nothing into the daily log this time: other personas of this chat read it and did not hear all of this.';
const OPENING_CHARS = 80;

function request({ fresh }: Chunk, { perspective, memoryNow }: Knowledge, isPrivate: boolean): ModelMessage {
  const [first] = fresh;
  const since = first
    ? ` What is new since the last time begins at ${perspective.zone.time(first.sentAt)} with ${element('first_message', {}, opening(first.text))}.`
    : '';
  return {
    role: 'user',
    content: `Memory flush. The conversation above is about to leave your sight. Afterwards you know of it only what stands in your memory, and a short summary.${since}

Save now what will matter later and is not in your memory yet: ${isPrivate ? NO_DAILY_LINE : DAILY_LINE} What was only forwarded is not what its sender said, thinks or is: name whose words they are, or leave them out. Only the memory tools work now. No transcripts. Nobody reads what you answer here, so talk to nobody. When all is saved, or nothing is worth it, answer: done${memoryNow && `\n\n${memoryNow}`}`,
  };
}

function opening(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ').trim();
  return line.length <= OPENING_CHARS ? line : `${cutAt(line, OPENING_CHARS)}…`;
}
