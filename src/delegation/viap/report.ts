/**
 * The report of VIAP v3 (seed 000): an agent's last answer contains exactly one. If it is missing, the agent is asked
 * once more; then the gateway writes one. At the end, the persona that delegated the task is told.
 */
import { resolve } from 'node:path';
import * as z from 'zod';
import type { AgentPlace } from '../../core/authorisation.js';
import { redactor } from '../../core/command-env.js';
import { cutWithMarker, inOneLine } from '../../core/cut.js';
import type { ToolCall } from '../../core/model.js';
import { NEEDS_INSTRUCTION } from '../../core/task.js';
import type { Step } from '../../core/transcript.js';
import { findArtifact } from '../place.js';
import { canonical, isBegun, lacking, parsed, type Requirement, typedIn, withTexts } from './objects.js';
import type { ViapTask } from './task.js';

/** Limits of one text in a report, and of one list. */
const MOST_CHARS = 8_000;
const MOST_ITEMS = 300;
const TAIL_CHARS = 2_000;

export const VIAP_REPORT = 'VIAP_V3_REPORT';

const words = z
  .string()
  .refine((text) => text.trim() !== '')
  .transform((text) => cutWithMarker(text, MOST_CHARS, 'report-max-chars'));
const optionalWords = words.optional().catch(undefined);
const tail = z
  .string()
  .min(1)
  .transform((text) => endOf(text, TAIL_CHARS))
  .optional()
  .catch(undefined);

/** Drops items of the wrong form. */
function listOf<Item extends z.ZodType>(item: Item) {
  return z
    .array(z.unknown())
    .catch([])
    .transform((all) =>
      all.slice(0, MOST_ITEMS).flatMap((each): z.output<Item>[] => {
        const read = item.safeParse(each);
        return read.success ? [read.data] : [];
      }),
    );
}

/** A text alone stands for the field. */
function orText<Form extends z.ZodType>(field: string, form: Form) {
  return z.preprocess((given) => (typeof given === 'string' ? { [field]: given } : given), form);
}

const stepForm = z
  .object({ what: optionalWords, command: optionalWords, cwd: optionalWords, result: optionalWords })
  .transform(({ what, command, ...rest }) => ({ what: what ?? command ?? '', command, ...rest }))
  .refine(({ what }) => what !== '');
const artifactForm = z.object({
  path: words,
  description: words.catch(''),
  sha256: z
    .string()
    .trim()
    .toLowerCase()
    .regex(/^[0-9a-f]{64}$/)
    .nullable()
    .catch(null),
});
const errorForm = z.object({ where: words.catch(''), message: words, stderr_tail: tail });

/** Accepts the usable part of an agent's report. */
const reportForm = z.object({
  success: z.boolean(),
  summary: words,
  steps: listOf(orText('what', stepForm)),
  artifacts: listOf(orText('path', artifactForm)),
  metrics: z
    .object({
      start_time: optionalWords,
      end_time: optionalWords,
      duration_sec: z.number().optional().catch(undefined),
    })
    .catch({}),
  errors: listOf(orText('message', errorForm)),
  logs: z.object({ stdout_tail: tail, stderr_tail: tail }).catch({}),
  next_actions: listOf(words),
});

type ReportStep = z.output<typeof stepForm>;

export interface ViapReport extends z.output<typeof reportForm> {
  viap_version: '3';
  type: typeof VIAP_REPORT;
  task_id: string;
}

/** Finds the report in an answer; of several equal ones any will do. `reason` is for the author. */
export function readReport(
  answer: string,
  taskId: string,
): { ok: true; report: ViapReport } | { ok: false; reason: string } {
  const refused = (reason: string) => ({ ok: false as const, reason });
  const found = typedIn(answer, VIAP_REPORT);
  const last = found.at(-1);
  if (isBegun(last === undefined ? answer : answer.slice(last.to), VIAP_REPORT)) return refused(CUT_OFF);
  if (last === undefined) return refused(`There is no ${VIAP_REPORT} in it.`);
  if (new Set(found.map(({ value }) => canonical(value))).size > 1) {
    return refused(`There are ${found.length} reports in it, and they differ: it must be exactly one.`);
  }
  const { value } = last;
  const lacks = lacking(value, REQUIRED);
  if (lacks.length > 0) return refused(`The report needs ${lacks.join(', ')}.`);
  // Not quoted: text of the answer must not enter our own question, which could then name a host.
  if (value.task_id !== taskId) return refused("The report's task_id is not that of this task.");
  return { ok: true, report: { ...headOf(taskId), ...reportForm.parse(value) } };
}

function headOf(taskId: string) {
  return { viap_version: '3', type: VIAP_REPORT, task_id: taskId } as const;
}

