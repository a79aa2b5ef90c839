import type { ZodType } from 'zod';
import type { Authorisation } from './authorisation.js';
import type { OutgoingFile } from './channel.js';
import type { ChatId, PersonaId, RoomId } from './ids.js';
import type { Log } from './log.js';
import type { Cause, MemoryDraft, SeenTier } from './memory.js';
import type { ToolDescription } from './model.js';

export interface ToolContext {
  authorisation: Authorisation | undefined;
  room: RoomId;
  /** Both ids stay the same when the turn resumes. */
  turnId: string;
  callId: string;
  /** Nothing may be written once it aborts. */
  signal: AbortSignal;
  now: number;
  timezone: string;
  log: Log;
  cause: Cause;
  /** By `seenKey`; updated by reads and writes. */
  seen: Map<string, SeenTier>;
  /** The model has seen untrusted text. */
  isTainted?: boolean;
  eventId?: string;
}

/** Sent by a persona through a tool, besides its answer. */
export interface SideMessage {
  chatId: ChatId;
  personaId: PersonaId;
  /** The room determines the thread if the target is the same chat. */
  turnId: string;
  room: RoomId;
  /** Idempotency key: stable for this message of this turn; 24 letters and digits. */
  key: string;
  /** Markdown; may be empty with a file. */
  text: string;
  file: OutgoingFile | null;
}

export interface Reaction {
  room: RoomId;
  personaId: PersonaId;
  turnId: string;
  /** As in `SideMessage`. */
  key: string;
  /** As in the prompt; null: the newest message that the turn answers. */
  messageId: number | null;
  emoji: string;
}

export interface ToolResult {
  content: string;
  failed: boolean;
  /** A write that failed for a reason other than its content. */
  unsaved?: true;
  /** The answer in the transcript if the turn ends without words. */
  said?: string;
  /** Unlike what its results usually are. */
  outside?: true;
  inside?: true;
  /** For the journal, in place of `content`. */
  results?: { stdout: string; stderr: string; code: number | null };
  /** Its work outlives the turn; the end of that work is the outcome in the journal. */
  isBeginning?: true;
}

/** Suspends the turn until a `resume` receipt, or the time limit. */
export interface Wait {
  waitsFor: string;
  until: number | null;
}

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
  /** `agent`: a task. */
  kind: 'answer' | 'flush' | 'agent';
  chatId: ChatId;
  personaId: PersonaId;
  /** Empty for a flush. */
  senderId: ChatId;
  /** Of the persona or the agent; null: not specified. */
  allowed: readonly string[] | null;
  channel: string;
  chatKind: 'direct' | 'group';
  /** Only the memory tools, on this draft. */
  draft?: MemoryDraft | undefined;
}

export interface ToolSet {
  tools: readonly AnyTool[];
  descriptions: ToolDescription[];
  /** Estimated. */
  tokens: number;
  leftOut?: readonly string[];
  /** Calling one is refused like leaving the machine. */
  withheld?: readonly AnyTool[];
}

/** Called for every turn, so prepare the sets once. */
export type ToolsFor = (turn: TurnKind) => ToolSet;

/** Waits longer only after the start, and longest for `wanted` (pending calls). */
export type ToolsReady = (turn: TurnKind, wanted: readonly string[], signal: AbortSignal) => Promise<void>;

export interface Tool<Parameters> {
  name: string;
  description: string;
  /** For "what you can do" in the prompt. Absent: the description. null: covered by another tool's hint. */
  hint?: string | null;
  /** A JSON schema if the tool validates its own input (MCP). */
  parameters: ZodType<Parameters> | JsonSchema;
  /**
   * low: only reads, so consecutive calls run in parallel; medium: writes or sends; high: runs foreign code and needs
   * approval. A call with an unknown outcome after a crash is never retried.
   */
  risk: 'low' | 'medium' | 'high';
  /** Visible to people at once; limited by `limits.sends_per_turn`. */
  isSend?: true;
  /** Absent: two minutes. */
  timeoutMs?: number;
  /** It leaves the machine: an agent may call it only if an owner allowed its task. */
  isExternal?: true;
  /** With secrets redacted. */
  journalled?(given: Record<string, unknown>): Record<string, unknown>;
  /** Untrusted text, which taints the turn. */
  isFromOutside?: true;
  /** Beyond the chat; a tainted turn then needs approval. null: nowhere. Absent: the chat in `chat_id`. */
  reachesOut?(parameters: Parameters, context: ToolContext): Promise<Reach | null> | Reach | null;
  /** Why a call would do nothing here, so that nobody is asked to approve it; words for the model. */
  refusalHere?(authorisation: Authorisation): string | null;
  execute(parameters: Parameters, context: ToolContext): Promise<ToolResult | Wait>;
  /** null: unknown. */
  outcomeAfterCrash?(context: ToolContext): Promise<ToolResult | null>;
}

/** `host`: no approval needed if a person named it in the conversation. */
export type Reach = { kind: 'chat'; chatId: ChatId } | { kind: 'host'; host: string };

export interface JsonSchema {
  type: 'object';
  [key: string]: unknown;
}

/** The caller validates the parameters first. */
export type AnyTool = Omit<Tool<never>, 'parameters'> & { parameters: ZodType<unknown> | JsonSchema };
