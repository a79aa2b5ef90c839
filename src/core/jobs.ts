/** Jobs: reminders and schedules (docs/schedules.md). A slot and its event are one transaction: at most one run. */
import type { ChatId, PersonaId, RoomId } from './ids.js';

export interface JobTiming {
  kind: 'cron' | 'once';
  value: string;
  timezone: string;
  /** The persona's own idea: respects quiet hours. */
  followUp: boolean;
}

interface JobOrigin {
  chatId: ChatId;
  room: RoomId;
  personaId: PersonaId;
  /** Empty if nobody's, or not one person's. */
  senderId: ChatId;
  tainted: boolean;
}

interface JobTerms extends JobTiming, JobOrigin {
  id: string;
  prompt: string;
  /** Access is checked again when it is due. */
  guarded: boolean;
}

interface JobProgress {
  state: JobState;
  /** ms; null: never. */
  nextAt: number | null;
  retryOf: number | null;
  failures: number;
  why: ParkedFor | null;
}

export interface Job extends JobTerms, JobProgress {
  /** Shown to people and models, per chat. */
  n: number;
  senderName: string;
  createdAt: number;
}

export type JobState = 'active' | 'paused' | 'parked' | 'done' | 'cancelled';
/** It failed too often; its persona is gone; or its creator may no longer talk here. */
export type ParkedFor = 'failed' | 'persona' | 'access';

export interface NewJob extends JobTerms {
  turnId: string;
  nextAt: number;
  now: number;
}

export interface JobBounds {
  /** That may fire again or be resumed, per chat. */
  open: number;
  followUps: number;
  followUpsADay: number;
}

type RunOutcome = 'running' | 'answered' | 'failed' | 'skipped';

export interface JobRun {
  slot: number;
  attempt: number;
  outcome: RunOutcome;
}

export type JobChange = Partial<JobProgress>;

export interface Firing {
  /** Nothing happens unless the job is still active and due then. */
  seen: { id: string; room: RoomId; nextAt: number | null };
  slot: number;
  attempt: number;
  /** Before the prompt; null: skip the slot. */
  head: string | null;
  becomes: JobChange;
  now: number;
}

export interface EndedRun {
  job: Job;
  slot: number;
  attempt: number;
  /** `skipped`: stopped, or forgotten by a reset. */
  outcome: 'answered' | 'failed' | 'skipped';
  endedAt: number;
}

export interface JobStore {
  /** The chat's next number, or the exceeded bound. */
  addJob(job: NewJob, bounds: JobBounds): Promise<Job | 'open' | 'followUps' | 'followUpsADay'>;
  /** One, or all of a chat that may fire again or be resumed. */
  jobs(which: { id: string } | { chatId: ChatId; n?: number }): Promise<Job[]>;
  runsOf(id: string): Promise<JobRun[]>;
  /** False unless the job is in one of these states; or, at a run's end, if that was counted before. */
  changeJob(
    which: { id: string; from: readonly JobState[] } | { ended: EndedRun },
    change: JobChange,
    now: number,
  ): Promise<boolean>;
  /** Earliest first, at most `most` (up to 100); `nextAt`: when the one after them is due. */
  dueJobs(ask: {
    channels: string[];
    now: number;
    most: number;
  }): Promise<{ due: Job[]; nextAt: number | null }>;
  /** With its run and event in one transaction. 'skipped': an earlier run is open. null: no longer due. */
  fireJob(firing: Firing): Promise<'fired' | 'skipped' | null>;
  /** `working`: those since. `ahead`, told once: jobs that ran in the future, because the clock was ahead. */
  openRuns(ask: {
    channels: string[];
    since: number;
    now: number;
  }): Promise<{ working: number; ended: EndedRun[]; ahead: Job[] }>;
}

export interface TimingWish {
  prompt: string;
  kind: 'cron' | 'once';
  value: string;
  timezone?: string | undefined;
  followUp: boolean;
}

interface JobWish extends TimingWish, JobOrigin {
  turnId: string;
}

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

export interface JobAccess {
  admits(who: { chatId: ChatId; senderId: ChatId }): Promise<boolean>;
}

export interface JobRooms {
  /** Once they are on disk. */
  fired(rooms: RoomId[]): Promise<void>;
  /** Once per origin. */
  say(notice: { room: RoomId; origin: string; text: string }): Promise<void>;
}

export const SCHEDULE = 'schedule';

/** Prefixed with `event:` in the transcript. */
export function jobEventId(jobId: string, slot: number, attempt: number): string {
  return `job:${jobId}:${slot}:${attempt}`;
}

export function jobOfEvent(platformMessageId: string | null): string | null {
  return /^event:job:([^:]+):\d+:\d+$/.exec(platformMessageId ?? '')?.[1] ?? null;
}
