/**
 * The report of VIAP v3 (seed 000): an agent's last answer contains exactly one, and anything else in it is
 * discarded. If it is missing, the agent is asked once more; then the gateway writes one itself. Pure.
 */

import { isAbsolute, resolve } from 'node:path';
import * as z from 'zod';
import type { AgentPlace } from '../../core/authorisation.js';
import { cutWithMarker } from '../../core/cut.js';
import type { ToolCall } from '../../core/model.js';
import { NEEDS_INSTRUCTION } from '../../core/task.js';
import type { Step } from '../../core/transcript.js';
import { type FoundFile, findArtifact } from '../place.js';
import { canonical, parsed, typedIn } from './objects.js';
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

const stepForm = z.union([
  words.transform((what) => ({ what })),
  z
    .object({ what: optionalWords, command: optionalWords, cwd: optionalWords, result: optionalWords })
    .transform(({ what, command, ...rest }) => ({ what: what ?? command ?? '', command, ...rest }))
    .refine(({ what }) => what !== ''),
]);
const artifactForm = z.union([
  words.transform((path) => ({ path, description: '', sha256: null })),
  z.object({
    path: words,
    description: words.catch(''),
    sha256: z
      .string()
      .trim()
      .toLowerCase()
      .regex(/^[0-9a-f]{64}$/)
      .nullable()
      .catch(null),
  }),
]);
const errorForm = z.union([
  words.transform((message) => ({ where: '', message })),
  z.object({ where: words.catch(''), message: words, stderr_tail: tail }),
]);

/** Accepts the usable part of an agent's report. */
const reportForm = z.object({
  success: z.unknown().transform((value) => value === true),
  summary: words,
  steps: listOf(stepForm),
  artifacts: listOf(artifactForm),
  metrics: z
    .object({
      start_time: optionalWords,
      end_time: optionalWords,
      duration_sec: z.number().optional().catch(undefined),
    })
    .catch({}),
  errors: listOf(errorForm),
  logs: z.object({ stdout_tail: tail, stderr_tail: tail }).catch({}),
  next_actions: listOf(words),
});

export interface ReportStep {
  what: string;
  command?: string | undefined;
  cwd?: string | undefined;
  result?: string | undefined;
}
export type ReportArtifact = z.output<typeof artifactForm>;
export interface ReportError {
  where: string;
  message: string;
  stderr_tail?: string | undefined;
}

export interface ViapReport extends z.output<typeof reportForm> {
  viap_version: '3';
  type: 'VIAP_V3_REPORT';
  task_id: string;
  steps: ReportStep[];
  errors: ReportError[];
}

type ReadReport = { ok: true; report: ViapReport } | { ok: false; reason: string };

