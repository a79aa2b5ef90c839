/**
 * How a task ends: its result, its journal entries and the event for its persona are stored in one transaction. A task that a
 * persona gave is in the journal as the call that gave it; one of a program is an entry of its own, and an event.
 */
import { type Artifacts, deltasIn } from '../core/artifacts.js';
import type { Clock } from '../core/clock.js';
import { cutAt } from '../core/cut.js';
import type { Zone } from '../core/dates.js';
import { channelOf, DEFAULT_PERSONA, type RoomId, roomParts } from '../core/ids.js';
import { callEntryId, type JournalWrite, type Results } from '../core/journal.js';
import type { Log } from '../core/log.js';
import type { Clipboard, Personas, Skills, Workspace } from '../core/persona.js';
import {
  type Agents,
  BOARD_CHAT,
  TASK_COMPLETED,
  type Task,
  type TaskEnd,
  type TaskResult,
  type TaskStore,
  taskEventId,
  type Work,
} from '../core/task.js';
import type { ToolsFor } from '../core/tool.js';
import type { AgentFolders, TaskGiver } from './place.js';
import type { Followers } from './tasks.js';
import type { ViapReport } from './viap/report.js';
import type { ViapTask } from './viap/task.js';
import { outcomeTold } from './viap/told.js';

/** What running tasks needs of the rest of the gateway. */
export interface TaskServices {
  store: TaskStore;
  /** This process. */
  owner: string;
  /** The channels of this process. */
  channels: readonly string[];
  /** Whether it runs programs' tasks, too. */
  takesPrograms: boolean;
  agents: Agents;
  personas: Pick<Personas, 'get'>;
  workspace: Workspace;
  artifacts: Pick<Artifacts, 'write' | 'list'>;
  skills: Pick<Skills, 'list'>;
  clipboard: Pick<Clipboard, 'shown'>;
  work: Work;
  toolsFor: ToolsFor;
  /** Where agents may work, but for the workspace. */
  folders: Omit<AgentFolders, 'workspace'>;
  whoGave(task: Task): Promise<TaskGiver>;
  /** Where personas hear of ends. */
  rooms: { fired(rooms: RoomId[]): Promise<void> };
  followers: Followers;
  /** How much of MEMORY.md a prompt shows. */
  memoryChars: number;
  zone: Zone;
  clock: Clock;
  log: Log;
}

/** What came of a task. */
export type TaskOutcome =
  | { kind: 'answered'; text: string }
  /** `hasFailed`: the gateway wrote it, because the agent did not. */
  | { kind: 'report'; report: ViapReport; hasFailed: boolean }
  | { kind: 'error'; reason: string }
  | { kind: 'interrupted' };

export interface TaskEnding {
  task: Task;
  /** null: a program's task, or one that cannot be read any more. */
  viap: ViapTask | null;
  outcome: TaskOutcome;
  /** Words from outside stood before the model. */
  tainted: boolean;
}

const INTERRUPTED = 'The gateway stopped while this task ran. It is not run again by itself.';
const OF_PROGRAMS = { chatId: BOARD_CHAT, room: BOARD_CHAT, personaId: DEFAULT_PERSONA } as const;
const MOST_SUMMARY_CHARS = 200;

export async function endTask(
  services: TaskServices,
  ending: TaskEnding,
  owner: string,
): Promise<'finished' | 'lost' | 'message'> {
  const { task } = ending;
  const end = await endOf(services, ending);
  const ended = await services.store.finishTask(end, owner);
  if (ended === 'message') return ended;
  services.followers.ended(task.id);
  const room = ended === 'finished' ? task.parent?.room : undefined;
  if (room !== undefined && services.channels.includes(channelOf(room))) await services.rooms.fired([room]);
  services.log.info({ task: task.id, agent: task.agent, status: end.status, ended }, 'task ended');
  return ended;
}

async function endOf(services: TaskServices, ending: TaskEnding): Promise<TaskEnd> {
  const { task, outcome } = ending;
  const { id, parent } = task;
  const now = services.clock.now();
  const result = await resultOf(services, ending);
  const error = errorOf(outcome);
  const status = outcome.kind === 'interrupted' ? 'interrupted' : error === null ? 'completed' : 'error';
  const journalStatus = status === 'interrupted' ? 'interrupted' : 'completed';
  const end = { id, status, result, error, now } as const;
  if (parent === null) return { ...end, entries: endOfProgramsTask(task, end), tell: null };
  if (outcome.kind === 'answered') throw new Error('a delegated task ends with a report');
  const { text, content } = outcomeTold(ending.viap, task.agent, outcome);
  const actionId = callEntryId(parent.turnId, parent.callId);
  // A report that says no is what came of the call, too.
  const results: Results =
    outcome.kind === 'report' ? { output: content.report } : { error: errorOf(outcome) ?? '' };
  // For a persona that was deleted meanwhile, the active one tells.
  const listener = await services.personas.get(roomParts(parent.room).chatId, parent.personaId);
  return {
    ...end,
    entries: [{ kind: 'outcome', id: actionId, status: journalStatus, results, at: now }],
    tell: {
      kind: 'event',
      id: taskEventId(id),
      room: parent.room,
      about: TASK_COMPLETED,
      text,
      content,
      at: now,
      personaId: listener === null ? null : parent.personaId,
      actionId,
      ...((ending.tainted || parent.tainted) && { tainted: true as const }),
    },
  };
}

