/** The port of tools: what a model can do besides talking. Each call gets a context with everything it may use. */
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
  /** The agent that acts, on a task, for this persona or for a program; left out: the persona itself. */
  agent?: AgentPlace;
}

/** Whether an owner asked for it in a control chat, which allows more than any other order. */
export async function isOwnersOrder({ chatId, controlChats, asker }: Authorisation): Promise<boolean> {
  return controlChats.includes(chatId) && (await asker.isOwner());
}

/** Where an agent works on a task. */
export interface AgentPlace {
  id: string;
  taskId: string;
  /** Its working folder, an absolute path; null: the one it was given lies outside the roots, so that no command runs. */
  cwd: string | null;
  /** Folders that its files and commands may reach, absolute, links followed; the first is where relative paths begin if there is no `cwd`. */
  roots: readonly string[];
  /** What its commands have in their environment beside the usual. */
  env: Readonly<Record<string, string>>;
  /** Its internal space in this chat, which it may read and write. */
  space: string;
  /** The one that all its tasks read; `mayWrite`: this task may write it as long as it is not tainted. */
  shared: { folder: string; mayWrite: boolean };
}

/**
 * The people whose messages led to a call, and their rights: a call does nothing that they could not do by a command. Of
 * several people the one with the fewest rights counts; events from inside the gateway have no person. Looked up when first
 * needed, and then kept for the turn.
 */
export interface Asker {
  /** Empty for events from inside the gateway. */
  senders(): Promise<ChatId[]>;
  /** Whether all of them are owners; false without people. */
  isOwner(): Promise<boolean>;
  /**
   * Whether each of them may change things in the call's chat, as a group's administrators may; may ask the platform. In
   * a direct chat everybody may; in a group nobody may without people.
   */
  mayChange(): Promise<Permission>;
}

export interface ToolContext {
  /** Undefined only if the caller forgot it: tools then refuse. */
  authorisation: Authorisation | undefined;
  /** Where the turn runs. */
  room: RoomId;
  /** The turn and the call; both stay the same when the turn is resumed. */
  turnId: string;
  callId: string;
  /** Aborted by `/stop`, `/reset` and shutdown: nothing may be written afterwards. */
  signal: AbortSignal;
  now: number;
  /** The IANA zone for dates in files. */
  timezone: string;
  log: Log;
  /** Who writes and in which context; stored with each version of memory. */
  cause: Cause;
  /** The tiers as this turn has seen them, by `seenKey`. Reading or writing a tier updates it. */
  seen: Map<string, SeenTier>;
  /** Whether the model has seen untrusted text. Left out: no. */
  isTainted?: boolean;
  /** The event in the journal that led to the turn. Left out: none. */
  eventId?: string;
}

/** A message that a persona sends in addition to its answer, through a tool. */
export interface SideMessage {
  chatId: ChatId;
  personaId: PersonaId;
  /** The turn that sends it, and the turn's room, which determines the thread if the target is the turn's own chat. */
  turnId: string;
  room: RoomId;
  /** Idempotency key: stable for the same message of the same turn; 24 letters and digits. */
  key: string;
  /** Markdown; may be empty if there is a file. */
  text: string;
  file: OutgoingFile | null;
}

/** A persona's reaction to a message, through a tool. */
export interface Reaction {
  room: RoomId;
  personaId: PersonaId;
  turnId: string;
  /** Idempotency key: stable for the same reaction of the same turn; 24 letters and digits. */
  key: string;
  /** As the prompt names the message; null: the newest of those that the turn answers. */
  messageId: number | null;
  emoji: string;
}

export function seenKey(chatId: ChatId, personaId: PersonaId, tier: number): string {
  return `${chatId}/${personaId}/${tier}`;
}

/** `content` goes to the model unchanged. `failed` marks a content that describes an error. */
export interface ToolResult {
  content: string;
  failed: boolean;
  /** A write that failed for a reason other than its content: the file had changed, or could not be written. */
  unsaved?: true;
  /** It may replace an answer: the transcript's text if the turn then ends without words. */
  said?: string;
  /** It holds untrusted text, although results of its tool do not always. */
  outside?: true;
  /** It holds no untrusted text, although results of its tool mostly do. */
  inside?: true;
  /** For the journal instead of `content`: the output of a command. */
  results?: { stdout: string; stderr: string; code: number | null };
  /** It began work that outlives the turn, and whose end is the outcome in the journal. */
  isBeginning?: true;
}

