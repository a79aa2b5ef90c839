/** What a flush or compaction works on: one persona's window in one room. */
import { type Clock, OVER } from '../../core/clock.js';
import type { Fault } from '../../core/errors.js';
import { roomParts } from '../../core/ids.js';
import type { ToolSet } from '../../core/tool.js';
import type { WindowCache } from '../context/window.js';
import {
  type BaseServices,
  type MeteredModel,
  type Payer,
  requestTokens,
  type Services,
  type Subject,
} from '../services.js';
import type { TurnRequest } from '../turn/steps.js';

/** What flushes and compactions use beside the services of all: what the last answer's request began with. */
export interface CompactionServices extends Services {
  windowCache: WindowCache;
}

/** The services of work that is under way: its model is the one of its purse. */
export interface PaidServices extends CompactionServices {
  purse: MeteredModel;
}

/** Nobody's words led to work on a window: a persona pays for it. */
export function payerOf({ room, personaId }: Pick<Subject, 'room' | 'personaId'>): Payer {
  return { room, personaId, personId: null };
}

/** Does work that asks a model. What it has not stored with its results of what that took is stored at its end. */
export async function withPurse<Given extends Services, T>(
  services: Given,
  subject: Pick<Subject, 'room' | 'personaId'>,
  work: (paid: Given & { purse: MeteredModel }) => Promise<T>,
): Promise<T> {
  const purse = services.dailyLimits.meter(payerOf(subject));
  return work({ ...services, model: purse.model, purse }).finally(purse.settle);
}

/** A unique key per view. */
export function viewKey({ room, personaId }: Pick<Subject, 'room' | 'personaId'>): string {
  return `${room}\n${personaId}`;
}

/** null if the chat is unknown. */
export async function subjectOf(
  { store, personas }: Pick<Services, 'store' | 'personas'>,
  { room, personaId }: Pick<Subject, 'room' | 'personaId'>,
): Promise<Subject | null> {
  const { chatId } = roomParts(room);
  const chat = await store.chat(chatId);
  return chat && { chat, room, personaId, personas: await personas.list(chatId) };
}

/** The tokens available for a request, as far as the model's window is known now. */
export function requestTokensFor(services: BaseServices, { personas, personaId }: Subject): number {
  return requestTokens(services, personas.find(({ id }) => id === personaId)?.model ?? null);
}

/**
 * The tools of a flush. Only the memory tools may be used; all those of an answer are described to the model, because a
 * server's prompt cache holds only while they stay the same.
 */
export function flushTools(services: Pick<Services, 'toolsFor'>, subject: Subject): ToolSet {
  const { tools } = services.toolsFor({ kind: 'flush', ...turnOf(subject) });
  return { ...answerTools(services, subject), tools };
}

/** The tools of an answer to nobody in particular. */
export function answerTools({ toolsFor }: Pick<Services, 'toolsFor'>, subject: Subject): ToolSet {
  return toolsFor({ kind: 'answer', ...turnOf(subject) });
}

function turnOf({ chat, personaId, personas }: Subject) {
  const allowed = personas.find(({ id }) => id === personaId)?.tools ?? null;
  return { chatId: chat.id, personaId, senderId: '', allowed, channel: chat.channel, chatKind: chat.kind };
}

// How long a turn waits for a flush and its compaction together; after it, what leaves a window is archived instead.

export const DEADLINE_MS = 60_000;

/** A signal that aborts with `signal`, or after `ms`. Call `over` when the work has ended. */
export function deadline(
  clock: Clock,
  signal: AbortSignal,
  ms: number,
): { signal: AbortSignal; over(): void } {
  const late = new AbortController();
  const end = () => late.abort(OVER);
  if (signal.aborted) end();
  signal.addEventListener('abort', end, { once: true });
  const cancel = clock.after(ms, end);
  return {
    signal: late.signal,
    over() {
      cancel();
      signal.removeEventListener('abort', end);
    },
  };
}

// Beside step 5 of the route: work on a window or a memory that ended the process is not begun for ever. It is noted before
// it begins and struck out when it ends, however it ends; what is still noted at the next try has ended the process. After
// a few of these it rests for a day, or until a reset: what it would have read stays in the window or in an archive.

/** As often as a turn is tried that ends the process. */
const MOST_CRASHES = 5;
const REST_MS = 86_400_000;
interface Begun {
  tries: number;
  at: number;
  /** The view's last reset by then. */
  resetAt: number;
}

/** null: it has ended the process too often, and was not begun. */
export async function unlessDeadly<Value>(
  { store, clock, log }: Pick<Services, 'store' | 'clock' | 'log'>,
  what: 'flush' | 'summary' | 'night',
  { room, personaId }: Pick<Subject, 'room' | 'personaId'>,
  work: () => Promise<Value>,
): Promise<Value | null> {
  const key = `begun ${what} ${viewKey({ room, personaId })}`;
  const begun: Begun | null = JSON.parse((await store.setting(key)) ?? 'null');
  const { resetAt } = await store.view(room, personaId);
  const counts = begun !== null && clock.now() - begun.at < REST_MS && begun.resetAt === resetAt;
  const tries = counts ? begun.tries : 0;
  if (tries >= MOST_CRASHES) {
    const about = { what, room, persona: personaId, tries };
    log.error(about, 'this has ended the process too often; it is tried again after a day, or after /reset');
    return null;
  }
  const next: Begun = { tries: tries + 1, at: clock.now(), resetAt };
  await store.setSetting(key, JSON.stringify(next));
  try {
    return await work();
  } finally {
    await store.setSetting(key, null);
  }
}

// What less text may mend: a request to save or sum up that does not fit the model's window, or takes it too long.

/** So often the text is halved. */
export const MOST_HALVINGS = 4;

export const READ_IN_PART = 'the model server read only a part of it';

export function isTooMuch({ code }: Fault): boolean {
  return code === 'context_too_long' || code === 'model_silent';
}

// What flushes and consolidation do is in the journal as everything is; their steps are not stored, for they begin anew.

/** What was begun before `signal` aborted gets its outcome all the same. */
export function unstored(
  { store, owner }: Pick<Services, 'store' | 'owner'>,
  signal: AbortSignal,
): Required<Pick<TurnRequest, 'save' | 'cutOff'>> {
  return {
    async save(step, { entries = [] } = {}) {
      const isDone = step.kind === 'result';
      if (entries.length > 0 && (isDone || !signal.aborted)) await store.append(entries, owner);
      return !signal.aborted;
    },
    cutOff: (entries) => store.append(entries, owner),
  };
}
