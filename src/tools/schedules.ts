/** The tools for scheduled tasks. People may change their own, and others as far as `/schedule` allows. */
import * as z from 'zod';
import type { Authorisation } from '../core/authorisation.js';
import { inOneLine } from '../core/cut.js';
import { timeWithZone } from '../core/dates.js';
import { roomId } from '../core/ids.js';
import type { Job, Jobs } from '../core/jobs.js';
import type { Store } from '../core/store.js';
import type { AnyTool } from '../core/tool.js';
import { defineTool, onlySender, originThere } from './authorise.js';
import { done, doneFrom, failed } from './results.js';

const chat_id = z.string().optional();
/** Models also write it as people do: "#3". */
const task_id = z.preprocess(
  (given) =>
    typeof given === 'string' && /^#?\d{1,9}$/.test(given) ? Number(given.replace('#', '')) : given,
  z.number().min(1).describe('As list_scheduled_tasks shows it.'),
);

/** `chat`: null for a chat in which nobody ever wrote. */
export function scheduleTools({ jobs, chat }: { jobs: Jobs; chat: Store['chat'] }): AnyTool[] {
  return [
    scheduleTask(jobs, chat),
    listTasks(jobs),
    change(jobs, 'pause', 'Pauses a scheduled task until it is resumed.', 'is paused'),
    change(jobs, 'resume', 'Lets a paused task run again.', 'is active again'),
    change(jobs, 'cancel', 'Cancels a scheduled task.', 'is cancelled'),
  ];
}

function scheduleTask(jobs: Jobs, chat: Store['chat']) {
  return defineTool({
    name: 'schedule_task',
    description:
      'Has you do something at a time, once or again and again: a reminder, a question, a summary. At that time you ' +
      'are given the prompt, and what you answer goes to the chat. To change a task, cancel it and set another.',
    hint: 'do something at a time, once or again and again',
    parameters: z.object({
      prompt: z
        .string()
        .describe('What is to be done then, in full: whoever does it sees this, and the conversation.'),
      schedule_type: z.enum(['cron', 'once']),
      schedule_value: z
        .string()
        .describe(
          'cron: a line of 5 fields (minute, hour, day of month, month, day of week), or 6 with seconds before them, like ' +
            '"0 8 * * 1-5". once: a time in ISO 8601, like 2026-01-31T08:00; work out "in 20 minutes" or "tomorrow at 8" ' +
            'from the time of the message.',
        ),
      timezone: z
        .string()
        .optional()
        .describe('Of those who asked, like Europe/Berlin. Left out: that of the dates here.'),
      follow_up: z
        .boolean()
        .optional()
        .describe('true if nobody asked for it: it is your own idea, like asking how something went.'),
      chat_id,
    }),
    risk: 'medium',
    async execute(given, context, { caller, target: { chatId, personaId } }) {
      if ((await chat(chatId)) === null) {
        return failed(`Nothing was scheduled: nobody has ever written in a chat ${JSON.stringify(chatId)}.`);
      }
      if (context.signal.aborted) return failed('Stopped: nothing was scheduled.');
      const inDirectChat = caller.senderId === caller.chatId ? caller.senderId : '';
      const answer = await jobs.add({
        chatId,
        personaId,
        // In a thread of the caller's own chat, the answer goes there.
        room: chatId === caller.chatId ? context.room : roomId(chatId, null),
        prompt: given.prompt,
        kind: given.schedule_type,
        value: given.schedule_value,
        timezone: given.timezone,
        followUp: given.follow_up ?? false,
        senderId: (await onlySender(caller)) || inDirectChat,
        tainted: context.isTainted === true,
        turnId: context.turnId,
      });
      if (!answer.ok) return failed(`Nothing was scheduled. ${answer.reason}`);
      const { n, nextAt, timezone } = answer.job;
      return done(
        `Task ${n} is scheduled (task_id ${n}). Next run: ${timeIn(timezone, nextAt)}. It is now ${timeIn(timezone, context.now)}.`,
      );
    },
  });
}

function listTasks(jobs: Jobs) {
  return defineTool({
    name: 'list_scheduled_tasks',
    description: 'Lists what is scheduled in the chat: number, state, next time, prompt.',
    hint: 'list, pause, resume and cancel what is scheduled',
    parameters: z.object({ chat_id }),
    risk: 'low',
    async execute(_given, context, allowed) {
      const all = await jobs.list(allowed.target.chatId);
      const now = `It is now ${timeIn(context.timezone, context.now)}.`;
      if (all.length === 0) return done(`No scheduled tasks in this chat. ${now}`);
      // The text of a task set after reading untrusted text may be untrusted.
      const origin = all.some(({ tainted }) => tainted) ? 'outside' : originThere(allowed);
      return doneFrom(origin, [...all.map(lineOf), now].join('\n'));
    },
  });
}

function change(jobs: Jobs, verb: 'pause' | 'resume' | 'cancel', description: string, outcome: string) {
  return defineTool({
    name: `${verb}_scheduled_task`,
    description,
    hint: null,
    parameters: z.object({ task_id }),
    risk: 'medium',
    async execute({ task_id: n }, context, { target, caller }) {
      const job = await jobs.find(target.chatId, n);
      if (job === null) return failed(`There is no scheduled task ${n} in this chat.`);
      const refusal = await refusalFor(caller, job);
      if (refusal !== null) return failed(refusal);
      if (context.signal.aborted) return failed('Stopped: nothing was changed.');
      const answer = await jobs[verb](job);
      if (!answer.ok) return failed(answer.reason);
      const { state, nextAt, timezone } = answer.job;
      const next = state === 'active' ? ` Next run: ${timeIn(timezone, nextAt)}.` : '';
      return done(`Task ${n} ${outcome} (task_id ${n}).${next}`);
    },
  });
}

async function refusalFor(caller: Authorisation, { n, senderId }: Job): Promise<string | null> {
  if (senderId !== '' && (await onlySender(caller)) === senderId) return null;
  const permission = await caller.asker.mayChange();
  if (permission === 'yes') return null;
  if (permission === 'unknown') {
    return `Task ${n} was not changed: the platform did not say whether they administer this group.`;
  }
  return `Task ${n} was not changed: only whoever set it, administrators of this group and owners may do that.`;
}

/** `task_id 3, active, next run 2026-01-31 08:00 (Europe/Berlin), cron 0 8 * * *, set by Mira: Say good morning` */
function lineOf({ n, state, nextAt, timezone, kind, value, followUp, senderName, prompt }: Job): string {
  const next = nextAt === null ? [] : [`next run ${timeIn(timezone, nextAt)}`];
  const by = followUp ? ['your own idea'] : senderName === '' ? [] : [`set by ${inOneLine(senderName, 60)}`];
  const often = kind === 'cron' ? [`cron ${value}`] : ['once'];
  return `${[`task_id ${n}`, state, ...next, ...often, ...by].join(', ')}: ${inOneLine(prompt, 300)}`;
}

function timeIn(timezone: string, at: number | null): string {
  return at === null ? 'never' : timeWithZone(at, timezone);
}
