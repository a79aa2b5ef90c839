/**
 * The messages between the page (`web/`) and the gateway, as JSON: types only, without imports, because both compile
 * them. Times are ms since 1970. Addresses of files are relative to the page. Paths stand at the routes that answer them.
 */

// ── A conversation ──────────────────────────────────────────────────────────────────────────────────────────

/** One article of a log. */
export interface LogRow {
  /**
   * Stays the same: `t<turn>` for what a persona says in a turn, from its first word on; else `m<message>`, `c<command>`
   * or `o<entry of the outbox>`.
   */
  key: string;
  author: RowAuthor;
  at: number;
  /** Markdown of a persona or the gateway, unless `plain`; a person's words as typed. */
  text: string;
  /** As another platform shows it, whose markup is left out. */
  plain?: true;
  /**
   * `waiting`: no turn has taken it yet. `writing`: it still grows. `failed`: its turn failed or was given up; `error` is
   * the sentence for people. `unsent`: it is not, or may not be, at the platform.
   */
  state?: 'waiting' | 'writing' | 'failed' | 'unsent';
  error?: string;
  files?: RowFile[];
  replyTo?: { author: string; text: string };
  forwardedFrom?: string;
  /** The turn behind it: Details. */
  turn?: string;
  calls?: RowCall[];
  approvals?: RowApproval[];
  remembered?: Remembered[];
  /** Buttons below a message of the gateway. */
  choices?: { label: string; value: string }[];
  /** At the newest answer of the page's own chats, which can be said anew: the number shown, and those of all versions. */
  versions?: { shown: number; all: number[] };
}

export type RowAuthor =
  /** `own`: sent from this page. */
  | { kind: 'person'; id: string; name: string; own?: true }
  | { kind: 'persona'; id: string; name: string; avatar: string | null }
  | { kind: 'gateway'; name: string };

export interface RowFile {
  name: string;
  type: string;
  bytes: number | null;
  /** null: it is not kept any more. */
  address: string | null;
}

export interface RowCall {
  id: string;
  tool: string;
  /** As the model wrote them: JSON, or what should have been. */
  arguments: string;
  /** null: it runs, or was interrupted. */
  result: string | null;
  failed: boolean;
}

export interface RowApproval {
  id: string;
  tool: string;
  arguments: string;
  why: string;
  until: number;
  decision: 'approved' | 'denied' | 'expired' | 'ended' | null;
}

/** A change of memory in a turn. */
export interface Remembered {
  /** Of the version: Undo. */
  version: string;
  chatId: string;
  personaId: string;
  /** As in the history: `luna/MEMORY.md`, `memory/2026-11-22.md`. */
  file: string;
  tier: 1 | 2 | 3 | null;
  /** Its first new line. */
  line: string;
}

/** Where a page of rows begins and ends: opaque; null at the end of the conversation. */
export interface RowPage {
  /** Oldest first. */
  rows: LogRow[];
  before: string | null;
  after: string | null;
  /** Behind the newest of these rows: where the live line goes on. Only with `after` null. */
  position: string | null;
}

export interface ConversationItem {
  /** The room: `telegram_-100123/45`. */
  room: string;
  channel: string;
  /** Its title, else the id of the chat. */
  title: string;
  kind: 'direct' | 'group';
  /** Without an author: the owner's, written on the page. */
  last: { at: number; author: string; text: string } | null;
}

export interface ConversationPage {
  items: ConversationItem[];
  /** For `before`; null: these were the last. */
  next: string | null;
}

/** One step of a search: a limited number of messages was examined. */
export interface FoundPage {
  rows: FoundRow[];
  /** Where the next step begins, and when that was said; null: everything was examined. */
  next: { before: number; at: number } | null;
}

export interface FoundRow {
  room: string;
  title: string;
  /** `rows?around=` finds it. */
  around: string;
  key: string;
  /** Empty: the owner, on the page. */
  author: string;
  at: number;
  /** The words around the first match. */
  excerpt: string;
}

// ── The page's own chats ─────────────────────────────────────────────────────────────────────────────────────

export interface BoardPersona {
  id: string;
  name: string;
  /** Address of its picture. */
  avatar: string | null;
  /** It hears what is said: the active one, and those that were invited. */
  present: boolean;
}

/** `active` answers what is addressed to nobody. */
export interface BoardPersonas {
  active: string;
  personas: BoardPersona[];
}

export interface BoardCommand {
  name: string;
  description: string;
  /** The first is the default. `rest`: the text that follows. */
  verbs?: { name: string; description: string; rest?: { name: string; required: boolean } }[];
}

// ── A turn opened ───────────────────────────────────────────────────────────────────────────────────────────

export interface TurnDetails {
  id: string;
  room: string;
  personaId: string;
  state: string;
  startedAt: number;
  finishedAt: number | null;
  /** Lines with their source, as the model saw them. */
  recalled: { text: string; source: string }[];
  /** Lore of its first request; null: it had no lorebook, or is not recorded (any more). */
  lore: TurnLore | null;
  /** Of its first request, in order: principles, persona, memory, …; empty if the turn is not recorded (any more). */
  prompt: { name: string; text: string; tokens: number }[];
  messages: { author: string; at: number; text: string }[];
  requests: {
    at: number;
    ms: number;
    model: string;
    inputTokens: number | null;
    outputTokens: number | null;
    cachedTokens: number | null;
    /** In the unit of the prices; null if they are unknown. */
    cost: number | null;
    error: string | null;
  }[];
  calls: (RowCall & { at: number | null; ms: number | null })[];
  sends: { text: string; state: string; at: number; error: string | null }[];
}

