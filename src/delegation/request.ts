/**
 * The request with which an agent begins a task: a system prompt, each part only if it has content, then what the task
 * brings along, and last what is asked. Files and plans are shown as they are now.
 */
import type { AgentDefinition, Agents } from '../core/agents.js';
import type { ArtifactRef } from '../core/artifacts.js';
import type { Clipboard } from '../core/clipboard.js';
import { weekday, type Zone } from '../core/dates.js';
import { fenced, nameInPrompt } from '../core/elements.js';
import type { ModelMessage } from '../core/model.js';
import { planText } from '../core/plan.js';
import { catalogueOf, type Skills } from '../core/skills.js';
import type { Plan, Task } from '../core/task.js';
import type { AgentPlace } from '../core/tool.js';
import type { Workspace, WorkspaceShown } from '../core/workspace.js';
import { viapInstructions } from './viap/prompt.js';
import type { ViapTask } from './viap/task.js';

export interface RequestParts {
  agents: Pick<Agents, 'memory'>;
  workspace: Pick<Workspace, 'shown'>;
  skills: Pick<Skills, 'list'>;
  clipboard: Pick<Clipboard, 'shown'>;
  zone: Zone;
  /** How much of MEMORY.md a prompt shows. */
  memoryChars: number;
}

export interface RequestAsk {
  task: Task;
  agent: AgentDefinition;
  place: AgentPlace;
  /** Of a delegated task; null: a program gave it. */
  viap: ViapTask | null;
  /** The workspace is the owner's: whether an owner asked, where only owners hear of it, or a program did. */
  isOwners: boolean;
  /** The names of its tools. */
  tools: ReadonlySet<string>;
  now: number;
}

export async function requestOf(parts: RequestParts, ask: RequestAsk): Promise<ModelMessage[]> {
  const { task, viap } = ask;
  const given = task.request.messages;
  const content = await systemPrompt(parts, ask);
  const messages: ModelMessage[] = given.flatMap(({ role, content }): ModelMessage[] => {
    if (role === 'system') return [];
    return [role === 'user' ? { role, content } : { role, content, calls: [] }];
  });
  const asked = viap === null ? task.goal : viapInstructions(viap).request;
  const last = messages.at(-1);
  const isThere = last?.role === 'user' && last.content.trim() === asked.trim();
  return [
    { role: 'system', content },
    ...messages,
    ...(isThere ? [] : [{ role: 'user' as const, content: asked }]),
  ];
}

async function systemPrompt(parts: RequestParts, ask: RequestAsk): Promise<string> {
  const { task, agent, place, viap, isOwners, tools, now } = ask;
  const { agents, workspace, skills, clipboard, zone } = parts;
  const today = zone.date(now);
  const own = await agents.memory(agent.id, today);
  const left = Math.max(0, parts.memoryChars - own.longTerm.length);
  const shown = isOwners ? await workspace.shown({ today, memoryChars: left }) : null;
  // What a delegated task says of its persona's surroundings it says itself.
  const surroundings = viap === null ? shown : null;
  return [
    agent.prompt.trim(),
    `You are the agent ${nameInPrompt(agent.id)} and work on one task, by yourself: nobody can answer you while you do. ` +
      `Today is ${weekday(today)}, ${today} (${zone.name}).`,
    viap === null ? RESULT : '',
    whereYouWork(place),
    section('Instructions of the program', wordsOfSystem(task)),
    section('Memory (this agent)', ownMemory(own)),
    surroundings === null ? '' : workspaceContext(surroundings),
    section('Memory given with this task', task.request.memory.map(fenced).join('\n\n')),
    section('Plan', planShown(task.request.plan ?? shown?.plan ?? '')),
    section('Artifacts', artifactList(task.request.artifacts)),
    tools.has('manage_clipboard')
      ? section('Clipboard', atHand(await clipboard.shown({ agent: agent.id })))
      : '',
    tools.has('activate_skill') ? section('Skills', await catalogue(skills)) : '',
    viap === null ? '' : viapInstructions(viap).system,
  ]
    .filter((part) => part !== '')
    .join('\n\n');
}

const RESULT =
  'Your last answer, the one without tool calls, is the result of the task: say in it what came of it. Files that are ' +
  'worth keeping are artifacts.';

function whereYouWork({ cwd, roots }: AgentPlace): string {
  const begin =
    cwd === null
      ? 'The working folder that you were given lies outside of the folders that you may reach, so no command runs.'
      : `You work in ${cwd}.`;
  return `${begin} You reach ${roots.join(', ')}, and nothing else.`;
}

function ownMemory({ longTerm, daily }: { longTerm: string; daily: string }): string {
  return [
    longTerm && `What you have noted for good (MEMORY.md):\n\n${fenced(longTerm)}`,
    daily && `What you have noted lately:\n\n${fenced(daily)}`,
  ]
    .filter((part) => part !== '')
    .join('\n\n');
}

function workspaceContext({ bootstrap, memory, dailyLog }: WorkspaceShown): string {
  return section(
    'Workspace',
    [
      ...bootstrap.map(({ file, text }) => `${file}:\n\n${fenced(text)}`),
      memory && `MEMORY.md:\n\n${fenced(memory)}`,
      dailyLog && `The latest days:\n\n${fenced(dailyLog)}`,
    ]
      .filter((part) => part !== '')
      .join('\n\n'),
  );
}

/** In steps, too, as it would stand in task.md. */
function planShown(plan: Plan): string {
  const text = planText(plan).trim();
  return text === '' ? '' : fenced(text);
}

function atHand(clipboard: string): string {
  return clipboard === '' ? '' : `What you keep at hand (manage_clipboard):\n\n${fenced(clipboard)}`;
}

/** By reference: what they hold is read when it is needed. */
function artifactList(artifacts: readonly ArtifactRef[]): string {
  return artifacts
    .map(({ id, title, type, ref }) => {
      const about = [title, type, ref].flatMap((each) => (each === undefined ? [] : nameInPrompt(each)));
      return `- ${nameInPrompt(id)}${about.length > 0 ? `: ${about.join(', ')}` : ''}`;
    })
    .join('\n');
}

async function catalogue(skills: RequestParts['skills']): Promise<string> {
  const { lines } = catalogueOf((await skills.list()).skills);
  if (lines.length === 0) return '';
  return `Load one with activate_skill when the task needs it:\n\n${lines.join('\n')}`;
}

function wordsOfSystem({ request }: Task): string {
  return request.messages
    .flatMap((message) => (message.role === 'system' ? [message.content.trim()] : []))
    .filter((words) => words !== '')
    .join('\n\n');
}

function section(title: string, content: string): string {
  return content === '' ? '' : `# ${title}\n\n${content}`;
}
