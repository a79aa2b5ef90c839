/** The tools of a turn: every tool in its group, and which turns have which groups. */
import type { Config } from './config.js';
import type { Deliver, Services } from './conversation/services.js';
import { toolSet } from './conversation/turn/call.js';
import type { Artifacts } from './core/artifacts.js';
import type { ChatExports } from './core/chat-record.js';
import { createSlots } from './core/concurrency.js';
import type { Outward } from './core/network.js';
import type { PromptFiles } from './core/origin.js';
import type { Skills } from './core/skills.js';
import { type Agents, BOARD_CHAT, type Delegation } from './core/task.js';
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
import { activateSkill } from './tools/activate-skill.js';
import { agentMemoryTools } from './tools/agent-memory.js';
import { manageClipboard } from './tools/clipboard.js';
import { glob, grep } from './tools/files/find.js';
import { editFile, readFile, readSkillFile, writeFile } from './tools/files/read-write.js';
import type { ToolFolders } from './tools/files/roots.js';
import { draftTools, memoryTools, readTieredMemory, searchMemory } from './tools/memory.js';
import { react } from './tools/react.js';
import { scheduleTools } from './tools/schedules.js';
import { exportChat, keepArtifact, sendMessage, writeArtifact } from './tools/sending.js';
import { sessionsSpawn } from './tools/sessions-spawn.js';
import { shell } from './tools/shell/shell.js';
import { systemNetwork } from './tools/web/request.js';
import { createPageReader, webFetch } from './tools/web/web-fetch.js';

type Used = 'store' | 'channels' | 'personas' | 'memory' | 'clipboard' | 'archives' | 'recall' | 'settings';

interface ToolParts extends Pick<Services, Used | 'zone' | 'clock' | 'jobs'> {
  config: { groupsDir: string; tools: Config['tools'] };
  outward: Outward;
  deliver: Deliver;
  exports: ChatExports;
  artifacts: Artifacts;
  skills: Skills;
  /** `data/media`. */
  mediaFolder: string;
  /** `data/work`. */
  workFolder: string;
  /** Marks files shown in a prompt. */
  promptFiles: PromptFiles;
  /** `data/workspace`. */
  workspaceFolder: string;
  /** `data/skills`. */
  skillsFolder: string;
  agents: Agents;
  /** Paths hidden from commands. */
  hidden: readonly string[];
  environment: Record<string, string | undefined>;
  newId: () => string;
  /** The compiled `search-worker.js`; default: the one beside this module. */
  searchWorker?: URL;
  /** null: no MCP server is configured. */
  mcp: McpServers | null;
  /** Absent: there are no agents. */
  delegation?: Delegation;
}

/** Concurrent searches; each is a thread that may use a whole CPU core. */
const MOST_SEARCHES = 8;

/** The current tools of a group, given the turn's other groups. Returns the same array until they change. */
type Groups = Partial<Record<ToolGroup, (beside: readonly ToolGroup[]) => readonly AnyTool[]>>;

const NONE: readonly AnyTool[] = [];

export function createToolsFor(parts: ToolParts): ToolsFor {
  const { config, settings } = parts;
  const forFiles = memoryTools(parts.memory, settings.tier1By);
  const groups = groupsOf(parts);
  const { maxOffered } = config.tools;
  const setOf = keptSets({ ...groups, memory: () => forFiles }, maxOffered);
  const ofItself = agentMemoryTools(parts);
  const ofBoth = [readTieredMemory(parts.memory), ...ofItself];
  // An agent's artifacts are only referred to in its result, never sent.
  const kept = [keepArtifact(parts)];
  const ofAgents = { ...groups, artifacts: () => kept };
  const setOfSubAgent = keptSets({ ...ofAgents, memory: () => ofBoth }, maxOffered);
  // A program's task has no persona.
  const setOfProgram = keptSets({ ...ofAgents, memory: () => ofItself }, maxOffered);
  const mayReact = reactionsIn(parts);
  return (turn) => {
    if (turn.draft) return toolSet(draftTools(turn.draft, settings.tier1By));
    // A memory flush is internal, so the persona's restrictions do not apply.
    if (turn.kind === 'flush') return setOf(['memory']);
    const allowed = allowedGroups(config.tools, turn);
    if (turn.kind === 'agent') {
      const setOfAgent = turn.chatId === BOARD_CHAT ? setOfProgram : setOfSubAgent;
      const set = setOfAgent(['memory', ...allowed.filter((group) => !NOT_FOR_AGENTS.has(group))]);
      const withheld = TOOL_GROUPS.flatMap((group) => groups[group]?.(allowed) ?? []).filter(
        (tool) => tool.isExternal && !set.tools.includes(tool),
      );
      return { ...set, withheld };
    }
    return setOf(mayReact(turn) ? allowed : allowed.filter((group) => group !== 'reactions'));
  };
}

/**
 * An agent only works on its task: it writes to nobody, delegates nothing and changes nobody's memory (its own takes
 * the place of that group).
 */
