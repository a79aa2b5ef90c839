/** Ends a task: its result, journal entries and the event for its persona are stored in one transaction. */
import { type ArtifactRef, type Artifacts, deltasIn } from '../core/artifacts.js';
import type { Clock } from '../core/clock.js';
import { cutAt } from '../core/cut.js';
import type { Zone } from '../core/dates.js';
import { callEntryId, channelOf, DEFAULT_PERSONA, type RoomId, roomParts } from '../core/ids.js';
import type { JournalWrite, Results } from '../core/journal.js';
import type { Log, Metrics } from '../core/log.js';
import type { Personas } from '../core/persona.js';
import type { Skills } from '../core/skills.js';
import type { WatchStore } from '../core/store.js';
import {
  type Agents,
  BOARD_CHAT,
  TASK_COMPLETED,
  type Task,
  type TaskEnd,
  type TaskFinish,
  type TaskResult,
  type TaskStore,
  taskEventId,
  type Work,
} from '../core/task.js';
import type { ToolsFor } from '../core/tool.js';
import type { TracedStep, Tracing } from '../core/tracing.js';
import type { Clipboard, Workspace } from '../core/workspace.js';
import type { AgentFolders, TaskGiver } from './place.js';
import type { Followers } from './tasks.js';
import { outcomeTold, type TaskOutcome } from './viap/report.js';
import type { ViapTask } from './viap/task.js';

export interface TaskServices {
  store: TaskStore & WatchStore;
  owner: string;
  /** Of a claim. Absent: a minute. */
  leaseMs?: number;
  /** The time by which claims run out, where several gateways have to agree on it. Absent: the clock's. */
  storeNow?(): number;
  channels: readonly string[];
  /** Whether this process also runs programs' tasks. */
  takesPrograms: boolean;
  agents: Agents;
  personas: Personas;
  workspace: Workspace;
  artifacts: Artifacts;
  skills: Skills;
  clipboard: Clipboard;
  work: Work;
  toolsFor: ToolsFor;
  /** Where agents may work, apart from the workspace. */
  folders: Omit<AgentFolders, 'workspace'>;
  whoGave(task: Task): Promise<TaskGiver>;
  /** Rooms in which a persona is to hear of an end. */
  rooms: { fired(rooms: RoomId[]): Promise<void> };
  followers: Followers;
  /** Characters of MEMORY.md in a prompt. */
  memoryChars: number;
  zone: Zone;
  clock: Clock;
  metrics: Metrics;
  tracing?: Tracing | undefined;
  log: Log;
}

interface TaskEnding {
  task: Task;
  /** null: a program's task, or one that is no longer readable. */
  viap: ViapTask | null;
  outcome: TaskOutcome;
  /** The model has read words from outside. */
  tainted: boolean;
}

const INTERRUPTED = 'The gateway stopped while this task ran. It is not run again by itself.';
const OF_PROGRAMS = { chatId: BOARD_CHAT, room: BOARD_CHAT, personaId: DEFAULT_PERSONA } as const;
const MOST_SUMMARY_CHARS = 200;

/** `owner`: of the task's lease. */
export async function endTask(
  services: TaskServices,
  ending: TaskEnding,
  owner = services.owner,
): Promise<'finished' | 'lost' | 'message'> {
  const { task } = ending;
  const end = await endOf(services, ending);
  const ended = await services.store.finishTask(end, owner);
  if (ended === 'message') return ended;
  services.followers.saw(task.id);
  if (ended === 'finished') services.tracing?.tell(traced(task, end));
  const room = ended === 'finished' ? task.parent?.room : undefined;
  if (room !== undefined && services.channels.includes(channelOf(room))) await services.rooms.fired([room]);
  services.log.info({ task: task.id, agent: task.agent, status: end.status, ended }, 'task ended');
  return ended;
}

