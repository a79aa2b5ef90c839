/** The port of tools. Each call gets a context with everything it may use. */
import type { ZodType } from 'zod';
import type { Permission } from './access.js';
import type { OutgoingFile } from './channel.js';
import type { ChatId, PersonaId, RoomId } from './ids.js';
import type { Log } from './log.js';
import type { Cause, Memory, SeenTier } from './memory.js';
import type { ToolDescription } from './model.js';

/** Created by the gateway for one turn, never by the model. Without one, every tool refuses. */
export interface Authorisation {
  chatId: ChatId;
  personaId: PersonaId;
  senderId: ChatId;
  channel: string;
  /** Chats from which owners may act on any other chat. */
  controlChats: ChatId[];
  asker: Asker;
  /** The agent that acts on a task, for this persona or for a program. Absent: the persona itself. */
  agent?: AgentPlace;
}

/** Whether an owner asked for it in a control chat, which permits more than any other order. */
export async function isOwnersOrder({ chatId, controlChats, asker }: Authorisation): Promise<boolean> {
  return controlChats.includes(chatId) && (await asker.isOwner());
}

export interface AgentPlace {
  id: string;
  taskId: string;
  /** Working folder, absolute; null: the requested one is outside the roots, so no command runs. */
  cwd: string | null;
  /** Absolute folders, links resolved, that files and commands may reach; the first is the base if `cwd` is null. */
  roots: readonly string[];
  /** Additional environment of its commands. */
  env: Readonly<Record<string, string>>;
  /** Its internal space in this chat, readable and writable. */
  space: string;
  /** The space shared by all its tasks; `mayWrite`: this task may write it until it is tainted. */
  shared: { folder: string; mayWrite: boolean };
}

/**
 * The people whose messages led to a call. A call may do only what each of them could do by a command. Events from
 * inside the gateway have no people. Looked up on first use and cached for the turn.
 */
export interface Asker {
  /** Empty for events from inside the gateway. */
  senders(): Promise<ChatId[]>;
  /** Whether all are owners; false without people. */
  isOwner(): Promise<boolean>;
  /**
   * Whether all may change things in the call's chat, like a group's administrators. May ask the platform. Direct
   * chats: always yes; groups without people: no.
   */
  mayChange(): Promise<Permission>;
}

export interface ToolContext {
  /** Undefined only by mistake: tools then refuse. */
  authorisation: Authorisation | undefined;
  room: RoomId;
  /** Both ids stay the same when the turn resumes. */
  turnId: string;
  callId: string;
  /** Aborted by `/stop`, `/reset` and shutdown; nothing may be written afterwards. */
  signal: AbortSignal;
  now: number;
  /** IANA zone for dates in files. */
  timezone: string;
  log: Log;
  /** Stored with each version of memory. */
  cause: Cause;
  /** The tiers as this turn has seen them, by `seenKey`; updated by reads and writes. */
  seen: Map<string, SeenTier>;
  /** The model has seen untrusted text. Absent: no. */
  isTainted?: boolean;
  /** The journal event that led to the turn. Absent: none. */
  eventId?: string;
}

/** A message that a persona sends through a tool, in addition to its answer. */
export interface SideMessage {
  chatId: ChatId;
  personaId: PersonaId;
  /** The sending turn and its room, which determines the thread if the target is the same chat. */
  turnId: string;
  room: RoomId;
  /** Idempotency key: stable for this message of this turn; 24 letters and digits. */
  key: string;
  /** Markdown; may be empty if there is a file. */
  text: string;
  file: OutgoingFile | null;
}

/** A persona's reaction to a message, sent through a tool. */
export interface Reaction {
  room: RoomId;
  personaId: PersonaId;
  turnId: string;
  /** Idempotency key: stable for this reaction of this turn; 24 letters and digits. */
  key: string;
  /** Message id as in the prompt; null: the newest message that the turn answers. */
  messageId: number | null;
  emoji: string;
}

export function seenKey(chatId: ChatId, personaId: PersonaId, tier: number): string {
  return `${chatId}/${personaId}/${tier}`;
}

/** `content` goes to the model unchanged. `failed`: it describes an error. */
export interface ToolResult {
  content: string;
  failed: boolean;
  /** A write that failed for a reason other than its content: a changed or unwritable file. */
  unsaved?: true;
  /** The answer's text in the transcript if the turn ends without words. */
  said?: string;
  /** Untrusted text, although the tool's results usually are not. */
  outside?: true;
  /** Trusted text, although the tool's results usually are not. */
  inside?: true;
  /** Output of a command, for the journal in place of `content`. */
  results?: { stdout: string; stderr: string; code: number | null };
  /** It started work that outlives the turn; the end of that work is the outcome in the journal. */
  isBeginning?: true;
}

