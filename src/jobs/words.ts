/** What is said of jobs: to the persona when one fires, and to a chat when one cannot. Pure. */
import { cutAt } from '../core/cut.js';
import type { Job, ParkedFor } from '../core/jobs.js';
import { timeWithZone } from './plan.js';

const MINUTE_MS = 60_000;

/** What stands before the prompt, so that it is not taken for what somebody says now. */
export function headOf(
  job: Job,
  { slot, attempt, now }: { slot: number; attempt: number; now: number },
): string {
  const { n, followUp, senderName, createdAt, timezone, kind, value } = job;
  const when = timeWithZone(slot, timezone);
  const often = kind === 'cron' ? `, as it is by the cron line ${value}` : '';
  const late =
    now - slot >= MINUTE_MS ? ` It could not be done then: it is now ${timeWithZone(now, timezone)}.` : '';
  const again = attempt > 0 ? ' It was tried before, and failed.' : '';
  const set = timeWithZone(createdAt, timezone);
  const by = followUp
    ? `You set it yourself on ${set}.`
    : `${senderName === '' ? 'It was asked for' : `${shortened(senderName, 60)} asked for it`} on ${set}.`;
  return (
    `Scheduled task ${n} was due at ${when}${often}.${late}${again} ${by} Nobody has said anything now; do what it ` +
    `says, and speak to those who are here. The task:`
  );
}

/** Said once to its room. */
export function parkedWords(job: Pick<Job, 'n' | 'prompt' | 'personaId'>, why: ParkedFor): string {
  const { n, prompt, personaId } = job;
  const what = `Scheduled task ${n} (“${shortened(prompt, 200)}”)`;
  const ends = `/schedule resume ${n} starts it again, /schedule cancel ${n} ends it.`;
  switch (why) {
    case 'failed':
      return `${what} failed four times in a row and is parked. ${ends}`;
    case 'persona':
      return `${what} is parked: its persona ${personaId} is not here any more. /schedule cancel ${n} ends it.`;
    case 'access':
      return `${what} is parked: whoever asked for it may not talk here any more. /schedule cancel ${n} ends it.`;
  }
}

function shortened(text: string, most: number): string {
  const line = text.replaceAll(/\s+/g, ' ').trim();
  return line.length > most ? `${cutAt(line, most)}…` : line;
}
