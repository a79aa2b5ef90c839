/**
 * The offline model's use of the memory tools: the next step of saving or recalling, seen from what was done
 * so far. Each step is taken once at most, so that it always ends.
 */
import type { Situation } from './offline-request.js';

export type Step = { call: { name: string; arguments: object } } | { reply: string };

const READ = 'read_tiered_memory';
const WRITE = 'write_tiered_memory';
/** Longer things are not what "remember that …" means. */
const LONGEST_FACT = 1_000;
const LONGEST_RECALL = 3_000;

/** Reads tier 1, writes it with the new lines, and confirms only what the tool then shows to stand there. */
export function saveStep(facts: string[], situation: Situation): Step {
  if (!situation.offers(READ) || !situation.offers(WRITE)) {
    return { reply: 'I cannot save that: I was given no memory tools for this message.' };
  }
  if (facts.some((fact) => fact.length > LONGEST_FACT)) {
    return { reply: 'That is too long for me to remember. Please put it into a sentence or two.' };
  }
  const read = situation.done.find((call) => call.name === READ);
  if (read === undefined) return { call: { name: READ, arguments: { tier: 1 } } };
  if (failed(read)) return { reply: `I could not save that. The memory tool answered: ${firstLine(read)}` };

  const write = situation.done.find((call) => call.name === WRITE);
  if (write === undefined) {
    const text = memoryText(read);
    const fresh = facts.filter((fact) => !hasLine(text, fact));
    if (fresh.length === 0) return { reply: `I have that already:\n\n${listed(facts)}` };
    const content = [text, ...fresh.map((fact) => `- ${fact}`)].filter((line) => line !== '').join('\n');
    return { call: { name: WRITE, arguments: { tier: 1, content } } };
  }
  return facts.every((fact) => hasLine(write.result ?? '', fact))
    ? { reply: `Saved to my long-term memory:\n\n${listed(facts)}` }
    : { reply: `I could not save that. The memory tool answered: ${firstLine(write)}` };
}

/** Reads this persona's memory and tells it. */
export function recallStep(situation: Situation): Step {
  const whole = situation.offers('read_memory');
  if (!whole && !situation.offers(READ)) {
    return { reply: 'I cannot look: I was given no memory tools for this message.' };
  }
  const read = situation.done[0];
  if (read === undefined) {
    return whole
      ? { call: { name: 'read_memory', arguments: { scope: 'chat' } } }
      : { call: { name: READ, arguments: { tier: 1 } } };
  }
  if (failed(read)) return { reply: `I cannot read my memory. The tool answered: ${firstLine(read)}` };
  const remembered = memoryText(read)
    .split('\n')
    .filter((line) => !/^#{1,2}\s/.test(line))
    .join('\n')
    .replace(/\n{3,}/g, '\n\n')
    .trim();
  if (remembered === '') return { reply: 'I remember nothing yet. Tell me "remember that …".' };
  const beginning = remembered.slice(0, LONGEST_RECALL).replace(/[\ud800-\udbff]$/, '');
  const shown =
    beginning.length < remembered.length - 1 ? `${beginning}…\n\n(and more, in MEMORY.md)` : remembered;
  return { reply: `This is what I remember:\n\n${shown}` };
}

type Call = Situation['done'][number];

/** An empty tier or file is answered with a remark in brackets, which is no memory. */
function memoryText(read: Call): string {
  const text = (read.result ?? '').trim();
  return /^\([^\n]*\)$/.test(text) ? '' : text;
}

/** A tool that failed says so by its name; its words are no memory either. */
function failed(read: Call): boolean {
  return read.result === null || read.result.startsWith(`${read.name} failed`);
}

function hasLine(text: string, fact: string): boolean {
  return text.split('\n').some((line) => line.trim() === `- ${fact}`);
}

function listed(facts: string[]): string {
  return facts.map((fact) => `- ${fact}`).join('\n');
}

function firstLine(call: Call): string {
  return call.result?.split('\n')[0] || 'nothing';
}
