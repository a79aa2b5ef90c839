/** A cache of look-ups at a platform (members, administrators); one request at a time per key. */

import { LRUCache } from 'lru-cache';
import type { Clock } from '../../core/clock.js';

/** "Is an administrator" is cached for long, "is not" briefly. */
const YES_KEPT_MS = 300_000;
const NO_KEPT_MS = 3_000;

export type LookupCache<Answer> = ReturnType<typeof createLookupCache<Answer>>;

export function createLookupCache<Answer>(
  ask: (key: string) => Promise<Answer>,
  { most, clock }: { most: number; clock: Clock },
) {
  const answers = new LRUCache<string, { askedAt: number; answer: Answer }>({ max: most });
  const asking = new Map<string, Promise<Answer>>();

  async function askNow(key: string): Promise<Answer> {
    const askedAt = clock.now();
    const answer = await ask(key);
    answers.set(key, { askedAt, answer });
    return answer;
  }

  /** The cached answer, if it is not older than that. */
  function known(key: string, maxAgeMs: number): Answer | undefined {
    const kept = answers.get(key);
    return kept !== undefined && clock.now() - kept.askedAt < maxAgeMs ? kept.answer : undefined;
  }

  return {
    known,
    /** The cached answer, else asks the platform. Rejects when the platform cannot be asked. */
    async get(key: string, maxAgeMs: number): Promise<Answer> {
      const answer = known(key, maxAgeMs);
      if (answer !== undefined) return answer;
      const running = asking.get(key) ?? askNow(key).finally(() => asking.delete(key));
      asking.set(key, running);
      return running;
    },
    forget: (key: string) => void answers.delete(key),
    forgetAll: () => answers.clear(),
  };
}

/** Whether somebody is an administrator, by the cached answers. */
export async function isAdministrator<Answer>(
  asked: LookupCache<Answer>,
  key: string,
  isOne: (answer: Answer) => boolean,
): Promise<boolean> {
  const known = asked.known(key, YES_KEPT_MS);
  if (known !== undefined && isOne(known)) return true;
  return isOne(await asked.get(key, NO_KEPT_MS));
}