/** Finds the report in an answer; of several equal ones any will do. `reason` is for the author. */
export function readReport(answer: string, taskId: string): ReadReport {
  const found = typedIn(answer, VIAP_REPORT);
  const last = found.at(-1);
  if (last === undefined) return refused(isBegun(answer) ? CUT_OFF : `There is no ${VIAP_REPORT} in it.`);
  if (isBegun(answer.slice(last.to))) return refused(CUT_OFF);
  if (new Set(found.map(({ value }) => canonical(value))).size > 1) {
    return refused(`There are ${found.length} reports in it, and they differ: it must be exactly one.`);
  }
  const { value } = last;
  const lacks = lacking(value);
  if (lacks.length > 0) return refused(`The report needs ${lacks.join(', ')}.`);
  // Not quoted: text of the answer must not enter our own question, which could then name a host.
  if (value.task_id !== taskId) return refused("The report's task_id is not that of this task.");
  return {
    ok: true,
    report: { viap_version: '3', type: VIAP_REPORT, task_id: taskId, ...reportForm.parse(value) },
  };
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

/** The gateway's own report. `tail`: the end of the output. */
export function failureReport(
  task: ViapTask,
  { where, message, tail }: { where: string; message: string; tail?: string },
): ViapReport {
  return {
    viap_version: '3',
    type: VIAP_REPORT,
    task_id: task.taskId,
    success: false,
    summary: message,
    steps: [],
    artifacts: [],
    metrics: {},
    errors: [{ where, message }],
    logs: tail === undefined || tail === '' ? {} : { stdout_tail: endOf(tail, TAIL_CHARS) },
    next_actions: [],
  };
}

const CUT_OFF = `The ${VIAP_REPORT} in it is no valid JSON, or is cut off.`;

function refused(reason: string): ReadReport {
  return { ok: false, reason };
}

function isBegun(text: string): boolean {
  return /"type"\s*:\s*"VIAP_V3_REPORT"/.test(text);
}

function lacking(value: Record<string, unknown>): string[] {
  const { viap_version: version, task_id, success, summary } = value;
  const needs: [field: string, isThere: boolean][] = [
    ['viap_version "3"', version === '3' || version === 3],
    ['task_id (that of the task)', typeof task_id === 'string' && task_id !== ''],
    ['success (true or false)', typeof success === 'boolean'],
    ['summary (a text)', words.safeParse(summary).success],
  ];
  return needs.flatMap(([field, isThere]) => (isThere ? [] : [field]));
}

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
  const artifacts: ReportArtifact[] = [];
  const errors: ReportError[] = [...report.errors];
  for (const artifact of report.artifacts) {
    const { description, error } = await checked(artifact, facts.place);
    artifacts.push({ ...artifact, description });
    if (error !== null) errors.push({ where: artifact.path, message: error });
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

async function checked(
  { path, description, sha256 }: ReportArtifact,
  place: AgentPlace,
): Promise<{ description: string; error: string | null }> {
  const found = await findArtifact(path, place, sha256 !== null);
  const fault = faultOf(found, sha256);
  if (fault === null) return { description, error: null };
  const { mark, error } = fault;
  return { description: description === '' ? `(${mark})` : `${description} (${mark})`, error };
}

function faultOf(found: FoundFile, sha256: string | null): { mark: string; error: string } | null {
  if (found.kind === 'missing') {
    return { mark: 'missing', error: 'missing: the report names this file, and it is not there' };
  }
  if (found.kind === 'outside') {
    const error = 'outside: this path lies outside the folders of the task, so it was not looked at';
    return { mark: 'outside', error };
  }
  if (sha256 === null || found.sha256 === sha256) return null;
  return { mark: 'changed', error: 'changed: the file is not the one whose sha256 the report gives' };
}

interface RanCommand {
  command: string;
  cwd: string;
  result: string;
}

const MOST_RESULT_CHARS = 1_000;

/** All commands that were started, in order. */
function commandsIn({ steps, place }: RunRecord): RanCommand[] {
  const calls = new Map<string, ToolCall>();
  const results = new Map<string, string>();
  for (const step of steps) {
    if (step.kind === 'answer') for (const call of step.calls) calls.set(call.id, call);
    if (step.kind === 'result') results.set(step.callId, step.content);
  }
  const start = place.cwd ?? place.roots[0] ?? '';
  const begun = new Set(steps.flatMap((step) => (step.kind === 'call' ? [step.callId] : [])));
  return [...begun].flatMap((id) => {
    const call = calls.get(id);
    const given = call?.name === 'shell' ? parsed(call.arguments) : null;
    if (typeof given?.command !== 'string') return [];
    const named = typeof given.cwd === 'string' ? given.cwd : '';
    const cwd = isAbsolute(named) ? resolve(named) : resolve(start, named);
    const result = results.get(id) ?? 'It was cut off: how far it came is not known.';
    return [
      {
        command: given.command,
        cwd,
        result: cutWithMarker(result.trim(), MOST_RESULT_CHARS, 'step-max-chars'),
      },
    ];
  });
}

/** A step that names an executed command gets its true folder; commands without a step are appended. */
function withCommands(steps: readonly ReportStep[], ran: readonly RanCommand[]): ReportStep[] {
  const left = [...ran];
  const named = steps.map((step) => {
    const { command } = step;
    const at = command === undefined ? -1 : left.findIndex((each) => isSame(each.command, command));
    const [found] = at < 0 ? [] : left.splice(at, 1);
    return found ? { ...step, command: found.command, cwd: found.cwd } : step;
  });
  const missing = left.map(({ command, cwd, result }) => ({ what: 'Ran a command', command, cwd, result }));
  return [...named, ...missing];
}

function isSame(a: string, b: string): boolean {
  return a.replaceAll(/\s+/g, ' ').trim() === b.replaceAll(/\s+/g, ' ').trim();
}
