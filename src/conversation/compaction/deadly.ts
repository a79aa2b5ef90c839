/**
 * Beside step 5 of the route: work on a window or a memory that ended the process is not begun for ever. It is noted before
 * it begins and struck out when it ends, however it ends; what is still noted at the next try has ended the process. After
 * a few of these it rests for a day, or until a reset: what it would have read stays in the window or in an archive.
 */
import type { Services } from '../services.js';
import { type Subject, viewKey } from './subject.js';

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
