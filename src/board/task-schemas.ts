/** What programs send of tasks and get of them: the names and bounds of the interface (docs/tasks.md). */
import * as z from 'zod';
import { ARTIFACT_ID } from '../core/artifacts.js';
import { MOST_EVENTS } from '../core/task.js';

/** A safe name of a file. */
export const ArtifactId = z
  .string()
  .regex(ARTIFACT_ID, 'has to be 1 to 64 letters, digits, dots, underscores and hyphens, and not . or ..');

const Text = z.string().regex(/\S/, 'must not be empty');

const Artifact = z.strictObject({
  id: ArtifactId,
  title: z.string().optional(),
  type: z.string().optional().meta({ description: 'A MIME type.' }),
  ref: z.string().optional().meta({ description: 'Where it lies, like `artifacts/<task>/<id>.md`.' }),
});

export const StructuredPlan = z.strictObject({
  goal: z.string(),
  steps: z.array(
    z.strictObject({
      id: z.string(),
      title: z.string(),
      status: z.string().meta({ examples: ['pending', 'completed'] }),
    }),
  ),
});

const TASK_FIELDS = {
  goal: Text.meta({ description: 'What is to be done.' }),
  messages: z
    .array(z.strictObject({ role: z.enum(['user', 'assistant', 'system']), content: z.string() }))
    .optional()
    .meta({ description: 'What was said before. Left out or empty: nothing.' }),
  plan: z.union([z.string(), StructuredPlan]).optional().meta({ description: 'For this task alone.' }),
  artifacts: z.array(Artifact).optional().meta({ description: 'Files that the agent is told of.' }),
  memory: z
    .union([z.string(), z.array(z.string())])
    .optional()
    .meta({ description: 'What the agent should know.' }),
  agent: Text.optional().meta({ description: 'The id of an agent. Left out: `utility`.' }),
  idempotency_key: z
    .string()
    .min(1)
    .max(200)
    .optional()
    .meta({ description: 'The same key and body within a day are the same task.' }),
};

export const NewTaskBody = z.strictObject(TASK_FIELDS);
export type NewTaskBody = z.output<typeof NewTaskBody>;

const MODE = z.enum(['steer', 'followup', 'collect']).meta({
  description: 'steer: at once; followup: after the answer; collect: after all of these, together.',
});

export const TellBody = z.strictObject({ message: Text, mode: MODE.default('followup') });

/** What a client of the socket sends. */
export const SubmitMessage = z.strictObject({
  type: z.literal('task:submit'),
  ...TASK_FIELDS,
  deltas: z.boolean().default(false).meta({ description: 'Whether the text is wanted while it is written.' }),
});
export const StopMessage = z.strictObject({ type: z.literal('task:stop'), taskId: z.string() });
export const TellMessage = z.strictObject({
  type: z.literal('task:message'),
  taskId: z.string(),
  message: Text,
  mode: MODE.optional(),
  injectionMode: MODE.optional().meta({ description: 'Another name of `mode`.' }),
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
    ...{ kind: z.literal('tool-call'), at: Time, call_id: z.string(), tool: z.string() },
    arguments: z.string().meta({ description: 'As the model wrote them: JSON, most of the time.' }),
  }),
  z.strictObject({
    ...{ kind: z.literal('tool-result'), at: Time, call_id: z.string(), tool: z.string() },
    ...{ failed: z.boolean(), content: z.string() },
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
export type ShownTask = z.output<typeof ShownTask>;

export const TaskWithEvents = ShownTask.extend({
  events: z.array(Event).meta({ description: `The newest ${MOST_EVENTS}, the oldest of them first.` }),
});
export type ShownEvent = z.output<typeof Event>;

export const TaskState = z.strictObject({ id: z.string(), status: Status });

/** What the gateway says on the socket. */
const of = { taskId: z.string() };
export const SOCKET_ANSWERS = [
  z.strictObject({ type: z.literal('task:started'), ...of }),
  z.strictObject({ type: z.literal('task:text-delta'), ...of, text: z.string() }),
  z.strictObject({ type: z.literal('task:completed'), ...of, result: Result }),
  z.strictObject({
    type: z.literal('task:error'),
    taskId: z.string().nullable().meta({ description: 'null: of a message that led to no task.' }),
    error: z.string(),
    path: z.string().optional(),
    about: z
      .enum(['task:stop', 'task:message'])
      .optional()
      .meta({ description: 'It answers such a message; the task itself goes on as it did.' }),
  }),
];
