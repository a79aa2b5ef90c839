/** Messages about a task's end: to the persona that delegated it, and to the journal. Pure. */

import { redactor } from '../../core/command-env.js';
import { cutAt, cutWithMarker } from '../../core/cut.js';
import { withTexts } from './objects.js';
import type { ReportStep, ViapReport } from './report.js';
import type { ViapTask } from './task.js';

export type OutcomeEnd =
  | { kind: 'report'; report: ViapReport }
  | { kind: 'interrupted' }
  /** `reason`: a sentence. */
  | { kind: 'error'; reason: string };

const MOST_CHARS = 6_000;
const MOST_TITLE_CHARS = 120;
const MOST_SUMMARY_CHARS = 800;
const MOST_ITEM_CHARS = 400;
const MOST_ITEMS = 15;

/** The first paragraph of the text can be shown to people unchanged. `task`: null if it is no longer readable. */
export function outcomeTold(task: ViapTask | null, agent: string, end: OutcomeEnd) {
  const clean = redactor(task?.env ?? {});
  const name = task ? `The task “${oneLine(task.title, MOST_TITLE_CHARS)}”` : `A task for ${agent}`;
  const body = cutWithMarker(clean(linesOf(name, end)), MOST_CHARS, 'task-max-chars');
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
  if (end.kind === 'error') return `${name} failed: ${oneLine(end.reason, MOST_SUMMARY_CHARS)}`;
  const { success, summary, steps, artifacts, errors, next_actions: next } = end.report;
  const head = `${name} ${success ? 'is done' : 'failed'}: ${oneLine(summary, MOST_SUMMARY_CHARS)}`;
  const done = section('What was done', steps.map(stepLine));
  const made = section(
    'Artifacts',
    artifacts.map(({ path, description: about }) => (about === '' ? path : `${path}: ${about}`)),
  );
  const wrong = section(
    success ? 'What did not go as it should' : 'What went wrong',
    errors.map(({ where, message }) => (where === '' ? message : `${where}: ${message}`)),
  );
  const parts = success
    ? [head, done, made, wrong, section('What is next', next)]
    : [head, section('What can be done about it', next), wrong, done, made];
  return parts.filter((part) => part !== '').join('\n\n');
}

function section(title: string, items: readonly string[]): string {
  if (items.length === 0) return '';
  const lines = items.slice(0, MOST_ITEMS).map((item) => `- ${oneLine(item, MOST_ITEM_CHARS)}`);
  const more = items.length > MOST_ITEMS ? [`- … and ${items.length - MOST_ITEMS} more`] : [];
  return [`${title}:`, ...lines, ...more].join('\n');
}

function stepLine({ what, command, result }: ReportStep): string {
  const ran = command === undefined || what === command ? '' : ` (${command})`;
  return `${what}${ran}${result === undefined ? '' : `: ${result}`}`;
}

/** Keeps a report's text from beginning a line or ending the paragraph. */
function oneLine(text: string, most: number): string {
  const line = text.replaceAll(/[\s\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ').trim();
  return line.length <= most ? line : `${cutAt(line, most)} …`;
}
