/**
 * What the gateway knows itself is put into a report: every command that really ran, with its folder, the true times,
 * whether the artifacts are there, and whether a call was refused that leaves the machine.
 */
import { isAbsolute, resolve } from 'node:path';
import { cutWithMarker } from '../../core/cut.js';
import type { ToolCall } from '../../core/model.js';
import type { AgentPlace } from '../../core/tool.js';
import type { Step } from '../../core/transcript.js';
import { NEEDS_INSTRUCTION } from '../../core/work.js';
import { parsed } from './objects.js';
import type { ReportArtifact, ReportError, ReportStep, ViapReport } from './report.js';
import type { ViapTask } from './task.js';

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

interface Command {
  command: string;
  cwd: string;
  result: string;
}

const MOST_RESULT_CHARS = 1_000;

/** Every command that was begun, in order. */
function commandsIn({ steps, place }: Pick<Facts, 'steps' | 'place'>): Command[] {
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
function withCommands(steps: readonly ReportStep[], ran: readonly Command[]): ReportStep[] {
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
