/** The JSON of the HTTP interface (docs/tasks.md): requests, answers, and the wording of mistakes. */
import { z } from '@hono/zod-openapi';
import { ARTIFACT_ID } from '../core/artifacts.js';
import {
  ENDED,
  MOST_EVENTS,
  type Task,
  type TaskEvent,
  type TaskStatus,
  type TaskWish,
} from '../core/task.js';

export const ArtifactId = z
  .string()
  .regex(ARTIFACT_ID, 'has to be 1 to 64 letters, digits, dots, underscores and hyphens, and not . or ..');

const Text = z.string().regex(/\S/, 'must not be empty');

const Artifact = z.strictObject({
  id: ArtifactId,
  title: z.string().optional(),
  type: z.string().optional().openapi({ description: 'A MIME type.' }),
  ref: z.string().optional().openapi({ description: 'Its place, like `artifacts/<task>/<id>.md`.' }),
});

export const StructuredPlan = z.strictObject({
  goal: z.string(),
  steps: z.array(
    z.strictObject({
      id: z.string(),
      title: z.string(),
      status: z.string().openapi({ examples: ['pending', 'completed'] }),
    }),
  ),
});

const Message = z.strictObject({ role: z.enum(['user', 'assistant', 'system']), content: z.string() });

const TASK_FIELDS = {
  goal: Text.openapi({ description: 'What is to be done.' }),
  messages: z.array(Message).optional().openapi({ description: 'The conversation so far.' }),
  plan: z
    .union([z.string(), StructuredPlan])
    .optional()
    .openapi({ description: 'A plan for this task alone.' }),
  artifacts: z.array(Artifact).optional().openapi({ description: 'Files that the agent is told of.' }),
  memory: z
    .union([z.string(), z.array(z.string())])
    .optional()
    .openapi({ description: 'What the agent should know.' }),
  agent: Text.optional().openapi({ description: 'The id of an agent; default: `utility`.' }),
  idempotency_key: z
    .string()
    .min(1)
    .max(200)
    .optional()
    .openapi({ description: 'The same key and body within a day are the same task.' }),
};

export const NewTaskBody = z.strictObject(TASK_FIELDS);

const MODE = z.enum(['steer', 'followup', 'collect']).openapi({
  description: 'steer: at once; followup: after the answer; collect: after all of these, together.',
});

export const TellBody = z.strictObject({ message: Text, mode: MODE.default('followup') });

const SubmitMessage = z.strictObject({
  type: z.literal('task:submit'),
  ...TASK_FIELDS,
  deltas: z
    .boolean()
    .default(false)
    .openapi({ description: 'Whether to send the text while it is written.' }),
});
const StopMessage = z.strictObject({ type: z.literal('task:stop'), taskId: z.string() });
const TellMessage = z.strictObject({
  type: z.literal('task:message'),
  taskId: z.string(),
  message: Text,
  mode: MODE.optional(),
  injectionMode: MODE.optional().openapi({ description: 'Another name of `mode`.' }),
});

/** Sent by a client of the socket. */
export const SocketMessage = z.discriminatedUnion('type', [SubmitMessage, StopMessage, TellMessage], {
  error: 'has to be one of task:submit, task:stop, task:message',
});

const Status = z.enum(['pending', 'running', 'completed', 'error', 'stopped', 'interrupted']);
const Time = z.iso.datetime();

const Result = z.strictObject({
  text: z.string(),
  summary: z.string(),
  artifactRefs: z.array(Artifact.extend({ id: z.string() })).optional(),
});

const Event = z.union([
  z.strictObject({ kind: z.literal('status'), at: Time, status: Status }),
  z.strictObject({
    kind: z.literal('tool-call'),
    at: Time,
    call_id: z.string(),
    tool: z.string(),
    arguments: z.string().openapi({ description: 'As the model wrote them; JSON, most of the time.' }),
  }),
  z.strictObject({
    kind: z.literal('tool-result'),
    at: Time,
    call_id: z.string(),
    tool: z.string(),
    failed: z.boolean(),
    content: z.string(),
  }),
]);

export const ShownTask = z.strictObject({
  id: z.string(),
  goal: z.string(),
  status: Status,
  agent: z.string(),
  created_at: Time,
  completed_at: Time.optional(),
  result: Result.optional(),
  error: z.string().optional(),
});

