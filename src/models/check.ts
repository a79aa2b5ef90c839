/** Reports for operators: `doctor`'s check of a model server, and notices of what was learnt of it. */
import { estimateTokens } from '../core/cut.js';
import { Fault } from '../core/errors.js';
import type { ModelRequest, Notice, ToolDescription } from '../core/model.js';
import type { Answer } from './answer.js';
import { type ContextWindow, TOLD_LESS } from './context-window.js';
import type { OpenAiModelOptions, Ways } from './server-ways.js';

const LONG_PROMPT_TOKENS = 6000;
const READY = 'Answer with the single word: ready';

const PROBE: ToolDescription = {
  name: 'note_nothing',
  description: 'Does nothing. Never call it.',
  parameters: { type: 'object', properties: {} },
};

/** Throws Fault if the model does not answer. `place`: the server's address without secrets. */
export async function checkModel(
  place: string,
  window: ContextWindow,
  { ways, server: { name }, clock }: OpenAiModelOptions,
  ask: (request: ModelRequest) => Promise<Answer>,
): Promise<{ identity: string; warnings: string[] }> {
  // Reports what was learnt, of other models on this server too, before it is forgotten.
  await ways.refresh();
  const learnt = windowWarnings(window.known(name));
  for (const other of ways.modelsOf(place)) {
    if (other === name || window.known(other).learnt === null) continue;
    learnt.push(...windowWarnings(window.known(other)).map((text) => `${other}: ${text}`));
  }
  const { mostTools } = ways.of(place, name);
  if (mostTools !== null) {
    learnt.push(
      `it has refused more than ${mostTools} tools in one request; this is forgotten now, and learnt again where it holds`,
    );
  }
  // An upgraded server may take what it refused before.
  await ways.forget(place);
  window.forget();
  const short = await ask({ messages: [{ role: 'user', content: READY }], tools: [PROBE] });
  await window.ask(name);
  const warnings = [...new Set([...learnt, ...windowWarnings(window.known(name))])];
  const { refused } = ways.of(place, name);
  if (refused.includes('tools')) {
    warnings.push('it refuses tools: personas can talk, but not read or write memory by themselves');
  } else if (refused.includes('reasoning_with_tools') && refused.includes('responses')) {
    warnings.push('it takes tools only while it does not reason, so it is asked not to');
  }
  if (!short.usage?.inputTokens) {
    warnings.push('it does not report token usage: /usage stays empty, and a cut window cannot be noticed');
  } else if (window.tokens(name) > LONG_PROMPT_TOKENS * 1.25) {
    warnings.push(...(await longPromptWarnings(clock.now(), ask)));
  }
  return { identity: `${name} at ${place}`, warnings };
}

function windowWarnings({ set, told, learnt }: ReturnType<ContextWindow['known']>): string[] {
  const warnings: string[] = [];
  if (told !== null && set !== null && told < set) {
    warnings.push(`${TOLD_LESS}: ${told} of ${set} tokens; raise the one or lower the other`);
  }
  if (learnt) {
    const how = learnt.how === 'cut' ? 'cut requests without a word' : 'refused requests for their length';
    warnings.push(
      `it has ${how}, so its window counts as ${learnt.tokens} tokens; this is forgotten now, so ` +
        'raise its context length (Ollama: OLLAMA_CONTEXT_LENGTH), or set model.context_tokens to what it has',
    );
  }
  return warnings;
}

async function longPromptWarnings(
  now: number,
  ask: (request: ModelRequest) => Promise<Answer>,
): Promise<string[]> {
  const content = longPrompt(now);
  const estimated = estimateTokens(content);
  try {
    const { usage } = await ask({ messages: [{ role: 'user', content }], tools: [] });
    if (usage === null || usage.inputTokens >= estimated * 0.75) return [];
    return [
      `it counted ${usage.inputTokens} tokens of a prompt of about ${estimated}: it cuts its window silently and ` +
        "forgets what came first; raise the server's context length (Ollama: OLLAMA_CONTEXT_LENGTH)",
    ];
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    return error.code === 'context_too_long'
      ? [`it takes no prompt of ${estimated} tokens: raise its context length, or set model.context_tokens`]
      : [`a prompt of ${estimated} tokens failed: ${error.message}`];
  }
}

/** Words of three letters, each one token for every tokeniser. The time at the start avoids a cache hit. */
function longPrompt(now: number): string {
  const words = ['sun', 'oak', 'red', 'cup', 'map', 'fox', 'ten', 'sea', 'jar', 'bus', 'key', 'hat', 'ice'];
  const all = Array.from({ length: LONG_PROMPT_TOKENS }, (_, i) => words[(i * 7 + (i >> 4)) % words.length]);
  return `${now} ${all.join(' ')}\n${READY}`;
}

/** Maximum number of omitted tools named in a notice. */
const MOST_NAMED = 40;

const UNDO =
  '`coterie doctor` forgets this at once, also while the gateway runs; model.context_tokens says how much the model has.';

/** Tools that are refused or left out, and a smaller window than expected. `set`: the configured window in tokens. */
export function noticesFor(
  serverAndModel: string,
  title: string,
  { set, learnt, mostTools, refused }: Omit<Ways, 'told'> & { set: number | null },
  { tools }: ModelRequest,
): Notice[] {
  const notices: Notice[] = [];
  if (learnt !== null) {
    const text = `${title} ${windowNotice(learnt.how, learnt.tokens, set)} ${UNDO}`;
    notices.push({ key: `window-${learnt.how} ${serverAndModel}`, text });
  }
  if (mostTools !== null && mostTools < tools.length) {
    const leftOut = tools.slice(mostTools).map(({ name }) => `\`${name}\``);
    const more = leftOut.length > MOST_NAMED ? ` and ${leftOut.length - MOST_NAMED} more` : '';
    const names = `${leftOut.slice(0, MOST_NAMED).join(', ')}${more}`;
    const text = `${title} takes only ${mostTools} tools in one request, so these are left out: ${names}. List under mcp.servers.NAME.tools those that are needed, or set tools.max_offered.`;
    notices.push({ key: `fewer tools: ${serverAndModel}`, text });
  }
  if (tools.length > 0 && refused.includes('tools')) {
    const text = `${title} refuses tools, so personas can talk, but neither read nor write memory. Choose a model that takes tools (model.name). It is tried again once an hour, and at once after \`coterie doctor\`.`;
    notices.push({ key: `no tools: ${serverAndModel}`, text });
  }
  return notices;
}

function windowNotice(how: 'refused' | 'cut', tokens: number, set: number | null): string {
  if (how === 'refused') {
    return `has refused a request for its length, so its context window counts as ${tokens} tokens: personas see less of what was said before.`;
  }
  const cuts = `reads only about ${tokens} tokens of a conversation and leaves out the rest without a word.`;
  const raise = 'Raise its context length where it runs (Ollama: OLLAMA_CONTEXT_LENGTH)';
  return set === null
    ? `${cuts} Requests are kept shorter from now on, so personas see less of what was said before. ${raise}.`
    : `${cuts} Requests are as long as model.context_tokens (${set}) allows all the same. ${raise}, or lower that.`;
}
