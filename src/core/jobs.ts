/**
 * Jobs: what a persona is to be told, and when (docs/schedules.md). A slot is a time at which a job is due. It is claimed
 * and becomes an event of its room in one transaction, so that it fires at most once, whatever ends a process and however
 * many there are.
 */
import type { ChatId, PersonaId, RoomId } from './ids.js';

export interface Job {
  id: string;
  chatId: ChatId;
  /** The number by which people and models name it, counted per chat. */
  n: number;
  room: RoomId;
  personaId: PersonaId;
  prompt: string;
  kind: 'cron' | 'once';
  /** A cron line, or a time as it was given. */
  value: string;
  /** IANA name. */
  timezone: string;
  /** The persona's own idea: quiet hours hold. */
  followUp: boolean;
  /** Whose words led to it; empty: nobody's, or not one person's. */
  senderId: ChatId;
  /** Their name; empty if it is not known. */
  senderName: string;
  /** It was set while words from outside stood before the model. */
  tainted: boolean;
  /** Whether they may talk there is asked again when it is due: it could be told by their id when they set it. */
  guarded: boolean;
  createdAt: number;
  state: JobState;
  /** When it is due next; null: never again. */
  nextAt: number | null;
  /** The slot that is tried again then; null: none. */
  retryOf: number | null;
  /** How often it has failed in a row. */
  failures: number;
  /** Why it is parked. */
  why: ParkedFor | null;
}

/** parked: it cannot run until somebody resumes it. */
export type JobState = 'active' | 'paused' | 'parked' | 'done' | 'cancelled';
/** It failed too often; its persona is gone; who asked for it may not talk here any more. */
export type ParkedFor = 'failed' | 'persona' | 'access';

export type NewJob = Pick<
  Job,
  | 'id'
  | 'chatId'
  | 'room'
  | 'personaId'
  | 'prompt'
  | 'kind'
  | 'value'
  | 'timezone'
  | 'followUp'
  | 'senderId'
  | 'tainted'
  | 'guarded'
> & {
  /** The turn that sets it: whoever it answers is known by name there. */
  turnId: string;
  nextAt: number;
  now: number;
};

export interface JobBounds {
  /** Jobs of a chat that may fire again, or wait to be resumed. */
  open: number;
  /** Of them, what personas set themselves; and how many of these may be set in a day. */
  followUps: number;
  followUpsADay: number;
}

export type RunOutcome = 'running' | 'answered' | 'failed' | 'skipped';

/** One slot that fired, or was passed over. */
export interface JobRun {
  slot: number;
  /** 0 for the first. */
  attempt: number;
  firedAt: number;
  outcome: RunOutcome;
}

/** What a job is from now on. */
export type JobChange = Partial<Pick<Job, 'state' | 'nextAt' | 'retryOf' | 'failures' | 'why'>>;

/** A slot to be fired, as it was seen due. */
export interface Firing {
  /** Nothing happens unless the job is still active and due at this time. */
  seen: Pick<Job, 'id' | 'nextAt'>;
  slot: number;
  attempt: number;
  /** The event's text before the prompt; null: the slot is passed over. */
  head: string | null;
  /** What the job is from then on. */
  becomes: JobChange;
  now: number;
}

/** A run whose end is known and not yet counted. */
export interface EndedRun {
  job: Job;
  slot: number;
  attempt: number;
  /** `skipped`: nobody answered it, as it was stopped, or forgotten by a reset. */
  outcome: 'answered' | 'failed' | 'skipped';
  endedAt: number;
}

/** Only jobs of chats in these channels, where it says `channels`. */
export interface JobStore {
  /** Gives it the next number of its chat; or says which bound it would exceed. */
  addJob(job: NewJob, bounds: JobBounds): Promise<Job | 'open' | 'followUps' | 'followUpsADay'>;
  /** The jobs of a chat that may fire again, or wait to be resumed, by number. */
  jobsOf(chatId: ChatId): Promise<Job[]>;
  jobNumbered(chatId: ChatId, n: number): Promise<Job | null>;
  job(id: string): Promise<Job | null>;
  /** The latest runs, newest first. */
  runsOf(id: string): Promise<JobRun[]>;
  /** False, and nothing is changed, if it is not in one of these states. */
  changeJob(id: string, from: readonly JobState[], change: JobChange, now: number): Promise<boolean>;
  /** When the next is due; null: none is. */
  nextJobAt(channels: string[]): Promise<number | null>;
  /** What is due, earliest first, at most `most` (of 100). */
  dueJobs(ask: { channels: string[]; now: number; most: number }): Promise<Job[]>;
  /**
   * Claims a slot, in one transaction with the run that it becomes and the event that tells of it (as `receive` adds one).
   * A slot whose job still has a run under way is passed over. null: another claimed it, or the job has changed.
   */
  fireJob(firing: Firing): Promise<'fired' | 'skipped' | null>;
  /** Of the runs under way: how many work or wait to, not counting those of long ago; and those that have ended. */
  openRuns(ask: { channels: string[]; since: number }): Promise<{ working: number; ended: EndedRun[] }>;
  /** Counts the end of a run, and changes its job, unless somebody has ended that. False: it was counted before. */
  endRun(run: Omit<EndedRun, 'endedAt'>, change: JobChange, now: number): Promise<boolean>;
  /**
   * The repeating jobs that fired at a time that is still to come, because the clock was ahead; at most 100. From now on
   * they count as having fired now.
   */
  jobsAhead(ask: { channels: string[]; now: number }): Promise<Job[]>;
  /** How many there are in each state. */
  jobStates(): Promise<Partial<Record<JobState, number>>>;
}

/** What somebody wants to be told, and when, as a model or a person put it. */
export interface JobWish {
  chatId: ChatId;
  room: RoomId;
  personaId: PersonaId;
  prompt: string;
  kind: 'cron' | 'once';
  value: string;
  /** Left out: the configured one. */
  timezone?: string | undefined;
  followUp: boolean;
  senderId: ChatId;
  tainted: boolean;
  turnId: string;
}

/** A sentence says why not. */
export type JobAnswer = { ok: true; job: Job } | { ok: false; reason: string };

/** Jobs as tools and commands use them. */
export interface Jobs {
  add(wish: JobWish): Promise<JobAnswer>;
  list(chatId: ChatId): Promise<Job[]>;
  find(chatId: ChatId, n: number): Promise<Job | null>;
  runs(job: Job): Promise<JobRun[]>;
  pause(job: Job): Promise<JobAnswer>;
  resume(job: Job): Promise<JobAnswer>;
  cancel(job: Job): Promise<JobAnswer>;
}

/** Whether a person may talk in a chat, as far as their ids tell. */
export interface JobAccess {
  admits(who: Pick<Job, 'chatId' | 'senderId'>): Promise<boolean>;
}

/** The rooms in which jobs fire. */
export interface JobRooms {
  /** Takes up the events of these rooms once they are on the disk. */
  fired(rooms: RoomId[]): Promise<void>;
  /** Says something there in the gateway's own name, once per origin. */
  say(notice: { room: RoomId; origin: string; text: string }): Promise<void>;
}

/** The author's `about` of a job's event. */
export const SCHEDULE = 'schedule';

/** The event that a slot becomes; in the transcript it stands behind `event:`. */
export function jobEventId(jobId: string, slot: number, attempt: number): string {
  return `job:${jobId}:${slot}:${attempt}`;
}

/** The job that a message of the transcript comes from; null: from none. */
export function jobOfEvent(platformMessageId: string | null): string | null {
  return /^event:job:([^:]+):\d+:\d+$/.exec(platformMessageId ?? '')?.[1] ?? null;
}
