/** The task of VIAP v3 (seed 000). Six fields are required; the others never lead to a refusal. Pure. */
import * as z from 'zod';
import type { Task } from '../../core/task.js';
import { isBegun, isObject, lacking, objectsIn, parsed, type Requirement, typedIn } from './objects.js';

export interface ViapTask {
  /** Chosen by the task's author: not safe in a path. */
  taskId: string;
  title: string;
  goal: string;
  cwd: string | null;
  env: Record<string, string>;
  args: string[];
  /** null: not given. */
  timeBudgetMin: number | null;
  raw: Record<string, unknown>;
}

const VIAP_TASK = 'VIAP_V3_TASK';

const words = z.string().refine((text) => text.trim() !== '');
const REQUIRED: Requirement[] = [
  ['viap_version', z.literal(['3', 3]), 'viap_version "3"'],
  ['type', z.literal(VIAP_TASK), `type "${VIAP_TASK}"`],
  ...['task_id', 'title', 'goal'].map((name): Requirement => [name, words, `${name} (a text)`]),
  ['instructions', z.array(words).min(1), 'instructions (a list of texts, at least one)'],
];
const heads = z.object({ task_id: words, title: words, goal: words });
const context = z.object({ cwd: words.nullable().catch(null) }).catch({ cwd: null });
const inputs = z
  .object({ env: z.record(z.string(), z.unknown()).catch({}), args: z.array(z.unknown()).catch([]) })
  .catch({ env: {}, args: [] });
const constraints = z
  .object({ time_budget_min: z.number().positive().nullable().catch(null) })
  .catch({ time_budget_min: null });

const MOST_CHARS = 200_000;

/** From an object, or a text that contains exactly one. `reason` is a sentence for the model that gave it. */
export function readViapTask(given: unknown): { ok: true; task: ViapTask } | { ok: false; reason: string } {
  const found = typeof given === 'string' ? taskIn(given) : isObject(given) ? given : NO_TASK;
  if (typeof found === 'string') return { ok: false, reason: found };
  if (!fits(found)) return { ok: false, reason: TOO_LARGE };
  const lacks = lacking(found, REQUIRED);
  if (lacks.length > 0) {
    return { ok: false, reason: `This is no complete ${VIAP_TASK}: it needs ${lacks.join(', ')}.` };
  }
  return { ok: true, task: taskOf(found) };
}

/** As stored when it was given; null: given by a program, or no longer readable. */
export function viapOf({ request }: Task): ViapTask | null {
  const read = request.viap === null ? null : readViapTask(request.viap);
  return read?.ok ? read.task : null;
}

/** The task, or why there is none. */
function taskIn(text: string): Record<string, unknown> | string {
  if (text.length > MOST_CHARS) return TOO_LARGE;
  const tasks = typedIn(text, VIAP_TASK);
  const [first, second] = tasks;
  if (second !== undefined) {
    return `There are ${tasks.length} tasks in it: give exactly one ${VIAP_TASK}, and call once for each.`;
  }
  // A broken one next to a complete one also counts as a second.
  const beside = first ? text.slice(0, first.from) + text.slice(first.to) : text;
  if (isBegun(beside, VIAP_TASK)) return BROKEN;
  if (first !== undefined) return first.value;
  // Without its type, the reason can still name what else is missing.
  const alone = parsed(text) ?? (objectsIn(text).length === 1 ? objectsIn(text)[0]?.value : undefined);
  return alone ?? NO_TASK;
}

const NO_TASK = `There is no task in it: give exactly one ${VIAP_TASK}, as a JSON object or as a text that holds one.`;
const BROKEN = `A ${VIAP_TASK} in it is no valid JSON, or is cut off: give exactly one, whole.`;
const TOO_LARGE = `The task is too large: at most ${MOST_CHARS} characters. Put what is long into files and name them in inputs.files.`;

function fits(given: Record<string, unknown>): boolean {
  try {
    return JSON.stringify(given).length <= MOST_CHARS;
  } catch (error) {
    // Nested too deeply to be serialised.
    if (error instanceof RangeError) return false;
    throw error;
  }
}

function taskOf(raw: Record<string, unknown>): ViapTask {
  const { task_id: taskId, title, goal } = heads.parse(raw);
  const { env, args } = inputs.parse(raw.inputs);
  return {
    taskId,
    title,
    goal,
    cwd: context.parse(raw.context).cwd,
    env: environmentOf(env),
    args: args.flatMap((each) => words.safeParse(each).data ?? []),
    timeBudgetMin: constraints.parse(raw.constraints).time_budget_min,
    raw,
  };
}

/** Valid variable names only; values become text. */
function environmentOf(given: Record<string, unknown>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(given).flatMap(([name, value]) => {
      if (!['string', 'number', 'boolean'].includes(typeof value)) return [];
      const text = String(value);
      return /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && !text.includes('\0') ? [[name, text]] : [];
    }),
  );
}