/** A report that says no is a task that was completed. */
function errorOf(outcome: TaskOutcome): string | null {
  if (outcome.kind === 'interrupted') return INTERRUPTED;
  if (outcome.kind === 'error') return outcome.reason;
  return outcome.kind === 'report' && outcome.hasFailed ? outcome.report.summary : null;
}

async function resultOf(services: TaskServices, { task, outcome }: TaskEnding): Promise<TaskResult | null> {
  if (outcome.kind === 'answered') return withArtifacts(services, task, outcome.text);
  if (outcome.kind !== 'report') return null;
  const { report } = outcome;
  const artifactRefs = await services.artifacts.list(task.id);
  return {
    text: JSON.stringify(report, null, 2),
    summary: summaryOf(report.summary),
    ...(artifactRefs.length > 0 && { artifactRefs }),
  };
}

/** The artifacts of an answer are written, and taken out of its words unless one cannot be written. */
async function withArtifacts(
  { artifacts, log }: TaskServices,
  { id: taskId, request }: Task,
  answer: string,
): Promise<TaskResult> {
  const { text, deltas, leftOut } = deltasIn(answer);
  if (leftOut.length > 0) {
    log.warn({ task: taskId, items: leftOut.length, why: leftOut[0] }, 'left out artifacts of an answer');
  }
  const refs = new Map<string, NonNullable<TaskResult['artifactRefs']>[number]>();
  let isWhole = true;
  // A task that is over is written to the end, even at a shutdown.
  const { signal } = new AbortController();
  for (const { id, title, type, content, ref } of deltas) {
    if (content === undefined) {
      const named = { ...(title !== undefined && { title }), ...(type !== undefined && { type }) };
      const handedIn = request.artifacts.find((each) => each.id === id);
      // One that only names an id is what the task brought along, or what it has made, which follows.
      if (ref !== undefined || handedIn !== undefined) {
        refs.set(id, { ...handedIn, id, ...named, ...(ref !== undefined && { ref }) });
      }
      continue;
    }
    const artifact = { taskId, id, title: title ?? null, type: type ?? null, content };
    const written = await artifacts.write(artifact, signal);
    if (written.ok) continue;
    log.warn({ task: taskId, artifact: id, why: written.reason }, 'could not write an artifact of an answer');
    isWhole = false;
  }
  for (const ref of await artifacts.list(taskId)) refs.set(ref.id, ref);
  const words = isWhole ? text : answer;
  return {
    text: words,
    summary: summaryOf(words),
    ...(refs.size > 0 && { artifactRefs: [...refs.values()] }),
  };
}

/** The first sentence, or the first line where that is shorter. */
export function summaryOf(text: string): string {
  const line = text
    .slice(0, MOST_SUMMARY_CHARS * 20)
    .split('\n')
    .map((each) => each.replace(/^[\s#>*-]+/, '').trim())
    .find((each) => each !== '' && !/^(`{3,}|~{3,})/.test(each));
  if (line === undefined) return '';
  const sentence = /^.*?[.!?…](?=\s|$)/u.exec(line)?.[0] ?? line;
  return sentence.length <= MOST_SUMMARY_CHARS ? sentence : `${cutAt(sentence, MOST_SUMMARY_CHARS - 1)}…`;
}

/** To be stored before anything else is done for it. */
export function beginningOfProgramsTask({ id, agent, goal }: Task, now: number): JournalWrite {
  return {
    kind: 'intent',
    ...OF_PROGRAMS,
    turnId: id,
    entry: {
      id: entryIdOf(id),
      type: 'MattTurn',
      agent,
      parent_event_id: null,
      timestamp_intent: new Date(now).toISOString(),
      status: 'pending',
      reasoning: '',
      action: { tool: 'task', goal },
      results: null,
    },
  };
}

function endOfProgramsTask(
  { id, agent }: Task,
  { status, result, error, now }: Pick<TaskEnd, 'status' | 'result' | 'error' | 'now'>,
): JournalWrite[] {
  const results: Results = error === null ? { output: result?.text ?? '' } : { error };
  const isInterrupted = status === 'interrupted';
  return [
    {
      kind: 'outcome',
      id: entryIdOf(id),
      status: isInterrupted ? 'interrupted' : 'completed',
      results,
      at: now,
    },
    {
      kind: 'event',
      ...OF_PROGRAMS,
      turnId: id,
      entry: {
        id: `evt-task-${id}`,
        type: 'GUPPIEvent',
        agent,
        timestamp_event: new Date(now).toISOString(),
        event_type: 'TaskCompleted',
        source: 'GUPPI',
        content: {
          status: status === 'completed' ? 'success' : status,
          task_id: id,
          ...(error === null ? { summary: result?.summary ?? '' } : { error }),
        },
        action_id: entryIdOf(id),
      },
    },
  ];
}

function entryIdOf(taskId: string): string {
  return `turn-${taskId}`;
}
