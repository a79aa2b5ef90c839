/** The task of VIAP v3 (seed 000). Six fields are required; the others never lead to a refusal. Pure. */
import type { Task } from '../../core/task.js';
import { isBegun, isObject, objectsIn, parsed, typedIn } from './objects.js';

export interface ViapTask {
  /** Chosen by the task's author: not safe in a path. */
  taskId: string;
  title: string;
  goal: string;
  cwd: string | null;
  env: Record<string, string>;
  args: string[];
  timeBudgetMin: number;
  /** Otherwise that is our default. */
  hasTimeBudget: boolean;
  raw: Record<string, unknown>;
}

const VIAP_TASK = 'VIAP_V3_TASK';

const MOST_CHARS = 200_000;
const DEFAULT_BUDGET_MIN = 30;

/** From an object, or a text that contains exactly one. `reason` is a sentence for the model that gave it. */
export function readViapTask(given: unknown): { ok: true; task: ViapTask } | { ok: false; reason: string } {
  const found = typeof given === 'string' ? taskIn(given) : isObject(given) ? given : NO_TASK;
  if (typeof found === 'string') return { ok: false, reason: found };
  if (!fits(found)) return { ok: false, reason: TOO_LARGE };
  const lacks = lacking(found);
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

function lacking(given: Record<string, unknown>): string[] {
  const { viap_version: version, instructions } = given;
  const areInstructions =
    Array.isArray(instructions) && instructions.length > 0 && instructions.every((each) => textOf(each));
  return [
    ...(version === '3' || version === 3 ? [] : ['viap_version "3"']),
    ...(given.type === VIAP_TASK ? [] : [`type "${VIAP_TASK}"`]),
    ...['task_id', 'title', 'goal'].flatMap((name) => (textOf(given[name]) ? [] : [`${name} (a text)`])),
    ...(areInstructions ? [] : ['instructions (a list of texts, at least one)']),
  ];
}

function taskOf(raw: Record<string, unknown>): ViapTask {
  const inputs = partOf(raw, 'inputs');
  const budget = partOf(raw, 'constraints').time_budget_min;
  const isBudget = typeof budget === 'number' && budget > 0 && Number.isFinite(budget);
  return {
    taskId: textOf(raw.task_id) ?? '',
    title: textOf(raw.title) ?? '',
    goal: textOf(raw.goal) ?? '',
    cwd: textOf(partOf(raw, 'context').cwd),
    env: environmentOf(inputs.env),
    args: Array.isArray(inputs.args) ? inputs.args.filter((each) => textOf(each) !== null) : [],
    timeBudgetMin: isBudget ? budget : DEFAULT_BUDGET_MIN,
    hasTimeBudget: isBudget,
    raw,
  };
}

function partOf(raw: Record<string, unknown>, name: string): Record<string, unknown> {
  const part = raw[name];
  return isObject(part) ? part : {};
}

function textOf(given: unknown): string | null {
  return typeof given === 'string' && given.trim() !== '' ? given : null;
}

/** Valid variable names only; values become text. */
function environmentOf(given: unknown): Record<string, string> {
  if (!isObject(given)) return {};
  return Object.fromEntries(
    Object.entries(given).flatMap(([name, value]) => {
      const isValue = ['string', 'number', 'boolean'].includes(typeof value);
      const text = String(value);
      return isValue && /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && !text.includes('\0') ? [[name, text]] : [];
    }),
  );
}
