/** Every tool in its group, and how many there are. */
import type { Config } from './config.js';
import type { Deliver, Services } from './conversation/services.js';
import type { Artifacts } from './core/artifacts.js';
import type { ChatExports } from './core/chat-record.js';
import { createSlots } from './core/concurrency.js';
import type { Outward } from './core/network.js';
import type { Skills } from './core/skills.js';
import type { Agents, Delegation } from './core/task.js';
import type { AnyTool, ToolGroup } from './core/tool.js';
import type { McpServers } from './mcp/servers.js';
import { activateSkill } from './tools/activate-skill.js';
import { agentMemoryTools } from './tools/agent-memory.js';
import { manageClipboard } from './tools/clipboard.js';
import { glob, grep } from './tools/files/find.js';
import { editFile, readFile, readSkillFile, writeFile } from './tools/files/read-write.js';
import type { ToolFolders } from './tools/files/roots.js';
import { memoryTools, readTieredMemory, searchMemory } from './tools/memory.js';
import { react } from './tools/react.js';
import { scheduleTools } from './tools/schedules.js';
import { exportChat, keepArtifact, sendMessage, writeArtifact } from './tools/sending.js';
import { sessionsSpawn } from './tools/sessions-spawn.js';
import { shell } from './tools/shell/shell.js';
import { systemNetwork } from './tools/web/request.js';
import { createPageReader, webFetch } from './tools/web/web-fetch.js';

type Used = 'store' | 'channels' | 'personas' | 'memory' | 'clipboard' | 'archives' | 'recall' | 'settings';

export interface ToolParts extends Pick<Services, Used | 'zone' | 'clock' | 'jobs'>, ToolFolders {
  config: { groupsDir: string; tools: Config['tools'] };
  outward: Outward;
  deliver: Deliver;
  exports: ChatExports;
  artifacts: Artifacts;
  skills: Skills;
  agents: Agents;
  environment: Record<string, string | undefined>;
  newId: () => string;
  /** null: no MCP server is configured. */
  mcp: McpServers | null;
  /** Absent: there are no agents. */
  delegation?: Delegation;
}

/** Concurrent searches; each is a thread that may use a whole CPU core. */
const MOST_SEARCHES = 8;

/** The tools of each group but `mcp`; `beside`: its tools in turns that also have this other group. */
export type ToolGroups = Partial<
  Record<ToolGroup, { list: readonly AnyTool[]; beside?: { group: ToolGroup; list: readonly AnyTool[] } }>
>;

/** Every group but `mcp`; agents have some of them in another form. */
export function toolGroupsOf(parts: ToolParts): {
  answers: ToolGroups;
  subAgents: ToolGroups;
  programs: ToolGroups;
} {
  const { config, store, channels, archives, recall, deliver, zone, clock, settings } = parts;
  const post = deliver.sideMessage;
  const withSkills: ToolFolders = parts;
  const folders: ToolFolders = { ...parts, skills: null };
  const slots = createSlots(MOST_SEARCHES);
  const filesIn = (folders: ToolFolders) => {
    const find = { folders, clock, slots };
    return [readFile(folders), writeFile(folders), editFile(folders), glob(find), grep(find)];
  };
  const shellIn = (folders: ToolFolders) => [shell({ ...parts, folders, settings: config.tools.shell })];
  const { web } = config.tools;
  const network = systemNetwork(parts.outward);
  const activate = activateSkill(parts.skills);
  const reactTool = react({ post: deliver.reaction, emojiOn: (channel) => channels.get(channel)?.reactions });
  const forAll: ToolGroups = {
    search: { list: [searchMemory(recall, zone)] },
    clipboard: { list: [manageClipboard(parts.clipboard)] },
    schedules: { list: scheduleTools({ jobs: parts.jobs, chat: store.chat }) },
    reactions: { list: [reactTool] },
    send: { list: [sendMessage({ groupsDir: config.groupsDir, folders, archives, post })] },
    export: { list: [exportChat({ exports: parts.exports, post, zone })] },
    web: { list: [webFetch({ settings: web, network, reader: createPageReader(clock), clock })] },
    agents: { list: parts.delegation ? [sessionsSpawn(parts.delegation)] : [] },
    // Files of skills are read by the tools for files where there are some, else by a tool of their own.
    files: { list: filesIn(folders), beside: { group: 'skills', list: filesIn(withSkills) } },
    shell: { list: shellIn(folders), beside: { group: 'skills', list: shellIn(withSkills) } },
    skills: {
      list: [activate, readSkillFile(withSkills)],
      beside: { group: 'files', list: [activate] },
    },
  };
  const ofItself = agentMemoryTools(parts);
  // An agent's artifacts are only referred to in its result, never sent.
  const ofAgents = { ...forAll, artifacts: { list: [keepArtifact(parts)] } };
  return {
    answers: {
      ...forAll,
      memory: { list: memoryTools(parts.memory, settings.tier1By) },
      artifacts: { list: [writeArtifact({ artifacts: parts.artifacts, post })] },
    },
    subAgents: { ...ofAgents, memory: { list: [readTieredMemory(parts.memory), ...ofItself] } },
    // A program's task has no persona.
    programs: { ...ofAgents, memory: { list: ofItself } },
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
