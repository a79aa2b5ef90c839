/** `/schedule`: lists this chat's scheduled tasks, and pauses, resumes or cancels them. */
import { createZone } from '../../core/dates.js';
import type { Job, Jobs } from '../../core/jobs.js';
import { type Persona, personaName } from '../../core/persona.js';
import { oneLine } from '../quoting.js';
import {
  type ChatCommand,
  type CommandAnswer,
  type CommandCall,
  changing,
  type RunnableVerb,
  reading,
  withVerbs,
} from './command.js';
import { verbAndRest } from './parse.js';

const PROMPT_CHARS = 150;
/** A full list of fifty would take several messages. */
const LIST_CHARS = 60;
const MANY = 10;

const TASK = { name: 'task', description: 'Its number, as /schedule shows it', required: true };

export const schedule: ChatCommand = withVerbs(
  {
    name: 'schedule',
    aliases: [],
    description: 'List the scheduled tasks; pause, resume or cancel them',
    ofChat: true,
    audited: (argument) => {
      const { verb, rest } = verbAndRest(argument);
      return `${verb} ${numberOf(rest) ?? ''}`.trim();
    },
  },
  [
    reading('list', 'List the scheduled tasks', async (call) => ({ text: await listIn(call) })),
    change('pause', 'Pause a task until it is resumed', 'is paused'),
    change('resume', 'Let a paused task run again', 'is active again'),
    change('cancel', 'Cancel a task', 'is cancelled'),
    reading('history', 'Show when a task ran', (call, rest) => onTask(call, rest, historyOf), TASK),
  ],
);

function change(name: 'pause' | 'resume' | 'cancel', description: string, outcome: string): RunnableVerb {
  const run: RunnableVerb['run'] = (call, rest) =>
    onTask(call, rest, async (job, jobs) => {
      const answer = await jobs[name](job);
      if (!answer.ok) return answer.reason;
      const { n, state, nextAt, timezone } = answer.job;
      const next = state === 'active' && nextAt !== null ? ` Next: ${timeIn(timezone, nextAt)}.` : '';
      return `Task ${n} ${outcome}.${next}`;
    });
  return changing(name, description, run, TASK);
}

async function onTask(
  { command, jobs }: CommandCall,
  rest: string,
  work: (job: Job, jobs: Jobs) => Promise<string>,
): Promise<CommandAnswer> {
  const n = numberOf(rest);
  if (n === null)
    return { text: 'Usage: /schedule pause, resume, cancel or history, and the number of a task.' };
  const job = await jobs.find(command.chat.id, n);
  return {
    text: job === null ? `There is no task ${n} here. /schedule lists the tasks.` : await work(job, jobs),
  };
}

/** `3`, `#3` */
function numberOf(text: string): number | null {
  const [, digits] = /^#?(\d{1,9})$/.exec(text.trim()) ?? [];
  return digits === undefined ? null : Number(digits);
}

async function listIn({ command, jobs, personas }: CommandCall): Promise<string> {
  const all = await jobs.list(command.chat.id);
  if (all.length === 0)
    return 'Nothing is scheduled here. Ask me to remind you of something, or to do something at a certain time.';
  const there = await personas.list(command.chat.id);
  const chars = all.length > MANY ? LIST_CHARS : PROMPT_CHARS;
  const lines = all.map((job) => `- ${lineOf(job, there, chars)}`);
  return `${lines.join('\n')}\n\nUse /schedule pause N, resume N, cancel N or history N.`;
}

/** `3, active, 2026-01-31 08:00 (Europe/Berlin), cron 0 8 * * *, by Mira for June: Say good morning` */
function lineOf(job: Job, personas: Persona[], chars: number): string {
  const { n, state, nextAt, timezone, kind, value, followUp, senderName, personaId, prompt } = job;
  const persona = personaName(personas, personaId);
  const asked = senderName === '' ? persona : `by ${oneLine(senderName, 60)} for ${persona}`;
  const facts = [String(n), state];
  if (nextAt !== null) facts.push(timeIn(timezone, nextAt));
  if (kind === 'cron') facts.push(`cron ${value}`);
  facts.push(followUp ? `${persona}’s own idea` : asked);
  return `${facts.join(', ')}: ${oneLine(prompt, chars)}`;
}

async function historyOf(job: Job, jobs: Jobs): Promise<string> {
  const runs = await jobs.runs(job);
  if (runs.length === 0) return `Task ${job.n} has not run yet.`;
  const lines = runs.map(({ slot, attempt, outcome }) => {
    const again = attempt === 0 ? '' : ` (retry ${attempt} of 3)`;
    // All zone offsets are whole minutes.
    const seconds = slot % 60_000 === 0 ? '' : `, at second ${new Date(slot).getUTCSeconds()}`;
    return `- ${timeIn(job.timezone, slot)}${seconds}: ${outcome === 'answered' ? 'done' : outcome}${again}`;
  });
  return `Task ${job.n}, newest first:\n${lines.join('\n')}`;
}

function timeIn(timezone: string, at: number): string {
  return `${createZone(timezone).time(at)} (${timezone})`;
}
