/** `/schedule`: what is to be done in this chat at a time, and how to pause, resume or end it. */
import { createZone } from '../../core/dates.js';
import type { Job, JobAnswer, Jobs } from '../../core/jobs.js';
import { type Persona, personaName } from '../../core/persona.js';
import { oneLine } from '../quoting.js';
import type { Command, CommandServices } from './command.js';
import { verbAndRest } from './parse.js';

const USAGE = [
  'Usage:',
  '/schedule — list what is scheduled here',
  '/schedule pause N — keep task N from running until it is resumed',
  '/schedule resume N — let it run again',
  '/schedule cancel N — end it',
  '/schedule history N — when it ran',
].join('\n');

const CHANGES = {
  pause: { words: 'is paused', act: (jobs: Jobs, job: Job) => jobs.pause(job) },
  resume: { words: 'is active again', act: (jobs: Jobs, job: Job) => jobs.resume(job) },
  cancel: { words: 'is cancelled', act: (jobs: Jobs, job: Job) => jobs.cancel(job) },
};
const PROMPT_CHARS = 150;
/** A list of fifty in full would be several messages. */
const LIST_CHARS = 60;
const MANY = 10;

export const schedule: Command = {
  name: 'schedule',
  aliases: [],
  description: 'List what is scheduled here; pause, resume or cancel it',
  verbs: [
    { name: 'list', description: 'List what is scheduled here' },
    { name: 'pause', description: 'Keep a task from running until it is resumed', rest: number() },
    { name: 'resume', description: 'Let a paused task run again', rest: number() },
    { name: 'cancel', description: 'End a task', rest: number() },
    { name: 'history', description: 'When a task ran', rest: number() },
  ],
  ofChat: true,
  changes: (argument) => changeIn(argument) !== undefined,
  audited: (argument) => {
    const { verb, rest } = verbAndRest(argument);
    return `${verb} ${numberOf(rest) ?? ''}`.trim();
  },
  async run({ command: { chat, argument } }, services) {
    const { jobs } = services;
    const { verb, rest } = verbAndRest(argument);
    if (verb === '' || (verb === 'list' && rest === '')) return { text: await listIn(services, chat.id) };
    const change = changeIn(argument);
    const n = numberOf(rest);
    if ((change === undefined && verb !== 'history') || n === null) return { text: USAGE };
    const job = await jobs.find(chat.id, n);
    if (job === null) return { text: `There is no task ${n} here; /schedule lists what there is.` };
    if (change === undefined) return { text: await historyOf(jobs, job) };
    return { text: said(await change.act(jobs, job), change.words) };
  },
};

function number() {
  return { name: 'task', description: 'Its number, as /schedule shows it', required: true };
}

function changeIn(argument: string): (typeof CHANGES)[keyof typeof CHANGES] | undefined {
  const { verb } = verbAndRest(argument);
  return Object.hasOwn(CHANGES, verb) ? CHANGES[verb as keyof typeof CHANGES] : undefined;
}

/** `3`, `#3` */
function numberOf(text: string): number | null {
  const [, digits] = /^#?(\d{1,9})$/.exec(text.trim()) ?? [];
  return digits === undefined ? null : Number(digits);
}

function said(answer: JobAnswer, words: string): string {
  if (!answer.ok) return answer.reason;
  const { n, state, nextAt, timezone } = answer.job;
  const next = state === 'active' && nextAt !== null ? ` Next: ${timeIn(timezone, nextAt)}.` : '';
  return `Task ${n} ${words}.${next}`;
}

async function listIn({ jobs, personas }: CommandServices, chatId: string): Promise<string> {
  const all = await jobs.list(chatId);
  if (all.length === 0)
    return 'Nothing is scheduled here. Ask me to remind you of something, or to do it at a time.';
  const there = await personas.list(chatId);
  const chars = all.length > MANY ? LIST_CHARS : PROMPT_CHARS;
  const lines = all.map((job) => `- ${lineOf(job, there, chars)}`);
  return `${lines.join('\n')}\n\n/schedule pause N, resume N, cancel N and history N go on from here.`;
}

/** `3, active, 2026-01-31 08:00 (Europe/Berlin), cron 0 8 * * *, by Mira for June: Say good morning` */
function lineOf(job: Job, personas: Persona[], chars: number): string {
  const { n, state, nextAt, timezone, kind, value, followUp, senderName, personaId, prompt } = job;
  const persona = personaName(personas, personaId);
  const next = nextAt === null ? [] : [timeIn(timezone, nextAt)];
  const by = followUp
    ? `${persona}’s own idea`
    : senderName === ''
      ? persona
      : `by ${oneLine(senderName, 60)} for ${persona}`;
  const often = kind === 'cron' ? [`cron ${value}`] : [];
  return `${[String(n), state, ...next, ...often, by].join(', ')}: ${oneLine(prompt, chars)}`;
}

const OUTCOMES = {
  running: 'under way',
  answered: 'done',
  failed: 'failed',
  skipped: 'passed over',
};

async function historyOf(jobs: Jobs, job: Job): Promise<string> {
  const runs = await jobs.runs(job);
  if (runs.length === 0) return `Task ${job.n} has not run yet.`;
  const lines = runs.map(({ slot, attempt, outcome }) => {
    const again = attempt === 0 ? '' : ` (tried again, ${attempt} of 3)`;
    // Every zone is whole minutes away from UTC.
    const seconds = slot % 60_000 === 0 ? '' : `, at second ${new Date(slot).getUTCSeconds()}`;
    return `- ${timeIn(job.timezone, slot)}${seconds}: ${OUTCOMES[outcome]}${again}`;
  });
  return `Task ${job.n}, newest first:\n${lines.join('\n')}`;
}

function timeIn(timezone: string, at: number): string {
  return `${createZone(timezone).time(at)} (${timezone})`;
}
