/** Jobs for tools and commands: add, list, pause, resume, cancel. The caller checks permissions. */
import type { Clock } from '../core/clock.js';
import { timeWithZone } from '../core/dates.js';
import type {
  Job,
  JobAccess,
  JobAnswer,
  JobBounds,
  JobChange,
  JobState,
  JobStore,
  Jobs,
} from '../core/jobs.js';
import { firstOf, nextOf, type Rules } from './plan.js';

/** Enough for a family, and small enough for the database. */
export const BOUNDS: JobBounds = { open: 50, followUps: 5, followUpsADay: 5 };

const REFUSED = {
  open: `This chat has ${BOUNDS.open} scheduled tasks, which is as many as there may be: cancel one first.`,
  followUps: `There are ${BOUNDS.followUps} open tasks here that nobody asked for; more would be a nuisance.`,
  followUpsADay: `${BOUNDS.followUpsADay} tasks that nobody asked for were set here today; more would be a nuisance.`,
};
const OPEN: readonly JobState[] = ['active', 'paused', 'parked'];

interface JobServices {
  store: JobStore;
  door: JobAccess;
  rules: Rules;
  clock: Clock;
  newId(): string;
  alarm: { look(): void };
}

export function createJobs({ store, door, rules, clock, newId, alarm }: JobServices): Jobs {
  async function change(job: Job, from: readonly JobState[], changed: JobChange): Promise<JobAnswer> {
    const isChanged = await store.changeJob({ id: job.id, from }, changed, clock.now());
    const [now = job] = await store.jobs({ id: job.id });
    alarm.look();
    return isChanged ? { ok: true, job: now } : { ok: false, reason: stateOf(now) };
  }

  return {
    async add({ turnId, ...wish }) {
      const now = clock.now();
      const first = firstOf(wish, rules, now);
      if (!first.ok) return first;
      const { timing, at } = first;
      const guarded = await door.admits(wish);
      const prompt = wish.prompt.trim();
      const job = { ...wish, ...timing, prompt, guarded, id: newId(), turnId, nextAt: at, now };
      const added = await store.addJob(job, BOUNDS);
      if (typeof added === 'string') return { ok: false, reason: REFUSED[added] };
      alarm.look();
      return { ok: true, job: added };
    },

    list: (chatId) => store.jobs({ chatId }),
    find: async (chatId, n) => (await store.jobs({ chatId, n }))[0] ?? null,
    runs: ({ id }) => store.runsOf(id),
    pause: (job) => change(job, ['active'], { state: 'paused' }),
    cancel: (job) => change(job, OPEN, { state: 'cancelled', nextAt: null, retryOf: null }),

    resume(job) {
      const now = clock.now();
      // A time that has passed meanwhile is run at once.
      const nextAt =
        job.kind === 'cron'
          ? nextOf(job, rules, now)
          : job.nextAt !== null && job.nextAt > now
            ? job.nextAt
            : now;
      return change(job, ['paused', 'parked'], {
        state: 'active',
        nextAt,
        retryOf: null,
        failures: 0,
        why: null,
      });
    },
  };
}

function stateOf({ n, state, nextAt, timezone }: Job): string {
  const when = nextAt === null ? '' : ` and runs next at ${timeWithZone(nextAt, timezone)}`;
  if (state === 'active') return `Task ${n} is active${when}.`;
  return `Task ${n} is ${state} already.`;
}
