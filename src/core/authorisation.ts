/** On whose behalf a turn acts, and what its tools may therefore do. */
import type { Permission } from './access.js';
import type { ChatId, PersonaId } from './ids.js';

/** Made by the gateway for one turn, never by the model. Without one, every tool refuses. */
export interface Authorisation {
  chatId: ChatId;
  personaId: PersonaId;
  senderId: ChatId;
  channel: string;
  controlChats: ChatId[];
  asker: Asker;
  /** The agent that acts on a task, for this persona or for a program. */
  agent?: AgentPlace;
}

export async function isOwnersOrder({ chatId, controlChats, asker }: Authorisation): Promise<boolean> {
  return controlChats.includes(chatId) && (await asker.isOwner());
}

export interface AgentPlace {
  id: string;
  taskId: string;
  /** Absolute; null: the requested one is outside the roots, so no command runs. */
  cwd: string | null;
  /** Absolute, links resolved; the first is the base if `cwd` is null. */
  roots: readonly string[];
  env: Readonly<Record<string, string>>;
  space: string;
  /** `mayWrite`: until the task is tainted. */
  shared: { folder: string; mayWrite: boolean };
}

/** The people whose messages led to a call, which may do only what each of them could do by a command. */
export interface Asker {
  senders(): Promise<ChatId[]>;
  /** False without people. */
  isOwner(): Promise<boolean>;
  /** Like a group's administrators. May ask the platform. Direct chats: yes; groups without people: no. */
  mayChange(): Promise<Permission>;
}