/** Asked once, if the agent's last answer had no report. */
export function repairRequest(reason: string, taskId: string): string {
  return (
    `Your last answer cannot be used as the report: ${reason} Do nothing further, and answer once more with exactly one ` +
    `JSON object and nothing else: {"viap_version": "3", "type": "${VIAP_REPORT}", "task_id": ${JSON.stringify(taskId)}, ` +
    '"success": true or false, "summary": "one line"}, with steps, artifacts, errors and next_actions as far as they hold. ' +
    'It says what was really done.'
  );
}

/** The gateway's own report. `output`: the end of it goes into the report. */
export function failureReport(taskId: string, where: string, message: string, output = ''): ViapReport {
  return {
    ...headOf(taskId),
    success: false,
    summary: message,
    steps: [],
    artifacts: [],
    metrics: {},
    errors: [{ where, message }],
    logs: output === '' ? {} : { stdout_tail: endOf(output, TAIL_CHARS) },
    next_actions: [],
  };
}

const CUT_OFF = `The ${VIAP_REPORT} in it is no valid JSON, or is cut off.`;

const REQUIRED: readonly Requirement[] = [
  ['viap_version', z.literal(['3', 3]), 'viap_version "3"'],
  ['task_id', z.string().min(1), 'task_id (that of the task)'],
  ['success', z.boolean(), 'success (true or false)'],
  ['summary', words, 'summary (a text)'],
];

/** The last `most` characters, without a leading half of a surrogate pair. */
function endOf(text: string, most: number): string {
  return text.length <= most ? text : text.slice(-most).replace(/^[\udc00-\udfff]/, '');
}

interface RunRecord {
  steps: readonly Step[];
  place: AgentPlace;
  startedAt: number;
  endedAt: number;
  wasExternalRefused: boolean;
}

/** Adds the gateway's own record to a report: commands, folders, times, artifacts, refused calls. */
export async function completeReport(report: ViapReport, facts: RunRecord): Promise<ViapReport> {
  const { startedAt, endedAt, wasExternalRefused } = facts;
  const artifacts: ViapReport['artifacts'] = [];
  const errors = [...report.errors];
  for (const artifact of report.artifacts) {
    const { path, description, sha256 } = artifact;
    const found = await findArtifact(path, facts.place, sha256 !== null);
    const isChanged = found.kind === 'there' && sha256 !== null && found.sha256 !== sha256;
    const mark = isChanged ? 'changed' : found.kind;
    if (mark === 'there') artifacts.push(artifact);
    else {
      artifacts.push({ ...artifact, description: `${description} (${mark})`.trimStart() });
      errors.push({ where: path, message: WRONG_ARTIFACT[mark] });
    }
  }
  if (wasExternalRefused && !errors.some(({ message }) => message.includes(NEEDS_INSTRUCTION))) {
    errors.unshift({ where: 'gateway', message: NEEDS_INSTRUCTION });
  }
  return {
    ...report,
    success: report.success && !wasExternalRefused,
    steps: withCommands(report.steps, commandsIn(facts)),
    artifacts,
    errors,
    metrics: {
      start_time: new Date(startedAt).toISOString(),
      end_time: new Date(endedAt).toISOString(),
      duration_sec: Math.max(0, Math.round((endedAt - startedAt) / 1000)),
    },
  };
}

const WRONG_ARTIFACT = {
  missing: 'missing: the report names this file, and it is not there',
  outside: 'outside: this path lies outside the folders of the task, so it was not looked at',
  changed: 'changed: the file is not the one whose sha256 the report gives',
};

const MOST_RESULT_CHARS = 1_000;

/** All commands that were started, in order. */
function commandsIn({ steps, place }: RunRecord) {
  const calls = new Map<string, ToolCall>();
  const results = new Map<string, string>();
  const begun = new Set<string>();
  for (const step of steps) {
    if (step.kind === 'answer') for (const call of step.calls) calls.set(call.id, call);
    if (step.kind === 'call') begun.add(step.callId);
    if (step.kind === 'result') results.set(step.callId, step.content);
  }
  const start = place.cwd ?? place.roots[0] ?? '';
  return [...begun].flatMap((id) => {
    const call = calls.get(id);
    const given = call?.name === 'shell' ? parsed(call.arguments) : null;
    if (typeof given?.command !== 'string') return [];
    const cwd = resolve(start, typeof given.cwd === 'string' ? given.cwd : '');
    const result = results.get(id) ?? 'It was cut off: how far it came is not known.';
    const shown = cutWithMarker(result.trim(), MOST_RESULT_CHARS, 'step-max-chars');
    return [{ what: 'Ran a command', command: given.command, cwd, result: shown }];
  });
}

