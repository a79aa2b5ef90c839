/** Beside step 5: owners are told once that there are more tools than a request may offer, and which of them are left out. */
import type { ToolsFor } from '../../core/tool.js';
import type { Deliver } from '../services.js';

const MOST_NAMED = 40;

/** The same tools, of which those that are left out are told. */
export function toolsTelling(toolsFor: ToolsFor, { tellOwners }: Deliver): ToolsFor {
  return (turn) => {
    const set = toolsFor(turn);
    if (set.leftOut !== undefined)
      void tellOwners({ key: 'tools left out', text: wordsOf(set.leftOut, set.tools.length) });
    return set;
  };
}

function wordsOf(names: readonly string[], offered: number): string {
  const named = names.slice(0, MOST_NAMED).map((name) => `\`${name}\``);
  const more = names.length > named.length ? ` and ${names.length - named.length} more` : '';
  return (
    `There are more tools than the ${offered} that one request to a model offers (tools.max_offered), so personas do not have ${named.join(', ')}${more}. ` +
    'List under mcp.servers.NAME.tools those that are needed; `doctor` names all that are left out.'
  );
}
