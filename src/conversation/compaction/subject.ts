/** Shared by flushes, compactions and the nightly consolidation: their subject, model, tools, and crash guard. */

import type { Fault } from '../../core/errors.js';
import { roomParts } from '../../core/ids.js';
import type { JournalWrite } from '../../core/journal.js';
import type { MemoryDraft } from '../../core/memory.js';
import { mayTry } from '../../core/retry.js';
import { putSetting, settingOf } from '../../core/store.js';
import type { ToolSet } from '../../core/tool.js';
import type { Step, StoredMessage } from '../../core/transcript.js';
import { askerOf } from '../asker.js';
import type { LastRequests } from '../context/knowledge.js';
import type { MeteredModel, Payer, Services, Subject } from '../services.js';
import type { StepExtras } from '../turn/steps.js';
import { requestTokens } from '../turn/tokens.js';

export type ViewId = Pick<Subject, 'room' | 'personaId'>;

export interface CompactionServices extends Services {
  lastRequests: LastRequests;
}

export interface OnWindow extends Services {
  subject: Subject;
}

/** Work on a window that asks a model: `model` is the meter's. */
export interface WindowWork extends CompactionServices {
  subject: Subject;
  meter: MeteredModel;
  signal: AbortSignal;
}

/** No person asked for work on a window, so only the persona is charged. */
export function payerOf({ room, personaId }: ViewId): Payer {
  return { room, personaId, personId: null };
}

/** The usage of the work is stored at the latest when it ends. */
export async function metered<T>(
  services: CompactionServices,
  subject: Subject,
  signal: AbortSignal,
  work: (work: WindowWork) => Promise<T>,
): Promise<T> {
  const meter = services.dailyLimits.meter(payerOf(subject));
  return work({ ...services, model: meter.model, meter, subject, signal }).finally(meter.settle);
}

export function viewKey({ room, personaId }: ViewId): string {
  return `${room}\n${personaId}`;
}

export async function subjectOf(
  { store, personas }: Services,
  { room, personaId }: ViewId,
): Promise<Subject | null> {
  const chat = await store.chat(roomParts(room).chatId);
  return chat && { chat, room, personaId, personas: await personas.list(chat.id) };
}

export function requestTokensFor(work: WindowWork): number {
  const { personas, personaId } = work.subject;
  return requestTokens(work, personas.find(({ id }) => id === personaId)?.model ?? null);
}

/** Only the memory tools run in a flush, but all are described, so that the server's prompt cache stays valid. */
export function flushTools(work: WindowWork): ToolSet {
  const { tools } = toolsOf(work, work.subject, 'flush');
  return { ...toolsOf(work, work.subject, 'answer'), tools };
}

export function toolsOf(
  { toolsFor }: Services,
  { chat, personaId, personas }: Subject,
  kind: 'answer' | 'flush',
  draft?: MemoryDraft,
): ToolSet {
  const allowed = personas.find(({ id }) => id === personaId)?.tools ?? null;
  const { id: chatId, channel, kind: chatKind } = chat;
  return toolsFor({ kind, chatId, personaId, senderId: '', allowed, channel, chatKind, draft });
}

const REST_MS = 86_400_000;

/** Runs work that may crash the process; after too many crashes it rests for a day, or until a reset, and null is returned. */
export async function guarded<Value>(
  { store, clock, log, subject: { room, personaId } }: WindowWork,
  what: 'flush' | 'summary' | 'night',
  work: () => Promise<Value>,
): Promise<Value | null> {
  const key = `begun ${what} ${viewKey({ room, personaId })}`;
  const last = JSON.parse((await settingOf(store, key)) ?? '{}');
  const { resetAt } = await store.view(room, personaId);
  const at = clock.now();
  const tries: number = at - last.at < REST_MS && last.resetAt === resetAt ? last.tries : 0;
  if (!mayTry(tries)) {
    const about = { what, room, persona: personaId, tries };
    log.error(about, 'work ended the process too often; parked for a day');
    return null;
  }
  await putSetting(store, key, JSON.stringify({ tries: tries + 1, at, resetAt }));
  return work().finally(() => putSetting(store, key, null));
}

export const MOST_HALVINGS = 4;

export const READ_IN_PART = 'the model server read only a part of it';

export function isTooMuch({ code }: Fault): boolean {
  return code === 'context_too_long' || code === 'model_silent';
}

/** For requests that only write memory: nobody can be asked, and nothing beyond the chat is reached. After a crash the work starts anew. */
export function memoryTurn(work: WindowWork, isTainted: boolean, words: readonly StoredMessage[]) {
  const { store, owner, signal } = work;
  const { chat, room, personaId } = work.subject;
  const asker = askerOf(work, chat, async () => words);
  return {
    room,
    authorisation: {
      chatId: chat.id,
      personaId,
      channel: chat.channel,
      senderId: '',
      controlChats: [],
      asker,
    },
    trust: { isTainted, isNamed: () => false },
    approvalMs: null,
    signal,
    async save(step: Step, { entries = [] }: StepExtras = {}) {
      // A call that began before the abort still gets its outcome.
      const isDone = step.kind === 'result';
      if (entries.length > 0 && (isDone || !signal.aborted)) await store.append(entries, owner);
      return !signal.aborted;
    },
    cutOff: (entries: readonly JournalWrite[]) => store.append(entries, owner),
  };
}
