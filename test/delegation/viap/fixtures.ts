/** The examples of seed 000, as they stand there. */
import { readFileSync } from 'node:fs';
import { readViapTask, type ViapTask } from '../../../src/delegation/viap/task.js';

const textOf = (name: string) =>
  readFileSync(new URL(`../../fixtures/viap/${name}`, import.meta.url), 'utf8');

export const TASK_TEXT = textOf('task.json');
export const REPORT_TEXT = textOf('report.json');
export const TASK_ID = '2026-02-10T19:34:00-0800_evolver_workspace_001';

export const LEAST_TASK = {
  ...{ viap_version: '3', type: 'VIAP_V3_TASK', task_id: 't:1/2', title: 'Tidy up', goal: 'All is tidy' },
  instructions: ['Look', 'Tidy'],
};
export const LEAST_REPORT = {
  ...{ viap_version: '3', type: 'VIAP_V3_REPORT', task_id: 't:1/2', success: true, summary: 'All is tidy' },
};

export function taskOf(more: object = {}): ViapTask {
  const read = readViapTask({ ...LEAST_TASK, ...more });
  if (!read.ok) throw new Error(read.reason);
  return read.task;
}
