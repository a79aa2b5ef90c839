/** A structured plan as Markdown: what is written to `task.md`, and what people and models read. Pure. */
import type { Plan } from './task.js';

const DONE = 'completed';
const NOT_BEGUN = 'pending';

/**
 * A heading, and one line a step: `- [x] title` where it is completed. Any other status but `pending` stands behind the
 * title, and the id in a comment, so that the list can be read back.
 */
export function planText(plan: Plan): string {
  if (typeof plan === 'string') return plan;
  const steps = plan.steps.map(({ id, title, status }) => {
    const box = status === DONE ? '[x]' : '[ ]';
    const state = status === DONE || status === NOT_BEGUN ? '' : ` (${oneLine(status)})`;
    return `- ${box} ${oneLine(title)}${state} <!-- ${inComment(id)} -->`;
  });
  return `# ${oneLine(plan.goal)}\n\n${steps.map((step) => `${step}\n`).join('')}`;
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim();
}

/** Nothing in it may end the comment. */
function inComment(id: string): string {
  return oneLine(id).replace(/-(?=-)|[<>]/g, '_');
}