const NOT_FOR_AGENTS: ReadonlySet<ToolGroup> = new Set([
  ...(['memory', 'agents', 'send', 'schedules', 'reactions', 'export'] as const),
]);

/** Every group but memory. */
function groupsOf(parts: ToolParts): Groups {
  const { config, store, channels, archives, recall, deliver, zone, clock } = parts;
  const search = [searchMemory(recall, zone)];
  const clipboard = [manageClipboard(parts.clipboard)];
  const schedules = scheduleTools({ jobs: parts.jobs, chat: store.chat });
  const reactions = [
    react({
      post: deliver.reaction,
      emojiOn: (channel) => channels.get(channel)?.reactions,
    }),
  ];
  const post = deliver.sideMessage;
  const exporting = [exportChat({ exports: parts.exports, post, zone })];
  const { workFolder, mediaFolder, workspaceFolder, skillsFolder, hidden, promptFiles } = parts;
  const folders = {
    workFolder,
    mediaFolder,
    workspaceFolder,
    skillsFolder,
    skills: null,
    hidden,
    promptFiles,
  };
  const withSkills = { ...folders, skills: parts.skills };
  const send = [sendMessage({ groupsDir: config.groupsDir, folders, archives, post })];
  const artifacts = [writeArtifact({ artifacts: parts.artifacts, post })];
  const slots = createSlots(MOST_SEARCHES);
  const { environment, newId } = parts;
  const filesIn = (folders: ToolFolders) => {
    const find = { folders, clock, slots, worker: parts.searchWorker };
    return [readFile(folders), writeFile(folders), editFile(folders), glob(find), grep(find)];
  };
  const commandsIn = (folders: ToolFolders) => [
    shell({ folders, clock, newId, settings: config.tools.shell, environment }),
  ];
  const files = { alone: filesIn(folders), withSkills: filesIn(withSkills) };
  const commands = { alone: commandsIn(folders), withSkills: commandsIn(withSkills) };
  const activate = activateSkill(parts.skills);
  const skills = { withFiles: [activate], alone: [activate, readSkillFile(withSkills)] };
  const web = [
    webFetch({
      settings: config.tools.web,
      network: systemNetwork(parts.outward),
      reader: createPageReader(clock),
      clock,
    }),
  ];
  const agents = parts.delegation ? [sessionsSpawn(parts.delegation)] : NONE;
  return {
    search: () => search,
    clipboard: () => clipboard,
    schedules: () => schedules,
    reactions: () => reactions,
    send: () => send,
    files: (beside) => (beside.includes('skills') ? files.withSkills : files.alone),
    export: () => exporting,
    shell: (beside) => (beside.includes('skills') ? commands.withSkills : commands.alone),
    web: () => web,
    artifacts: () => artifacts,
    skills: (beside) => (beside.includes('files') ? skills.withFiles : skills.alone),
    mcp: () => parts.mcp?.tools() ?? NONE,
    agents: () => agents,
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

function reactionsIn({ channels, config: { tools } }: ToolParts) {
  return ({ channel, chatKind }: TurnKind): boolean =>
    channels.get(channel)?.react !== undefined &&
    (tools.reactions === 'everywhere' || (tools.reactions === 'groups' && chatKind === 'group'));
}

/** Caches sets, since describing tools is slow; a new set is made when a group's list changes. */
function keptSets(groups: Groups, maxOffered: number): (names: readonly ToolGroup[]) => ToolSet {
  const kept = new Map<string, { lists: (readonly AnyTool[])[]; set: ToolSet }>();
  return (names) => {
    const key = names.join();
    const inOrder = [...names.filter((name) => name !== 'mcp'), ...names.filter((name) => name === 'mcp')];
    const lists = inOrder.map((name) => groups[name]?.(names) ?? []);
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

/** The number of built-in tools per group, for `doctor`, which creates none. */
const OWN_TOOLS: Record<ToolGroup, number> = {
  memory: 4,
  search: 1,
  clipboard: 1,
  schedules: 5,
  reactions: 1,
  send: 1,
  files: 5,
  export: 1,
  shell: 1,
  web: 1,
  mcp: 0,
  agents: 1,
  artifacts: 1,
  skills: 1,
};

/** The tools of MCP servers, in order, that exceed `tools.max_offered` in some chat that has them. */
export function leftOutOf(
  { allow, chats, channels, maxOffered }: Config['tools'],
  names: readonly string[],
): string[] {
  const allowances = [{ allow }, ...Object.values(chats), ...Object.values(channels)];
  const own = allowances.filter((each) => each.allow.includes('mcp')).map((each) => ownTools(each.allow));
  return own.length === 0 ? [] : [...new Set(names)].slice(Math.max(0, maxOffered - Math.max(...own)));
}

function ownTools(allow: readonly ToolGroup[]): number {
  const groups = new Set(allow);
  // Without the group `files`, `skills` has its own tool to read files.
  const reading = groups.has('skills') && !groups.has('files') ? 1 : 0;
  return [...groups].reduce((sum, group) => sum + OWN_TOOLS[group], reading);
}
