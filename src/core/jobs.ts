/**
 * Jobs: reminders and schedules of personas (docs/schedules.md). A slot is a time at which a job is due. Claiming it
 * and adding the event to its room is one transaction, so it fires at most once, despite crashes and several processes.
 */
import type { ChatId, PersonaId, RoomId } from './ids.js';

export interface JobTiming {
  kind: 'cron' | 'once';
  /** A cron line, or a time as given. */
  value: string;
  /** IANA zone. */
  timezone: string;
  /** The persona's own idea: respects quiet hours. */
  followUp: boolean;
}

/** A job as it was set. */
interface JobTerms extends JobTiming {
  id: string;
  chatId: ChatId;
  room: RoomId;
  personaId: PersonaId;
  prompt: string;
  /** The person whose words led to it; empty if nobody's, or not one person's. */
  senderId: ChatId;
  /** It was created while the model saw untrusted text. */
  tainted: boolean;
  /** The sender's ids gave them access when they created it, so it is checked again when due. */
  guarded: boolean;
}

interface JobProgress {
  state: JobState;
  /** Next due time, ms; null: never. */
  nextAt: number | null;
  /** The slot to retry at `nextAt`; null: none. */
  retryOf: number | null;
  failures: number;
  /** null unless parked. */
  why: ParkedFor | null;
}

export interface Job extends JobTerms, JobProgress {
  /** Number shown to people and models, per chat. */
  n: number;
  /** Empty if unknown. */
  senderName: string;
  createdAt: number;
}

/** parked: needs somebody to resume it. */
export type JobState = 'active' | 'paused' | 'parked' | 'done' | 'cancelled';
/** It failed too often; its persona is gone; or its creator may no longer talk here. */
export type ParkedFor = 'failed' | 'persona' | 'access';

export interface NewJob extends JobTerms {
  /** The creating turn, which knows the sender's name. */
  turnId: string;
  nextAt: number;
  now: number;
}

export interface JobBounds {
  /** Maximum jobs per chat that may fire again or be resumed. */
  open: number;
  /** Maximum follow-ups among them, and new follow-ups per day. */
  followUps: number;
  followUpsADay: number;
}

export type RunOutcome = 'running' | 'answered' | 'failed' | 'skipped';

export interface JobRun {
  slot: number;
  /** From 0. */
  attempt: number;
  firedAt: number;
  outcome: RunOutcome;
}

export type JobChange = Partial<JobProgress>;

/** A slot to fire, as it was seen due. */
export interface Firing {
  /** Nothing happens unless the job is still active and due at this time. */
  seen: { id: string; nextAt: number | null };
  slot: number;
  attempt: number;
  /** The event's text before the prompt; null: skip the slot. */
  head: string | null;
  becomes: JobChange;
  now: number;
}

export interface EndedRun {
  job: Job;
  slot: number;
  attempt: number;
  /** `skipped`: unanswered, because it was stopped or forgotten by a reset. */
  outcome: 'answered' | 'failed' | 'skipped';
  endedAt: number;
}

/** `channels`: only jobs of chats in these channels. */
export interface JobStore {
  /** Assigns the chat's next number, or returns the exceeded bound. */
  addJob(job: NewJob, bounds: JobBounds): Promise<Job | 'open' | 'followUps' | 'followUpsADay'>;
  /** Jobs of a chat that may fire again or be resumed, by number. */
  jobsOf(chatId: ChatId): Promise<Job[]>;
  jobNumbered(chatId: ChatId, n: number): Promise<Job | null>;
  job(id: string): Promise<Job | null>;
  /** Newest first. */
  runsOf(id: string): Promise<JobRun[]>;
  /** False, changing nothing, unless it is in one of these states. */
  changeJob(id: string, from: readonly JobState[], change: JobChange, now: number): Promise<boolean>;
  /** Earliest due time; null: none. */
  nextJobAt(channels: string[]): Promise<number | null>;
  /** Due jobs, earliest first, at most `most` (maximum 100). */
  dueJobs(ask: { channels: string[]; now: number; most: number }): Promise<Job[]>;
  /**
   * Claims a slot, adding its run and its event (as `receive` does) in one transaction. 'skipped': the job still has an
   * open run. null: claimed by another, or the job has changed.
   */
  fireJob(firing: Firing): Promise<'fired' | 'skipped' | null>;
  /** Open runs: the number working or queued, without old ones, and those that have ended. */
  openRuns(ask: { channels: string[]; since: number }): Promise<{ working: number; ended: EndedRun[] }>;
  /** Counts the end of a run and changes its job, unless somebody ended the job. False: already counted. */
  endRun(run: Omit<EndedRun, 'endedAt'>, change: JobChange, now: number): Promise<boolean>;
  /** Repeating jobs with a last run in the future (the clock was ahead), at most 100. Resets that time to `now`. */
  jobsAhead(ask: { channels: string[]; now: number }): Promise<Job[]>;
  jobStates(): Promise<Partial<Record<JobState, number>>>;
}

export interface TimingWish {
  prompt: string;
  kind: 'cron' | 'once';
  value: string;
  /** Absent: the configured zone. */
  timezone?: string | undefined;
  followUp: boolean;
}

/** A requested job, as given by a model or a person. */
export interface JobWish extends TimingWish {
  chatId: ChatId;
  room: RoomId;
  personaId: PersonaId;
  senderId: ChatId;
  tainted: boolean;
  turnId: string;
}

/** `reason`: a sentence. */
export type JobAnswer = { ok: true; job: Job } | { ok: false; reason: string };

export interface Jobs {
  add(wish: JobWish): Promise<JobAnswer>;
  list(chatId: ChatId): Promise<Job[]>;
  find(chatId: ChatId, n: number): Promise<Job | null>;
  runs(job: Job): Promise<JobRun[]>;
  pause(job: Job): Promise<JobAnswer>;
  resume(job: Job): Promise<JobAnswer>;
  cancel(job: Job): Promise<JobAnswer>;
}

/** Whether a person may talk in a chat, judged by their ids. */
export interface JobAccess {
  admits(who: { chatId: ChatId; senderId: ChatId }): Promise<boolean>;
}

export interface JobRooms {
  /** Handles the events of these rooms once they are on disk. */
  fired(rooms: RoomId[]): Promise<void>;
  /** Posts a message from the gateway itself, once per origin. */
  say(notice: { room: RoomId; origin: string; text: string }): Promise<void>;
}

/** `about` of a job's event. */
export const SCHEDULE = 'schedule';

/** The id of a slot's event; prefixed with `event:` in the transcript. */
export function jobEventId(jobId: string, slot: number, attempt: number): string {
  return `job:${jobId}:${slot}:${attempt}`;
}

/** The job behind a message; null for other messages. */
export function jobOfEvent(platformMessageId: string | null): string | null {
  return /^event:job:([^:]+):\d+:\d+$/.exec(platformMessageId ?? '')?.[1] ?? null;
}
