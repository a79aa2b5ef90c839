/**
 * The report of VIAP v3 (seed 000): an agent's last answer holds exactly one, and whatever else stands in it is discarded.
 * Where there is none, the agent is asked once more; then the gateway writes one itself. Pure.
 */

import { isAbsolute, resolve } from 'node:path';
import { cutWithMarker } from '../../core/cut.js';
import type { ToolCall } from '../../core/model.js';
import { NEEDS_INSTRUCTION } from '../../core/task.js';
import type { AgentPlace } from '../../core/tool.js';
import type { Step } from '../../core/transcript.js';
import { canonical, isObject, parsed, typedIn } from './objects.js';
import type { ViapTask } from './task.js';

export interface ViapReport {
  viap_version: '3';
  type: 'VIAP_V3_REPORT';
  task_id: string;
  success: boolean;
  summary: string;
  steps: ReportStep[];
  artifacts: ReportArtifact[];
  metrics: { start_time?: string; end_time?: string; duration_sec?: number };
  errors: ReportError[];
  logs: { stdout_tail?: string; stderr_tail?: string };
  next_actions: string[];
}

export interface ReportStep {
  what: string;
  command?: string;
  cwd?: string;
  result?: string;
}

export interface ReportArtifact {
  path: string;
  description: string;
  sha256: string | null;
}

export interface ReportError {
  where: string;
  message: string;
  stderr_tail?: string;
}

type ReadReport = { ok: true; report: ViapReport } | { ok: false; reason: string };

export const VIAP_REPORT = 'VIAP_V3_REPORT';

/** Of one text in a report, and of one list. */
const MOST_CHARS = 8_000;
const MOST_ITEMS = 300;
const TAIL_CHARS = 2_000;

/**
 * The whole text, a fence, or an object in prose: wherever it stands, it is found as the object that it is, and of several
 * that say the same any will do. `reason` is for whoever wrote the answer.
 */
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
  // Not quoted: what an answer holds is no word of whoever asks again, who would name a host with it.
  if (value.task_id !== taskId) return refused("The report's task_id is not that of this task.");
  return { ok: true, report: reportOf(value, taskId) };
}

/** What the agent is asked once, when its last answer held no report. */
export function repairRequest(reason: string, taskId: string): string {
  return (
    `Your last answer cannot be used as the report: ${reason} Do nothing further, and answer once more with exactly one ` +
    `JSON object and nothing else: {"viap_version": "3", "type": "${VIAP_REPORT}", "task_id": ${JSON.stringify(taskId)}, ` +
    '"success": true or false, "summary": "one line"}, with steps, artifacts, errors and next_actions as far as they hold. ' +
    'It says what was really done.'
  );
}

