/** Notices for owners: tools that are refused or left out, and a smaller window than expected. Pure. */
import type { ModelRequest, Notice } from '../core/model.js';
import type { Ways } from './server-ways.js';

/** Maximum number of omitted tools named in a notice. */
const MOST_NAMED = 40;

const UNDO =
  '`coterie doctor` forgets this at once, also while the gateway runs; model.context_tokens says how much the model has.';

/** `place`: the server and model. `set`: the configured window in tokens. */
export function noticesFor(
  place: string,
  title: string,
  { set, learnt, mostTools, refused }: Omit<Ways, 'told'> & { set: number | null },
  { tools }: ModelRequest,
): Notice[] {
  const notices: Notice[] = [];
  if (learnt !== null) {
    const text = `${title} ${windowNotice(learnt.how, learnt.tokens, set)} ${UNDO}`;
    notices.push({ key: `window-${learnt.how} ${place}`, text });
  }
  if (mostTools !== null && mostTools < tools.length) {
    const leftOut = tools.slice(mostTools).map(({ name }) => `\`${name}\``);
    const more = leftOut.length > MOST_NAMED ? ` and ${leftOut.length - MOST_NAMED} more` : '';
    const names = `${leftOut.slice(0, MOST_NAMED).join(', ')}${more}`;
    const text = `${title} takes only ${mostTools} tools in one request, so these are left out: ${names}. List under mcp.servers.NAME.tools those that are needed, or set tools.max_offered.`;
    notices.push({ key: `fewer tools: ${place}`, text });
  }
  if (tools.length > 0 && refused.includes('tools')) {
    const text = `${title} refuses tools, so personas can talk, but neither read nor write memory. Choose a model that takes tools (model.name). It is tried again once an hour, and at once after \`coterie doctor\`.`;
    notices.push({ key: `no tools: ${place}`, text });
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
