/** What a chat command is. Adding one is adding a file and a line in `list.ts`. */
import type { Archives } from '../../core/archive.js';
import type { Media } from '../../core/attachments.js';
import type { Channel, CommandDescription, OutgoingFile } from '../../core/channel.js';
import type { Clock } from '../../core/clock.js';
import type { Zone } from '../../core/dates.js';
import type { ChatId, PersonaId, RoomId } from '../../core/ids.js';
import type { KeepingStore } from '../../core/keeping.js';
import type { Log } from '../../core/log.js';
import type { Memory } from '../../core/memory.js';
import type { Personas } from '../../core/persona.js';
import type { Recall } from '../../core/recall.js';
import type { ChatStore, CommandEffect, Store, StoredCommand, UsageStore } from '../../core/store.js';
import type { ViewStore } from '../../core/view.js';
import type { AccessRules } from '../access.js';
import type { Questions } from '../questions.js';

export interface Command extends CommandDescription {
  /** In groups, only owners and administrators of the group may do what changes something. */
  changes(argument: string): boolean;
  /** It is about the chat and all its personas, also where it was given to the account of one. */
  ofChat?: true;
  run(call: CommandCall, parts: CommandParts): Promise<CommandAnswer>;
}

export interface CommandCall {
  command: StoredCommand;
  isOwner: boolean;
  /** Whether the sender may change things here; asks the platform where it must. */
  mayChange(): Promise<boolean>;
  /**
   * Cuts off the turns in flight in this chat, which write nothing more when it resolves. As after an end of the
   * process, each goes on from its last stored step, with a prompt made anew.
   */
  interruptTurns(): Promise<void>;
}

export interface CommandAnswer {
  /** Markdown. */
  text: string;
  /** What changes in the store, in one transaction with the answer. */
  effects?: CommandEffect[];
  /** Sent after the text, one by one. */
  files?: OutgoingFile[];
}

/** What commands may do to a persona's window beside the store's effects. */
export interface WindowControl {
  /** Ends a flush or compaction of a view that is under way; it writes nothing more when this resolves. */
  halt(room: RoomId, personaId: PersonaId): Promise<void>;
  /** The same for every view of a chat, of personas that were deleted, too. */
  haltChat(chatId: ChatId): Promise<void>;
  /**
   * Before a persona is deleted: what its windows in this chat hold goes into archives, to be flushed later, and
   * the windows move past it. Throws where an archive cannot be written.
   */
  close(chatId: ChatId, personaId: PersonaId): Promise<void>;
  /** Copies the conversation since the last reset into the archive folder. null when there is none. */
  copy(room: RoomId, personaId: PersonaId): Promise<{ file: string; messages: number } | null>;
}

/** What commands may touch. */
export interface CommandParts {
  store: ChatStore & UsageStore & KeepingStore & Pick<ViewStore, 'view' | 'window'> & Pick<Store, 'census'>;
  memory: Memory;
  archives: Archives;
  media: Pick<Media, 'remove'>;
  recall: Recall;
  windows: WindowControl;
  personas: Personas;
  channels: ReadonlyMap<string, Channel>;
  commands: readonly Command[];
  questions: Questions;
  zone: Zone;
  clock: Clock;
  log: Log;
  rulesFor(channel: string): AccessRules;
  /** What is running, for `/status`. */
  facts: { version: string; model: string; startedAt: number };
}

export const changesNothing = () => false;
export const changesAlways = () => true;