/** A step that names an executed command gets its true folder; commands without a step are appended. */
function withCommands(steps: readonly ReportStep[], ran: ReturnType<typeof commandsIn>): ReportStep[] {
  const left = [...ran];
  const named = steps.map((step) => {
    const at = left.findIndex(({ command }) => inOneLine(command) === inOneLine(step.command ?? ''));
    const [found] = at < 0 ? [] : left.splice(at, 1);
    return found ? { ...step, command: found.command, cwd: found.cwd } : step;
  });
  return [...named, ...left];
}

export type TaskOutcome =
  | { kind: 'answered'; text: string }
  /** `hasFailed`: the gateway wrote the report, because the agent did not. */
  | { kind: 'report'; report: ViapReport; hasFailed?: true }
  /** `reason`: a sentence. */
  | { kind: 'error'; reason: string }
  | { kind: 'interrupted' };

type OutcomeEnd = Exclude<TaskOutcome, { kind: 'answered' }>;

const MOST_TOLD_CHARS = 6_000;
const MOST_TITLE_CHARS = 120;
const MOST_SUMMARY_CHARS = 800;
const MOST_ITEM_CHARS = 400;
const MOST_TOLD_ITEMS = 15;

/** The first paragraph of the text can be shown to people unchanged. `task`: null if it is no longer readable. */
export function outcomeTold(task: ViapTask | null, agent: string, end: OutcomeEnd) {
  const clean = redactor(task?.env ?? {});
  const name = task ? `The task “${inOneLine(task.title, MOST_TITLE_CHARS, ' …')}”` : `A task for ${agent}`;
  const body = cutWithMarker(clean(linesOf(name, end)), MOST_TOLD_CHARS, 'task-max-chars');
  return {
    text: `${body}\n\n${isSuccess(end) ? TELL : TELL_FAILURE}`,
    content: {
      status: end.kind === 'interrupted' ? 'interrupted' : isSuccess(end) ? 'success' : 'error',
      ...(task && { task_id: task.taskId }),
      ...(end.kind === 'report' && { report: withTexts(end.report, clean) }),
      ...(end.kind === 'error' && { error: clean(end.reason) }),
    },
  };
}

const MANNER =
  'in your own words and in their language, as prose: no JSON, no ids, nothing about agents, runs or waiting.';
const TELL = `Now tell the person who wanted this what came of it: the conclusion, what was done, the artifacts with their paths, what is next; ${MANNER}`;
const TELL_FAILURE = `Now tell the person who wanted this that it did not work out: first what can be done about it, then what went wrong and what was done all the same; ${MANNER}`;

function isSuccess(end: OutcomeEnd): boolean {
  return end.kind === 'report' && end.report.success;
}

function linesOf(name: string, end: OutcomeEnd): string {
  if (end.kind === 'interrupted') {
    return [
      `${name} was interrupted: the gateway stopped while it was worked on. It is not begun again by itself.`,
      section('What can be done about it', [
        'Look at what it has done already, for that stays done.',
        'Give it again, as a new task, if the person still wants it.',
      ]),
    ].join('\n\n');
  }
  if (end.kind === 'error') return `${name} failed: ${inOneLine(end.reason, MOST_SUMMARY_CHARS, ' …')}`;
  const { success, summary, steps, artifacts, errors, next_actions: next } = end.report;
  const head = `${name} ${success ? 'is done' : 'failed'}: ${inOneLine(summary, MOST_SUMMARY_CHARS, ' …')}`;
  const done = section('What was done', steps.map(stepLine));
  const made = section(
    'Artifacts',
    artifacts.map(({ path, description }) => titled(path, description)),
  );
  const wrong = section(
    success ? 'What did not go as it should' : 'What went wrong',
    errors.map(({ where, message }) => titled(where, message)),
  );
  const parts = success
    ? [head, done, made, wrong, section('What is next', next)]
    : [head, section('What can be done about it', next), wrong, done, made];
  return parts.filter((part) => part !== '').join('\n\n');
}

function section(title: string, items: readonly string[]): string {
  if (items.length === 0) return '';
  const lines = items.slice(0, MOST_TOLD_ITEMS).map((item) => `- ${inOneLine(item, MOST_ITEM_CHARS, ' …')}`);
  const more = items.length > MOST_TOLD_ITEMS ? [`- … and ${items.length - MOST_TOLD_ITEMS} more`] : [];
  return [`${title}:`, ...lines, ...more].join('\n');
}

function titled(...parts: string[]): string {
  return parts.filter((part) => part !== '').join(': ');
}

function stepLine({ what, command, result = '' }: ReportStep): string {
  return titled(command === undefined || what === command ? what : `${what} (${command})`, result);
}