/** Suspends the turn until the result of this call arrives (a `resume` receipt), or until the time limit. */
export interface Wait {
  waitsFor: string;
  /** ms; null means no limit. */
  until: number | null;
}

/** By these groups an operator says which tools a chat, a channel and a persona have. */
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

/** The set of tools depends on these. */
export interface TurnKind {
  /** `agent`: a task, whose agent acts for this persona. */
  kind: 'answer' | 'flush' | 'agent';
  chatId: ChatId;
  personaId: PersonaId;
  /** The sender whom the turn answers; empty for a flush. */
  senderId: ChatId;
  /** The groups of tools that the persona's front matter names, or the agent's file; null: it names none. */
  allowed: readonly string[] | null;
  channel: string;
  chatKind: 'direct' | 'group';
  /** The memory tools alone, on this draft. Left out: on the files. */
  draft?: Memory;
}

/** The tools of one turn and their descriptions for the model. */
export interface ToolSet {
  tools: readonly AnyTool[];
  descriptions: ToolDescription[];
  /** Roughly what the descriptions take of the model's context window, in tokens. */
  tokens: number;
  /** The names of tools that did not fit into one request. Left out: none. */
  leftOut?: readonly string[];
  /** Of an agent: the external tools that there are and it does not have. Calling one is refused as leaving the machine is. */
  withheld?: readonly AnyTool[];
}

/** Selects the tools of a turn. Called in every turn, so sets should be prepared once. */
export type ToolsFor = (turn: TurnKind) => ToolSet;

/**
 * Resolves when the tools of a turn are there as far as they will be soon: at once but right after the start. `wanted`: the
 * names of calls that wait to be run, which is worth waiting for a little longer.
 */
export type ToolsReady = (turn: TurnKind, wanted: readonly string[], signal: AbortSignal) => Promise<void>;

export interface Tool<Parameters> {
  name: string;
  description: string;
  /** A few words for "what you can do" in the prompt; default: the description. null: those of another tool say it, too. */
  hint?: string | null;
  /** A zod schema, or a JSON schema whose tool validates its own input (MCP). */
  parameters: ZodType<Parameters> | JsonSchema;
  /**
   * low: only reads, so that calls in a row run side by side; medium: writes or sends; high: runs foreign code and needs
   * a person's approval. None is run again where a crash left its outcome unknown (but see `whatCame`).
   */
  risk: 'low' | 'medium' | 'high';
  /** Each call is seen by people at once, so a turn may make only a few (`limits.sends_per_turn`). */
  isSend?: true;
  /** After this time its signal is aborted, and the model is told; default: two minutes. */
  timeoutMs?: number;
  /** It leaves the machine: an agent may call it only where an owner has allowed its very task. */
  isExternal?: true;
  /** Its arguments for the journal, where some of them must be redacted. */
  journalled?(given: Record<string, unknown>): Record<string, unknown>;
  /** Its results are untrusted text: they taint the turn. */
  isFromOutside?: true;
  /**
   * Where this call reaches beyond the chat, so that in a tainted turn a person is asked first: a host for `web_fetch`.
   * null: nowhere. Left out: to the chat that `chat_id` names.
   */
  reachesOut?(parameters: Parameters, context: ToolContext): Promise<Reach | null> | Reach | null;
  /** Why a call would do nothing here, so that nobody is asked: words for the model. null: it would. */
  refusalHere?(authorisation: Authorisation): string | null;
  execute(parameters: Parameters, context: ToolContext): Promise<ToolResult | Wait>;
  /** The outcome of a call that a crash cut off, if the store has it; null: unknown. */
  outcomeAfterCrash?(context: ToolContext): Promise<ToolResult | null>;
}

/** Where a call reaches: to another chat, or to a host (which asks no one if a person named it in the conversation). */
export type Reach = { kind: 'chat'; chatId: ChatId } | { kind: 'host'; host: string };

export interface JsonSchema {
  type: 'object';
  [key: string]: unknown;
}

/** A tool in a list: the caller validates parameters with its schema first. */
export type AnyTool = Omit<Tool<never>, 'parameters'> & { parameters: ZodType<unknown> | JsonSchema };