export interface TurnLore {
  /** `key`: which brought it, null if it always stands there; `from`: the entry in whose text the key stood. */
  entries: { name: string; book: string; key: string | null; from: string | null; kept: boolean }[];
  /** Entries beyond these. */
  more: number;
  /** Patterns that took too long, and counted as not matching. */
  givenUp: string[];
}

// ── Work ────────────────────────────────────────────────────────────────────────────────────────────────────

export interface TaskItem {
  id: string;
  /** In one line, cut. */
  goal: string;
  status: 'pending' | 'running' | 'completed' | 'error' | 'stopped' | 'interrupted';
  agent: string;
  createdAt: number;
  startedAt: number | null;
  completedAt: number | null;
  /** Its summary, or why it failed, in one line; null: it has not ended, or was stopped. */
  words: string | null;
  /** The persona that delegated it, and where; null: it was given here, or by a program. */
  from: { persona: string; chat: string; room: string } | null;
}

export interface TaskPage {
  /** Newest first. */
  tasks: TaskItem[];
  /** `before` of the next page; null: there are no more. */
  next: string | null;
}

export interface TaskDetails {
  task: TaskItem;
  /** Whole. */
  goal: string;
  /** Its own, as Markdown; null: it works by the plan of the workspace. */
  plan: string | null;
  messages: { role: string; content: string }[];
  calls: (RowCall & { at: number })[];
  /** Earlier calls are not kept. */
  isCut: boolean;
  /** Markdown. */
  result: string | null;
  error: string | null;
  artifacts: ArtifactItem[];
}

export interface ArtifactItem {
  /** Or turn. */
  task: string;
  id: string;
  name: string;
  type: string;
  title: string | null;
  bytes: number;
  /** When it was last written. */
  at: number;
  address: string;
}

export interface ArtifactPage {
  /** Newest first. */
  artifacts: ArtifactItem[];
  /** Older ones are found at their task. */
  isCut: boolean;
}

// ── Memory ──────────────────────────────────────────────────────────────────────────────────────────────────

export interface MemoryChat {
  chatId: string;
  /** Its title, else its id. */
  title: string;
}

export interface MemoryPlaces {
  /** `library`: the file from which it has what its own leaves out; null: it was deleted. */
  personas: { id: string; name: string; library: string | null }[];
  /** Daily logs, newest first, with that of today even if it is not there. `isShown`: a prompt has it. */
  days: { file: string; isThere: boolean; isShown: boolean }[];
  /** Lorebooks of the chat (`lorebooks/sky.yaml`), and of every chat (`groups/lorebooks/sky.yaml`). */
  books: string[];
}

export interface MemoryText {
  /** Without byte order mark, with `\n` only. A byte that is no UTF-8 is a lone surrogate. */
  text: string;
  /** For `If-Match`. */
  tag: string;
  changedAt: number | null;
  /** A line end counts as two characters. */
  isCrlf: boolean;
  /** Characters that a prompt shows at most; null: all. */
  most: number | null;
  /** Of the front matter: sentences. */
  faults: string[];
}

/** One entry of the history; Undo takes back all of it. */
export interface MemoryChange {
  id: string;
  chatId: string;
  file: string;
  at: number;
  kind: 'turn' | 'flush' | 'night' | 'owner';
  personaId: string;
  isUndone: boolean;
  /** Written after words from outside were read. */
  isTainted: boolean;
  /** `tier` null: a line that was added to a daily log, or a whole file. */
  parts: { tier: 1 | 2 | 3 | null; before: string; after: string }[];
}

// ── The live line: a WebSocket at `api/board/live` ───────────────────────────────────────────────────────────

/** From the page. */
export type LiveAsk =
  /** `position`: of a `RowPage`, or of the last `rows`. At most a few rooms at once. */
  { kind: 'follow'; room: string; position: string | null } | { kind: 'leave'; room: string };

/** To the page: at most one of a kind and room in a frame (50 ms). */
export type LiveNews =
  /** First. `run` differs after a restart. */
  | { kind: 'hello'; run: string; version: string }
  /** New or changed rows, oldest first; `gone`: keys of rows that are no more. `whole`: others behind the first are gone, too. */
  | { kind: 'rows'; room: string; rows: LogRow[]; gone: string[]; position: string; whole?: true }
  /** More came meanwhile than is worth sending: read the newest page anew. */
  | { kind: 'reread'; room: string }
  /** The text of a row that is `writing`: its first `keep` UTF-16 units stay, then comes `add`. */
  | { kind: 'writing'; room: string; key: string; author: RowAuthor; keep: number; add: string }
  /** Something of these was changed; who shows it asks again. */
  | { kind: 'changed'; of: LiveSubject[] };

export type LiveSubject = 'conversations' | 'memory' | 'work' | 'operations' | 'setup' | 'personas';
