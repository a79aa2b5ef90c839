/**
 * The page's routes to work: tasks of programs and of personas, a page at a time, one of them opened, and artifacts of all
 * tasks and turns. What changes something goes by the routes for programs, and stands in the audit log first.
 */
import { z } from '@hono/zod-openapi';
import type { Artifacts, ListedArtifact } from '../core/artifacts.js';
import { BOARD_OWNER } from '../core/board.js';
import type { ChatStore } from '../core/chat-record.js';
import { inOneLine, printableLine } from '../core/cut.js';
import type { Audit } from '../core/journal.js';
import { type Personas, personaName } from '../core/persona.js';
import { MOST_EVENTS, planText, type Task, type TaskEvent, type TaskStore } from '../core/task.js';
import { type BoardApi, reply } from './api.js';
import { fieldsIn, refused } from './own.js';
import type { ArtifactItem, ArtifactPage, RowCall, TaskDetails, TaskItem, TaskPage } from './protocol.js';
import { ArtifactId } from './schemas.js';

export interface WorkParts {
  tasks: TaskStore;
  artifacts: Artifacts;
  chats: ChatStore;
  personas: Personas;
  audit: Audit;
}

const PAGE = 30;
/** A page that shows several reads them anew at once. */
const MOST_TASKS = 300;
/** Of all tasks and turns; the files of others are found at their task. */
const MOST_ARTIFACTS = 200;
const GOAL_CHARS = 300;
const WORDS_CHARS = 300;

const TaskId = z.string().min(1).max(200);
const Listed = z.object({
  before: TaskId.optional(),
  most: z.coerce.number().int().min(1).max(MOST_TASKS).default(PAGE),
});

export function addWork(api: BoardApi, parts: WorkParts): void {
  const { tasks, artifacts } = parts;
  api.get('/api/board/tasks', async (context) => {
    const { before, most } = fieldsIn(context, Listed);
    const found = await tasks.tasks(most, before);
    const givers = giversIn(parts);
    const page: TaskPage = {
      tasks: await Promise.all(found.map((task) => itemOf(task, givers))),
      next: found.length < most ? null : (found.at(-1)?.id ?? null),
    };
    return reply(200, page);
  });
  api.get('/api/board/tasks/:id', async (context) => {
    const { id } = fieldsIn(context, z.object({ id: TaskId }));
    const task = await tasks.task(id);
    if (task === null) throw refused(404, { error: 'There is no such task.' });
    return reply(200, await detailsOf(task, parts));
  });
  api.get('/api/board/artifacts', async () => {
    // One more shows whether there are more.
    const found = await artifacts.newest(MOST_ARTIFACTS + 1);
    const page: ArtifactPage = {
      artifacts: found.slice(0, MOST_ARTIFACTS).map(artifactItem),
      isCut: found.length > MOST_ARTIFACTS,
    };
    return reply(200, page);
  });
  api.get('/api/board/artifacts/:task/:id', async (context) => {
    const { task, id } = fieldsIn(context, z.object({ task: ArtifactId, id: ArtifactId }));
    const found = (await artifacts.newest(MOST_ARTIFACTS, task)).find((each) => each.id === id);
    if (found === undefined) throw refused(404, { error: 'There is no such artifact.' });
    return reply(200, artifactItem(found));
  });
}

/**
 * Registered before the routes for programs. A browser names the page that a change comes from, a program does not: a
 * thousand tasks of programs are no thousand decisions of an owner.
 */
export function recordWork(api: BoardApi, audit: Audit): void {
  // `/api/tasks` itself is among the first.
  for (const path of ['/api/tasks/*', '/api/workspace/*']) {
    api.use(path, async ({ req }, next) => {
      if (['POST', 'PUT'].includes(req.method) && req.header('origin') !== undefined) {
        const what = `${req.method} ${inOneLine(req.path, WORDS_CHARS)}`;
        await audit.record({ kind: 'command', who: BOARD_OWNER, where: null, what, word: BOARD_OWNER });
      }
      return next();
    });
  }
}

/** The persona that delegated a task, by the name that people know. Each chat is read once a request. */
type Givers = (task: Omit<Task, 'request'>) => Promise<TaskItem['from']>;

function giversIn({ chats, personas }: WorkParts): Givers {
  const known = new Map<string, ReturnType<typeof read>>();
  const read = async (chatId: string) => ({
    title: (await chats.chat(chatId))?.title || chatId,
    listed: await personas.list(chatId),
  });
  return async ({ parent }) => {
    if (parent === null) return null;
    const chat = known.get(parent.chatId) ?? read(parent.chatId);
    known.set(parent.chatId, chat);
    const { title, listed } = await chat;
    return {
      persona: inOneLine(personaName(listed, parent.personaId)),
      chat: inOneLine(title),
      room: parent.room,
    };
  };
}

async function itemOf(task: Omit<Task, 'request'>, givers: Givers): Promise<TaskItem> {
  const { id, goal, status, agent, createdAt, startedAt, completedAt, result, error } = task;
  const words = result === null ? error : result.summary || result.text;
  return {
    ...{ id, status, agent, createdAt, startedAt, completedAt },
    goal: inOneLine(goal, GOAL_CHARS),
    // It is read as it stands, not as Markdown.
    words: words === null ? null : inOneLine(words.replace(/\*\*|`/g, ''), WORDS_CHARS),
    from: await givers(task),
  };
}

async function detailsOf(task: Task, parts: WorkParts): Promise<TaskDetails> {
  const events = await parts.tasks.taskEvents(task.id);
  const { plan, messages } = task.request;
  const files = await parts.artifacts.newest(MOST_ARTIFACTS, task.id);
  return {
    task: await itemOf(task, giversIn(parts)),
    goal: task.goal,
    plan: plan === null ? null : planText(plan),
    messages,
    calls: callsIn(events),
    isCut: events.length >= MOST_EVENTS,
    result: task.result?.text ?? null,
    error: task.error,
    artifacts: files.map(artifactItem),
  };
}

/** Calls with their results, in the order in which they were made. */
function callsIn(events: readonly TaskEvent[]): TaskDetails['calls'] {
  const calls = new Map<string, RowCall & { at: number }>();
  for (const event of events) {
    if (event.kind === 'status') continue;
    const { callId: id, tool, at } = event;
    const known = calls.get(id) ?? { id, tool, at, arguments: '', result: null, failed: false };
    calls.set(
      id,
      event.kind === 'tool-call'
        ? { ...known, arguments: event.arguments }
        : { ...known, result: event.content, failed: event.failed },
    );
  }
  return [...calls.values()];
}

function artifactItem({ taskId, id, name, type, title, bytes, at }: ListedArtifact): ArtifactItem {
  const address = `api/artifacts/${encodeURIComponent(taskId)}/${encodeURIComponent(id)}`;
  return {
    task: taskId,
    id,
    name: printableLine(name),
    type,
    title: title === null ? null : inOneLine(title),
    bytes,
    at,
    address,
  };
}
