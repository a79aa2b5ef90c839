/** The page's place Operations, as `protocol.ts`: types only, without imports. Times are ms since 1970. */

/** `bad`: something does not work. `warn`: somebody should look. */
export type OperationsLevel = 'good' | 'warn' | 'bad';

/** Read again while somebody looks. */
export interface OperationsNow {
  channels: ChannelItem[];
  pairings: PairingsNow;
  schedules: { items: ScheduleItem[]; isCut: boolean };
  embedding: EmbeddingNow;
}

export interface ChannelItem {
  name: string;
  /** `Telegram`. */
  label: string;
  level: OperationsLevel;
  state: 'connected' | 'connecting' | 'failing' | 'elsewhere';
  /** Of several gateways, the other one that has it: `elsewhere`, where its state is not known here. */
  heldBy: string | null;
  since: number;
  lastError: string | null;
  /** Known remedies of the last error, for the page's own words. */
  advice: ChannelAdvice | null;
}

export type ChannelAdvice =
  | 'otherReader'
  | 'webhook'
  | 'token'
  | 'oldServer'
  | 'network'
  | 'theirs'
  | 'wait'
  | 'disk'
  | 'intent'
  | 'tooManyServers'
  | 'update'
  | 'link'
  | 'linkAgain'
  | 'refused'
  | 'multiDevice'
  | 'sameLink'
  | 'oldClient'
  | 'restricted'
  | 'stays';

export interface PairingsNow {
  waiting: { code: string; kind: 'sender' | 'group'; id: string; name: string; until: number }[];
  /** `listed`: by the configuration. An owner is changed there or by `coterie pair`. */
  letIn: {
    id: string;
    kind: 'sender' | 'group' | 'unknown';
    name: string | null;
    isOwner: boolean;
    since: number | null;
    listed: boolean;
  }[];
}

export interface ScheduleItem {
  id: string;
  n: number;
  chatId: string;
  title: string | null;
  persona: string;
  /** null: the persona's own idea; empty: not known. */
  setBy: string | null;
  prompt: string;
  state: 'active' | 'paused' | 'parked';
  why: 'failed' | 'persona' | 'access' | null;
  nextAt: number | null;
  /** null: it runs once. */
  cron: string | null;
  timezone: string;
}

export interface EmbeddingNow {
  level: OperationsLevel;
  backend: 'off' | 'http' | 'redis';
  model: string | null;
  /** Address or queue. */
  place: string | null;
  /** null: embeddings are off. */
  breaker: { kind: 'closed' } | { kind: 'open'; since: number; reason: string } | null;
  /** Only of the backend `redis`. */
  queue: {
    waiting: number;
    parked: number;
    workers: number;
    model: string | null;
    answeredAt: number | null;
  } | null;
  pieces: { indexed: number; waiting: number; withVector: number };
}

export interface UsageNow {
  days: { day: string; turns: number; tokens: number; cost: number }[];
  chats: { id: string; title: string | null; turns: number; tokens: number; cost: number }[];
  personas: { id: string; turns: number; tokens: number; cost: number }[];
  /** The fullest account of each limit of `limits`, today. */
  budgets: {
    key: string;
    unit: 'tokens' | 'money';
    most: number;
    used: number;
    /** The chat, persona or person. */
    of: string | null;
  }[];
  /** Whether prices are known. */
  hasMoney: boolean;
}

export interface AuditPage {
  /** Newest first. */
  entries: {
    n: number;
    at: string;
    kind: string;
    who: string;
    where: string | null;
    what: string;
    word: string | null;
    details: [name: string, value: string][];
  }[];
  isEnd: boolean;
  /** Lines that are not as they were written. */
  strange: number;
}

export interface LogLines {
  lines: { n: number; at: number; level: 'debug' | 'info' | 'warn' | 'error'; text: string; more: string }[];
  /** For the next question. A restart counts anew. */
  newest: number;
  /** Below it nothing is logged. */
  level: string;
}

export interface ConfigurationNow {
  file: string | null;
  warnings: string[];
  keys: ConfigKey[];
}

export interface ConfigKey {
  key: string;
  /** null: not set. Secrets are `••••`. Absent: it has further keys. */
  value?: string | null;
  inner?: ConfigKey[];
  /** `${NAME}` or `${file:PATH}`. */
  sources?: string[];
  /** It is no default. */
  isSet: boolean;
}