/** Suspends the turn until a `resume` receipt brings the call's result, or the time limit. */
export interface Wait {
  waitsFor: string;
  /** ms; null: no limit. */
  until: number | null;
}

/** Groups by which operators choose the tools of a chat, a channel or a persona. */
export const TOOL_GROUPS = [
  'memory',
  'search',
  'clipboard',
  'schedules',
  'reactions',
  'send',
  'files',
  'export',
  'shell',
  'web',
  'mcp',
  'agents',
  'artifacts',
  'skills',
] as const;

export type ToolGroup = (typeof TOOL_GROUPS)[number];

export interface TurnKind {
  /** `agent`: a task, whose agent acts for this persona. */
  kind: 'answer' | 'flush' | 'agent';
  chatId: ChatId;
  personaId: PersonaId;
  /** The sender being answered; empty for a flush. */
  senderId: ChatId;
  /** The tool groups in the persona's front matter or the agent's file; null: not specified. */
  allowed: readonly string[] | null;
  channel: string;
  chatKind: 'direct' | 'group';
  /** Offers only the memory tools, on this draft. Absent: on the files. */
  draft?: Memory;
}

export interface ToolSet {
  tools: readonly AnyTool[];
  descriptions: ToolDescription[];
  /** Estimated size of the descriptions, in tokens. */
  tokens: number;
  /** Names of tools that did not fit into a request. */
  leftOut?: readonly string[];
  /** External tools that this agent lacks. Calling one is refused like leaving the machine. */
  withheld?: readonly AnyTool[];
}

/** Selects the tools of a turn. Called for every turn, so prepare the sets once. */
export type ToolsFor = (turn: TurnKind) => ToolSet;

/** Resolves once the tools are available; waits longer only after the start, and longest for `wanted` (pending calls). */
export type ToolsReady = (turn: TurnKind, wanted: readonly string[], signal: AbortSignal) => Promise<void>;

export interface Tool<Parameters> {
  name: string;
  description: string;
  /** A few words for "what you can do" in the prompt. Absent: the description. null: covered by another tool's hint. */
  hint?: string | null;
  /** A zod schema, or a JSON schema if the tool validates its own input (MCP). */
  parameters: ZodType<Parameters> | JsonSchema;
  /**
   * low: only reads, so consecutive calls run in parallel; medium: writes or sends; high: runs foreign code and needs
   * approval. A call with an unknown outcome after a crash is never retried (see `outcomeAfterCrash`).
   */
  risk: 'low' | 'medium' | 'high';
  /** Its calls are visible to people at once; limited by `limits.sends_per_turn`. */
  isSend?: true;
  /** Time-out in ms, after which its signal aborts and the model is told. Absent: two minutes. */
  timeoutMs?: number;
  /** It leaves the machine: an agent may call it only if an owner allowed its task. */
  isExternal?: true;
  /** Its arguments for the journal, with secrets redacted. */
  journalled?(given: Record<string, unknown>): Record<string, unknown>;
  /** Its results are untrusted text and taint the turn. */
  isFromOutside?: true;
  /**
   * Where this call reaches beyond the chat (a host for `web_fetch`); a tainted turn then needs approval. null:
   * nowhere. Absent: the chat in `chat_id`.
   */
  reachesOut?(parameters: Parameters, context: ToolContext): Promise<Reach | null> | Reach | null;
  /** Why a call would do nothing here (so nobody is asked to approve it); words for the model. null: it would work. */
  refusalHere?(authorisation: Authorisation): string | null;
  execute(parameters: Parameters, context: ToolContext): Promise<ToolResult | Wait>;
  /** The stored outcome of a call that a crash interrupted; null: unknown. */
  outcomeAfterCrash?(context: ToolContext): Promise<ToolResult | null>;
}

/** Another chat, or a host (no approval needed if a person named it in the conversation). */
export type Reach = { kind: 'chat'; chatId: ChatId } | { kind: 'host'; host: string };

export interface JsonSchema {
  type: 'object';
  [key: string]: unknown;
}

/** A tool in a list; the caller validates parameters with its schema first. */
export type AnyTool = Omit<Tool<never>, 'parameters'> & { parameters: ZodType<unknown> | JsonSchema };
