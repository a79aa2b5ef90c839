/** The tools of a turn: which turns have which groups. */
import type { Config } from './config.js';
import { toolSet } from './conversation/turn/call.js';
import { BOARD_CHAT } from './core/task.js';
import {
  type AnyTool,
  TOOL_GROUPS,
  type ToolGroup,
  type ToolSet,
  type ToolsFor,
  type ToolsReady,
  type TurnKind,
} from './core/tool.js';
import type { McpServers } from './mcp/servers.js';
import { type ToolGroups, type ToolParts, toolGroupsOf } from './tool-groups.js';
import { draftTools } from './tools/memory.js';

/**
 * An agent only works on its task: it writes to nobody, delegates nothing and changes nobody's memory (its own takes
 * the place of that group).
 */
const NOT_FOR_AGENTS = new Set<ToolGroup>(['memory', 'agents', 'send', 'schedules', 'reactions', 'export']);

export function createToolsFor(parts: ToolParts): ToolsFor {
  const { config, channels, settings, mcp } = parts;
  const { maxOffered, reactions } = config.tools;
  const { answers, subAgents, programs } = toolGroupsOf(parts);
  const setOf = keptSets(answers, mcp, maxOffered);
  const setOfSubAgent = keptSets(subAgents, mcp, maxOffered);
  const setOfProgram = keptSets(programs, mcp, maxOffered);
  const mayReact = ({ channel, chatKind }: TurnKind) =>
    channels.get(channel)?.react !== undefined &&
    (reactions === 'everywhere' || (reactions === 'groups' && chatKind === 'group'));
  return (turn) => {
    if (turn.draft) return toolSet(draftTools(turn.draft, settings.tier1By));
    // A memory flush is internal, so the persona's restrictions do not apply.
    if (turn.kind === 'flush') return setOf(['memory']);
    const allowed = allowedGroups(config.tools, turn);
    if (turn.kind === 'answer') {
      return setOf(mayReact(turn) ? allowed : allowed.filter((group) => group !== 'reactions'));
    }
    const setOfAgent = turn.chatId === BOARD_CHAT ? setOfProgram : setOfSubAgent;
    const set = setOfAgent(['memory', ...allowed.filter((group) => !NOT_FOR_AGENTS.has(group))]);
    const withheld = TOOL_GROUPS.flatMap((group) => toolsIn(answers, mcp, group, allowed)).filter(
      (tool) => tool.isExternal && !set.tools.includes(tool),
    );
    return { ...set, withheld };
  };
}

/** Waits for the MCP servers if the turn may call them. */
export function createToolsReady(tools: Config['tools'], mcp: McpServers): ToolsReady {
  return async (turn, wanted, signal) => {
    if (allowedGroups(tools, turn).includes('mcp')) await mcp.ready(wanted, signal);
  };
}

/** The groups of a turn: those of its chat, else of its channel, else the general ones, if its persona allows them. */
function allowedGroups(
  { allow, chats, channels }: Config['tools'],
  { chatId, channel, allowed }: TurnKind,
): ToolGroup[] {
  const configured = chats[chatId]?.allow ?? channels[channel]?.allow ?? allow;
  return TOOL_GROUPS.filter((group) => configured.includes(group) && (allowed?.includes(group) ?? true));
}

/** The current tools of a group, in a turn with these groups. */
function toolsIn(
  groups: ToolGroups,
  mcp: McpServers | null,
  name: ToolGroup,
  names: readonly ToolGroup[],
): readonly AnyTool[] {
  if (name === 'mcp') return mcp?.tools() ?? NONE;
  const { list = NONE, beside } = groups[name] ?? {};
  return beside && names.includes(beside.group) ? beside.list : list;
}

const NONE: readonly AnyTool[] = [];

/** Caches sets, since describing tools is slow; a new set is made when a group's list changes. */
function keptSets(
  groups: ToolGroups,
  mcp: McpServers | null,
  maxOffered: number,
): (names: readonly ToolGroup[]) => ToolSet {
  const kept = new Map<string, { lists: (readonly AnyTool[])[]; set: ToolSet }>();
  return (names) => {
    const key = names.join();
    const inOrder = [...names.filter((name) => name !== 'mcp'), ...names.filter((name) => name === 'mcp')];
    const lists = inOrder.map((name) => toolsIn(groups, mcp, name, names));
    const before = kept.get(key);
    if (before?.lists.every((list, n) => list === lists[n])) return before.set;
    const all = lists.flat();
    const offered = all.slice(0, maxOffered);
    const leftOut = all.slice(offered.length).map(({ name }) => name);
    const set = { ...toolSet(offered), ...(leftOut.length > 0 && { leftOut }) };
    kept.set(key, { lists, set });
    return set;
  };
}