/** What the gateway reports itself. `tail`: the end of what there is to look at. */
export function failureReport(
  task: ViapTask,
  { where, message, tail }: { where: string; message: string; tail?: string },
): ViapReport {
  return {
    ...{ viap_version: '3', type: VIAP_REPORT, task_id: task.taskId },
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

/** Somebody has begun to write one. */
function isBegun(text: string): boolean {
  return /"type"\s*:\s*"VIAP_V3_REPORT"/.test(text);
}

function lacking(value: Record<string, unknown>): string[] {
  const { viap_version: version, task_id, success, summary } = value;
  const needs: [field: string, isThere: boolean][] = [
    ['viap_version "3"', version === '3' || version === 3],
    ['task_id (that of the task)', typeof task_id === 'string' && task_id !== ''],
    ['success (true or false)', typeof success === 'boolean'],
    ['summary (a text)', textOf(summary) !== null],
  ];
  return needs.flatMap(([field, isThere]) => (isThere ? [] : [field]));
}

function reportOf(value: Record<string, unknown>, taskId: string): ViapReport {
  const { metrics, logs } = value;
  return {
    ...{ viap_version: '3', type: VIAP_REPORT, task_id: taskId },
    success: value.success === true,
    summary: textOf(value.summary) ?? '',
    steps: listOf(value.steps, stepOf),
    artifacts: listOf(value.artifacts, artifactOf),
    metrics: isObject(metrics) ? metricsOf(metrics) : {},
    errors: listOf(value.errors, errorOf),
    logs: isObject(logs) ? texts(logs, ['stdout_tail', 'stderr_tail'], tailOf) : {},
    next_actions: listOf(value.next_actions, textOf),
  };
}

function stepOf(given: unknown): ReportStep | null {
  if (!isObject(given)) return asWords(given, (what) => ({ what }));
  const { command, cwd, result } = texts(given, ['command', 'cwd', 'result'], textOf);
  const what = textOf(given.what) ?? command;
  if (what === undefined) return null;
  return {
    what,
    ...(command !== undefined && { command }),
    ...(cwd !== undefined && { cwd }),
    ...(result !== undefined && { result }),
  };
}

function artifactOf(given: unknown): ReportArtifact | null {
  if (!isObject(given)) return asWords(given, (path) => ({ path, description: '', sha256: null }));
  const path = textOf(given.path);
  if (path === null) return null;
  const sum = typeof given.sha256 === 'string' ? given.sha256.trim().toLowerCase() : '';
  const sha256 = /^[0-9a-f]{64}$/.test(sum) ? sum : null;
  return { path, description: textOf(given.description) ?? '', sha256 };
}

function errorOf(given: unknown): ReportError | null {
  if (!isObject(given)) return asWords(given, (message) => ({ where: '', message }));
  const message = textOf(given.message);
  if (message === null) return null;
  const tail = tailOf(given.stderr_tail);
  return { where: textOf(given.where) ?? '', message, ...(tail !== null && { stderr_tail: tail }) };
}

function metricsOf(metrics: Record<string, unknown>): ViapReport['metrics'] {
  const { duration_sec: seconds } = metrics;
  return {
    ...texts(metrics, ['start_time', 'end_time'], textOf),
    ...(typeof seconds === 'number' && { duration_sec: seconds }),
  };
}

function asWords<Item>(given: unknown, made: (words: string) => Item): Item | null {
  const words = textOf(given);
  return words === null ? null : made(words);
}

function texts<Name extends string>(
  given: Record<string, unknown>,
  names: readonly Name[],
  read: (given: unknown) => string | null,
): { [name in Name]?: string } {
  const found: { [name in Name]?: string } = {};
  for (const name of names) {
    const text = read(given[name]);
    if (text !== null) found[name] = text;
  }
  return found;
}

function listOf<Item>(given: unknown, read: (item: unknown) => Item | null): Item[] {
  if (!Array.isArray(given)) return [];
  return given.slice(0, MOST_ITEMS).flatMap((item) => read(item) ?? []);
}

function textOf(given: unknown): string | null {
  if (typeof given !== 'string' || given.trim() === '') return null;
  return cutWithMarker(given, MOST_CHARS, 'report-max-chars');
}

function tailOf(given: unknown): string | null {
  return typeof given === 'string' && given !== '' ? endOf(given, TAIL_CHARS) : null;
}

/** The last so many characters, without half a character before them. */
function endOf(text: string, most: number): string {
  return text.length <= most ? text : text.slice(-most).replace(/^[\udc00-\udfff]/, '');
}

// What the gateway knows itself is put into a report: every command that really ran, with its folder, the true times,
// whether the artifacts are there, and whether a call was refused that leaves the machine.

export type FoundFile =
  /** `sha256`: null where none was wanted, or none can be made (of a folder, or of a file that is too long). */
  { kind: 'there'; sha256: string | null } | { kind: 'missing' } | { kind: 'outside' };

/** `isSummed`: its sum is wanted. */
export type FindFile = (path: string, place: AgentPlace, isSummed: boolean) => Promise<FoundFile>;

export interface Facts {
  task: ViapTask;
  steps: readonly Step[];
  place: AgentPlace;
  startedAt: number;
  endedAt: number;
  wasExternalRefused: boolean;
  findFile: FindFile;
}

export async function completeReport(report: ViapReport, facts: Facts): Promise<ViapReport> {
  const { startedAt, endedAt, wasExternalRefused } = facts;
  const artifacts: ReportArtifact[] = [];
  const errors: ReportError[] = [...report.errors];
  for (const artifact of report.artifacts) {
    const { description, error } = await checked(artifact, facts);
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
  { place, findFile }: Facts,
): Promise<{ description: string; error: string | null }> {
  const found = await findFile(path, place, sha256 !== null);
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

/** Every command that was begun, in order. */
function commandsIn({ steps, place }: Pick<Facts, 'steps' | 'place'>): RanCommand[] {
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

/** A step that names a command which ran gets its true folder; what no step names comes behind them. */
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