function traced({ id, agent, parent, startedAt, createdAt }: Task, { status, now }: TaskEnd): TracedStep {
  return {
    kind: 'turn',
    turnId: id,
    agent,
    outcome: status,
    error: status === 'completed' ? undefined : status,
    answers: [],
    givenBy: parent?.turnId,
    from: startedAt ?? createdAt,
    until: now,
  };
}

async function endOf(services: TaskServices, { task, viap, outcome, tainted }: TaskEnding): Promise<TaskEnd> {
  const { id, parent } = task;
  const now = services.clock.now();
  const result = await resultOf(services, task, outcome);
  const error = errorOf(outcome);
  // A task whose agent reports a failure is completed all the same.
  const status = outcome.kind === 'interrupted' ? 'interrupted' : error === null ? 'completed' : 'error';
  const end = { id, status, result, error, now } as const;
  if (parent === null) return { ...end, entries: endOfProgramsTask(task, end), tell: null };
  if (outcome.kind === 'answered') throw new Error('a delegated task ends with a report');
  const { text, content } = outcomeTold(viap, task.agent, outcome);
  const actionId = callEntryId(parent.turnId, parent.callId);
  // A report of failure is also the call's result.
  const results: Results = outcome.kind === 'report' ? { output: content.report } : { error: error ?? '' };
  // If the persona was deleted meanwhile, the active one tells.
  const listener = await services.personas.get(roomParts(parent.room).chatId, parent.personaId);
  return {
    ...end,
    entries: [outcomeEntry(actionId, end, results)],
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
      ...((tainted || parent.tainted) && { tainted: true as const }),
    },
  };
}

function outcomeEntry(id: string, { status, now: at }: TaskFinish, results: Results): JournalWrite {
  return { kind: 'outcome', id, status: status === 'interrupted' ? status : 'completed', results, at };
}

function errorOf(outcome: TaskOutcome): string | null {
  if (outcome.kind === 'interrupted') return INTERRUPTED;
  if (outcome.kind === 'error') return outcome.reason;
  return outcome.kind === 'report' && outcome.hasFailed ? outcome.report.summary : null;
}

async function resultOf(
  services: TaskServices,
  task: Task,
  outcome: TaskOutcome,
): Promise<TaskResult | null> {
  if (outcome.kind === 'answered') return withArtifacts(services, task, outcome.text);
  if (outcome.kind !== 'report') return null;
  const text = JSON.stringify(outcome.report, null, 2);
  return resultWith(text, outcome.report.summary, await services.artifacts.list(task.id));
}

function resultWith(text: string, summarised: string, artifactRefs: ArtifactRef[]): TaskResult {
  return { text, summary: summaryOf(summarised), ...(artifactRefs.length > 0 && { artifactRefs }) };
}

/** Writes an answer's artifacts, and cuts them from its text unless one cannot be written. */
async function withArtifacts(
  { artifacts, log }: TaskServices,
  { id: taskId, request }: Task,
  answer: string,
): Promise<TaskResult> {
  const { text, deltas, leftOut } = deltasIn(answer);
  if (leftOut.length > 0) {
    log.warn({ task: taskId, items: leftOut.length, why: leftOut[0] }, 'left out artifacts of an answer');
  }
  const refs = new Map<string, ArtifactRef>();
  let isWhole = true;
  // The end of a task is written even during a shutdown.
  const { signal } = new AbortController();
  for (const { id, title, type, content, ref } of deltas) {
    if (content === undefined) {
      const named = { ...(title !== undefined && { title }), ...(type !== undefined && { type }) };
      const handedIn = request.artifacts.find((each) => each.id === id);
      // A bare id refers to an artifact that the task brought along, or made, which follows.
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
  return resultWith(words, words, [...refs.values()]);
}

/** The first sentence, or the first line if that is shorter. */
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

/** Must be stored before anything else is done for the task. */
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

function endOfProgramsTask({ id, agent }: Task, end: TaskFinish): JournalWrite[] {
  const { status, result, error, now } = end;
  const results: Results = error === null ? { output: result?.text ?? '' } : { error };
  return [
    outcomeEntry(entryIdOf(id), end, results),
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
