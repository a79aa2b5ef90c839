/** What a model may do in a turn: every tool there is, in groups, and which turns have which. */
import type { Config } from './config.js';
import type { Deliver, Services } from './conversation/services.js';
import { toolSet } from './conversation/turn/call.js';
import type { Artifacts } from './core/artifacts.js';
import type { ChatExports } from './core/chat-record.js';
import { createSlots } from './core/concurrency.js';
import type { Outward } from './core/network.js';
import type { PromptFiles } from './core/origin.js';
import type { Skills } from './core/persona.js';
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
import { createPageReader } from './tools/web/page-reader.js';
import { systemNetwork } from './tools/web/request.js';
import { webFetch } from './tools/web/web-fetch.js';

type Used = 'store' | 'channels' | 'personas' | 'memory' | 'clipboard' | 'archives' | 'recall' | 'settings';

interface ToolParts extends Pick<Services, Used | 'zone' | 'clock' | 'jobs'> {
  config: Pick<Config, 'groupsDir' | 'tools'>;
  outward: Outward;
  deliver: Pick<Deliver, 'reaction' | 'sideMessage'>;
  exports: Pick<ChatExports, 'make'>;
  artifacts: Pick<Artifacts, 'write'>;
  skills: Skills;
  /** `data/media`. */
  mediaFolder: string;
  /** `data/work`. */
  workFolder: string;
  /** Marks files that a prompt shows. */
  promptFiles: PromptFiles;
  /** `data/workspace`. */
  workspaceFolder: string;
  /** `data/skills`. */
  skillsFolder: string;
  agents: Pick<Agents, 'read' | 'append'>;
  /** Paths that no command may see. */
  hidden: readonly string[];
  environment: Record<string, string | undefined>;
  newId: () => string;
  /** The compiled `search-worker.js`, if it is not beside this module. */
  searchWorker?: URL;
  /** null: no server is configured. */
  mcp: Pick<McpServers, 'tools'> | null;
  /** Left out: there are no agents. */
  delegation?: Delegation;
}

/** At once: each is a thread that may keep a processor busy. */
const MOST_SEARCHES = 8;

/** A group's tools as they are now, beside other groups: the same list as long as they are the same. */
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
  // An agent's result refers to its artifacts; nobody is sent one.
  const kept = [keepArtifact(parts)];
  const ofAgents = { ...groups, artifacts: () => kept };
  const setOfSubAgent = keptSets({ ...ofAgents, memory: () => ofBoth }, maxOffered);
  // A program's task has no persona.
  const setOfProgram = keptSets({ ...ofAgents, memory: () => ofItself }, maxOffered);
  const mayReact = reactionsIn(parts);
  return (turn) => {
    if (turn.draft) return toolSet(draftTools(turn.draft, settings.tier1By));
    // A memory flush is the gateway's own affair, whatever the persona may do otherwise.
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
 * An agent works on its task and speaks with nobody, gives no work to others, and changes nobody's memory (its own stands
 * in the place of that group).
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

/** Waits for MCP servers that a turn is to call. */
export function createToolsReady(tools: Config['tools'], mcp: Pick<McpServers, 'ready'>): ToolsReady {
  return async (turn, wanted, signal) => {
    if (allowedGroups(tools, turn).includes('mcp')) await mcp.ready(wanted, signal);
  };
}

/** The groups that a turn has: those of its chat, else of its channel, else of all; as far as its persona goes along. */
function allowedGroups(
  { allow, chats, channels }: Pick<Config['tools'], 'allow' | 'chats' | 'channels'>,
  { chatId, channel, allowed }: Pick<TurnKind, 'chatId' | 'channel' | 'allowed'>,
): ToolGroup[] {
  const configured = chats[chatId]?.allow ?? channels[channel]?.allow ?? allow;
  return TOOL_GROUPS.filter((group) => configured.includes(group) && (allowed?.includes(group) ?? true));
}

function reactionsIn({ channels, config: { tools } }: ToolParts) {
  return ({ channel, chatKind }: TurnKind): boolean =>
    channels.get(channel)?.react !== undefined &&
    (tools.reactions === 'everywhere' || (tools.reactions === 'groups' && chatKind === 'group'));
}

/** Sets are kept, for describing tools takes time; a group whose list is another one makes a new set. */
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

/** How many tools of the gateway's own each group has, for `doctor`, which makes none of them. */
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

/** Of the tools of servers, in their order, those that have no place in a request of any chat that has them. */
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
  // Files of skills are read by a tool of the group itself where there is none for files.
  const reading = groups.has('skills') && !groups.has('files') ? 1 : 0;
  return [...groups].reduce((sum, group) => sum + OWN_TOOLS[group], reading);
}
