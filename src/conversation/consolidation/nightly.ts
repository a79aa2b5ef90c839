/**
 * The nightly consolidation (`memory.consolidate`), called by the upkeep: for each persona that talked since the last
 * one, its memory is put in order, within a budget of tokens a night. Once a night for each persona, also over a crash;
 * who was missed (budget, an end of the process, a night without a gateway) comes first the next night, once.
 */
import { type PersonaId, type RoomId, roomParts } from '../../core/ids.js';
import type { Spoke } from '../../core/memory.js';
import { guarded, metered, payerOf, subjectOf } from '../compaction/subject.js';
import type { Services, Subject } from '../services.js';
import { type ConsolidationEnd, consolidate, prepare, tokensUsed } from './consolidate.js';

/** What outlives a restart, as JSON in one setting. */
interface Nights {
  /** Whoever spoke after this time is due. */
  since: number;
  /** The night in question (YYYY-MM-DD in the configured zone), and the tokens it has used. */
  night: string;
  tokens: number;
  /** By chat and persona: the last night in which it was done, and its last words by then. */
  done: Record<string, { night: string; at: number }>;
}

/** `later`: no tokens were left for it. */
type OneEnd = ConsolidationEnd['kind'] | 'nothing' | 'later';

const SETTING = 'memory.nights';
const DAY_MS = 24 * 3_600_000;
const LONGEST_BACK_MS = 7 * DAY_MS;
/** When the model fails this often in a row, the rest waits for the next night. */
const MOST_FAILURES = 3;

/** Resolves when the night's work is done, or soon after the signal aborts. */
export async function consolidateNight(services: Services, signal: AbortSignal): Promise<void> {
  const { store, clock, zone, log, settings } = services;
  if (settings.consolidation === null) return;
  const { tokens: budget, memoryChars } = settings.consolidation;
  const begun = clock.now();
  const state = await load();
  let left = false;
  let failures = 0;
  for (const spoke of await dueNow()) {
    if (signal.aborted) return;
    const { room, personaId, at } = spoke;
    if (state.done[keyOf(spoke)]?.night === state.night || failures >= MOST_FAILURES) {
      left = true;
      continue;
    }
    const end = await one(room, personaId);
    if (end === 'failed') failures++;
    if (end === 'later' || end === 'dropped' || end === 'failed') {
      left = true;
      continue;
    }
    failures = 0;
    state.done[keyOf(spoke)] = { night: state.night, at };
    await save();
  }
  if (signal.aborted) return;
  if (!left) state.since = begun;
  for (const [key, { night, at }] of Object.entries(state.done)) {
    if (night !== state.night && at < state.since) delete state.done[key];
  }
  await save();

  async function one(room: RoomId, personaId: PersonaId): Promise<OneEnd> {
    const subject = await subjectOf(services, { room, personaId });
    if (!subject?.personas.some(({ id }) => id === personaId)) return 'nothing';
    const chatId = subject.chat.id;
    const changeId = `night-${state.night}-${personaId}`;
    // The process may have ended between the write and our note of it.
    const already = await store.versions({ chatId, personaId, most: 1, turnId: changeId });
    if (already.length > 0) return 'nothing';
    let result: OneEnd = 'dropped';
    await services.windows.beside(subject, async (halted) => {
      try {
        result = await putInOrder(subject, changeId, AbortSignal.any([signal, halted]));
      } catch (error) {
        log.error({ err: error, chat: chatId, persona: personaId }, 'a memory could not be put in order');
        result = 'failed';
      }
    });
    return result;
  }

  async function putInOrder(subject: Subject, changeId: string, ended: AbortSignal): Promise<OneEnd> {
    const { personaId } = subject;
    const said = { chat: subject.chat.id, persona: personaId };
    const prepared = await prepare(services, subject, memoryChars);
    if (prepared === null) return 'nothing';
    if (state.tokens + prepared.tokens > budget) {
      log.warn({ ...said, budget }, 'no tokens are left tonight to put this memory in order');
      return 'later';
    }
    if (await services.dailyLimits.reached(payerOf(subject))) {
      log.info(said, 'a limit of the day is reached; this memory is put in order another night');
      return 'later';
    }
    const asked = { changeId, memoryChars, signal: ended };
    const end = await guarded(services, 'night', subject, () =>
      metered(services, subject, (paid) => consolidate(paid, subject, prepared, asked)),
    );
    if (end === null) return 'nothing';
    state.tokens += tokensUsed(prepared, end);
    // At once: a start after this one is ended has only what is left of the night's tokens.
    await save();
    services.metrics.count('consolidations_total', { outcome: end.kind });
    if (end.kind === 'dropped') return end.kind;
    if ('reason' in end)
      log.warn({ ...said, why: end.reason }, 'a memory was not put in order for the night');
    else log.info({ ...said, changed: end.kind === 'written' }, 'a memory was put in order for the night');
    return end.kind;
  }

  /** Those that were missed before come first. */
  async function dueNow(): Promise<Spoke[]> {
    const lastDone = (spoke: Spoke) => state.done[keyOf(spoke)]?.at ?? 0;
    const since = Math.max(state.since, begun - LONGEST_BACK_MS);
    return (await store.spokeSince(since))
      .filter((spoke) => spoke.at > lastDone(spoke))
      .sort((a, b) => lastDone(a) - lastDone(b) || a.at - b.at);
  }

  async function load(): Promise<Nights> {
    const night = zone.date(begun);
    const stored = await store.setting(SETTING);
    if (stored === null) return { since: begun - DAY_MS, night, tokens: 0, done: {} };
    const nights: Nights = JSON.parse(stored);
    return nights.night === night ? nights : { ...nights, night, tokens: 0 };
  }

  async function save(): Promise<void> {
    await store.setSetting(SETTING, JSON.stringify(state));
  }
}

function keyOf({ room, personaId }: Spoke): string {
  return `${roomParts(room).chatId}/${personaId}`;
}