export const TaskWithEvents = ShownTask.extend({
  events: z.array(Event).openapi({ description: `The newest ${MOST_EVENTS}, oldest first.` }),
});

export const TaskState = z.strictObject({ id: z.string(), status: Status });

/** Sent by the gateway on the socket. */
export const SOCKET_ANSWERS = [
  z.strictObject({ type: z.literal('task:started'), taskId: z.string() }),
  z.strictObject({ type: z.literal('task:text-delta'), taskId: z.string(), text: z.string() }),
  z.strictObject({ type: z.literal('task:completed'), taskId: z.string(), result: Result }),
  z.strictObject({
    type: z.literal('task:error'),
    taskId: z.string().nullable().openapi({ description: 'null: the message led to no task.' }),
    error: z.string(),
    path: z.string().optional(),
    about: z
      .enum(['task:stop', 'task:message'])
      .optional()
      .openapi({ description: 'Such a message was wrong; the task itself goes on.' }),
  }),
];
export type SocketAnswer = z.output<(typeof SOCKET_ANSWERS)[number]>;

export const Refused = z.strictObject({
  error: z.string().openapi({ description: 'What was wrong, in a sentence.' }),
  path: z
    .string()
    .optional()
    .openapi({ description: 'Its place in the body or the parameters, like `messages.0.role`.' }),
});

type Issue = z.core.$ZodIssue;

/** The first mistake that a schema finds, with its path. */
export function complaintOf(error: { issues: Issue[] }): { error: string; path?: string } {
  const { words, path } = worded(error.issues[0], []);
  if (path.length === 0) return { error: words };
  return { error: `${path.join('.')}: ${words}`, path: path.join('.') };
}

function worded(issue: Issue | undefined, above: PropertyKey[]): { words: string; path: string[] } {
  if (issue === undefined) return { words: 'is wrong', path: above.map(String) };
  const path = [...above, ...issue.path];
  if (issue.code === 'unrecognized_keys') {
    return { words: 'is not known here', path: [...path, issue.keys[0] ?? ''].map(String) };
  }
  // For a union, the branch that matched furthest was meant.
  if (issue.code === 'invalid_union') {
    const branches = issue.errors.map((branch) => branch[0]).filter((each) => each !== undefined);
    const deepest = branches.sort((one, other) => depth(other) - depth(one))[0];
    if (deepest !== undefined && depth(deepest) > 0) return worded(deepest, path);
  }
  const isMissing = issue.code === 'invalid_type' && issue.message.endsWith('received undefined');
  return { words: isMissing ? 'is missing' : issue.message, path: path.map(String) };
}

function depth(issue: Issue): number {
  return issue.path.length + (issue.code === 'unrecognized_keys' ? 1 : 0);
}

export function wishOf(body: z.output<typeof NewTaskBody>): TaskWish {
  const { goal, agent = null, messages = [], plan = null, memory = [] } = body;
  return {
    goal,
    agent,
    idempotencyKey: body.idempotency_key ?? null,
    request: {
      messages,
      plan,
      // Without fields that are present but undefined.
      artifacts: JSON.parse(JSON.stringify(body.artifacts ?? [])),
      memory: typeof memory === 'string' ? [memory] : memory,
    },
  };
}

export function shownTask(task: Omit<Task, 'request'>): z.output<typeof ShownTask> {
  const { id, goal, status, agent, createdAt, completedAt, result, error } = task;
  return {
    id,
    goal,
    status,
    agent,
    created_at: iso(createdAt),
    completed_at: completedAt === null ? undefined : iso(completedAt),
    result: result ?? undefined,
    error: error ?? undefined,
  };
}

export function shownEvent(event: TaskEvent): z.output<typeof Event> {
  const at = iso(event.at);
  if (event.kind === 'status') return { ...event, at };
  const { callId: call_id, ...rest } = event;
  return { ...rest, at, call_id };
}

export function hasEnded({ status }: { status: TaskStatus }): boolean {
  return ENDED.includes(status);
}

/** Why a task has no result. */
export function reasonOf({ status, error }: { status: TaskStatus; error: string | null }): string {
  if (error !== null) return error;
  if (status === 'stopped') return 'The task was stopped.';
  return status === 'interrupted' ? 'The gateway ended while the task ran.' : 'The task failed.';
}

export const TOO_MANY_WAIT = 'Too many tasks wait to be begun; try again in some seconds.';

function iso(at: number): string {
  return new Date(at).toISOString();
}
