/** `doctor`'s check of a model server: does it answer, take tools, count tokens and read long prompts; how large is its window? */

import { estimateTokens } from '../core/cut.js';
import { Fault } from '../core/errors.js';
import type { ModelRequest, ToolDescription } from '../core/model.js';
import type { Answer } from './answer.js';
import { type ContextWindow, TOLD_LESS } from './context-window.js';
import type { OpenAiModelOptions } from './server-ways.js';

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
  let text = `${now} `;
  for (let i = 0; i < LONG_PROMPT_TOKENS; i++) text += `${words[(i * 7 + (i >> 4)) % words.length]} `;
  return `${text}\n${READY}`;
}
