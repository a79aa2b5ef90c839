/**
 * The nightly consolidation (`memory.consolidate`), called by the upkeep: once a night, within a token budget, it
 * consolidates the memory of each persona that spoke since its last one. Personas that were missed (budget, a crash, a
 * night without a gateway) come first the next night.
 */
import { roomParts } from '../../core/ids.js';
import type { Spoke } from '../../core/memory.js';
import { guarded, metered, payerOf, subjectOf } from '../compaction/subject.js';
import type { Services, Subject } from '../services.js';
import { type ConsolidationEnd, consolidate, prepare, tokensUsed } from './consolidate.js';

/** Survives a restart, as JSON in one setting. */
interface NightlyState {
  /** Personas that spoke after this time are due. */
  since: number;
  /** The current night (YYYY-MM-DD in the configured zone), and the tokens it has used. */
  night: string;
  tokens: number;
  /** By chat and persona: the night of the last consolidation, and the persona's last message by then. */
  done: Record<string, { night: string; at: number }>;
}

/** `later`: no tokens were left. */
type Outcome = ConsolidationEnd['kind'] | 'nothing' | 'later';

const SETTING = 'memory.nights';
const DAY_MS = 24 * 3_600_000;
const LONGEST_BACK_MS = 7 * DAY_MS;
/** After this many consecutive failures of the model, the rest waits for the next night. */
const MOST_FAILURES = 3;

/** Resolves when the night's work is done, or soon after the signal aborts. */
export async function consolidateNight(services: Services, signal: AbortSignal): Promise<void> {
  if (services.settings.consolidation === null) return;
  const begun = services.clock.now();
  const state = await load(services, begun);
  let left = false;
  let failures = 0;
  for (const spoke of await duePersonas(services, state, begun)) {
    if (signal.aborted) return;
    const key = keyOf(spoke);
    const isDone = state.done[key]?.night === state.night;
    const outcome =
      isDone || failures >= MOST_FAILURES ? 'later' : await consolidateOne(services, state, spoke, signal);
    if (outcome === 'failed') failures++;
    if (outcome === 'later' || outcome === 'dropped' || outcome === 'failed') {
      left = true;
      continue;
    }
    failures = 0;
    state.done[key] = { night: state.night, at: spoke.at };
    await save(services, state);
  }
  if (signal.aborted) return;
  if (!left) state.since = begun;
  for (const [key, { night, at }] of Object.entries(state.done)) {
    if (night !== state.night && at < state.since) delete state.done[key];
  }
  await save(services, state);
}

/** Sorts personas that were missed before first. */
async function duePersonas({ store }: Services, state: NightlyState, begun: number): Promise<Spoke[]> {
  const lastDone = (spoke: Spoke) => state.done[keyOf(spoke)]?.at ?? 0;
  const since = Math.max(state.since, begun - LONGEST_BACK_MS);
  return (await store.spokeSince(since))
    .filter((spoke) => spoke.at > lastDone(spoke))
    .sort((a, b) => lastDone(a) - lastDone(b) || a.at - b.at);
}

async function consolidateOne(
  services: Services,
  state: NightlyState,
  { room, personaId }: Spoke,
  signal: AbortSignal,
): Promise<Outcome> {
  const { store, windows, log } = services;
  const subject = await subjectOf(services, { room, personaId });
  if (!subject?.personas.some(({ id }) => id === personaId)) return 'nothing';
  const chatId = subject.chat.id;
  const changeId = `night-${state.night}-${personaId}`;
  // The process may have ended between the write and our record of it.
  const already = await store.versions({ chatId, personaId, most: 1, turnId: changeId });
  if (already.length > 0) return 'nothing';
  let outcome: Outcome = 'dropped';
  await windows.beside(subject, async (halted) => {
    try {
      outcome = await putInOrder(services, state, subject, changeId, AbortSignal.any([signal, halted]));
    } catch (error) {
      log.error({ err: error, chat: chatId, persona: personaId }, 'memory consolidation failed');
      outcome = 'failed';
    }
  });
  return outcome;
}

async function putInOrder(
  services: Services,
  state: NightlyState,
  subject: Subject,
  changeId: string,
  signal: AbortSignal,
): Promise<Outcome> {
  const { log, metrics, settings } = services;
  const { tokens: budget, memoryChars } = settings.consolidation ?? { tokens: 0, memoryChars: 0 };
  const about = { chat: subject.chat.id, persona: subject.personaId };
  const prepared = await prepare(services, subject, memoryChars);
  if (prepared === null) return 'nothing';
  if (state.tokens + prepared.tokens > budget) {
    log.warn({ ...about, budget }, 'tonight’s tokens are used up; memory consolidation postponed');
    return 'later';
  }
  if (await services.dailyLimits.reached(payerOf(subject))) {
    log.info(about, 'daily limit reached; memory consolidation postponed');
    return 'later';
  }
  const end = await guarded(services, 'night', subject, () =>
    metered(services, subject, (paid) => consolidate(paid, subject, prepared, changeId, memoryChars, signal)),
  );
  if (end === null) return 'nothing';
  state.tokens += tokensUsed(prepared, end);
  // Saved at once, so that after a restart only the rest of the night's budget is left.
  await save(services, state);
  metrics.count('consolidations_total', { outcome: end.kind });
  if (end.kind === 'dropped') return end.kind;
  if ('reason' in end) log.warn({ ...about, why: end.reason }, 'memory consolidation failed');
  else log.info({ ...about, changed: end.kind === 'written' }, 'memory consolidation finished');
  return end.kind;
}

async function load({ store, zone }: Services, begun: number): Promise<NightlyState> {
  const night = zone.date(begun);
  const stored = await store.setting(SETTING);
  if (stored === null) return { since: begun - DAY_MS, night, tokens: 0, done: {} };
  const state: NightlyState = JSON.parse(stored);
  return state.night === night ? state : { ...state, night, tokens: 0 };
}

async function save({ store }: Services, state: NightlyState): Promise<void> {
  await store.setSetting(SETTING, JSON.stringify(state));
}

function keyOf({ room, personaId }: Spoke): string {
  return `${roomParts(room).chatId}/${personaId}`;
}
