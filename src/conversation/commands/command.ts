/** What a chat command is. Adding one is adding a file and a line in `list.ts`. */
import type { CommandDescription, OutgoingFile } from '../../core/channel.js';
import type { CommandEffect, StoredCommand } from '../../core/store.js';
import type { WindowControl } from '../compaction/windows.js';
import type { Services } from '../services.js';

export interface Command extends CommandDescription {
  /** In groups, only owners and administrators of the group may do what changes something. */
  changes(argument: string): boolean;
  /** It is about the chat and all its personas, also where it was given to the account of one. */
  ofChat?: true;
  run(call: CommandCall, services: CommandServices): Promise<CommandAnswer>;
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

/** What commands may use. */
export interface CommandServices extends Services {
  windows: WindowControl;
  commands: readonly Command[];
}

export const changesNothing = () => false;
export const changesAlways = () => true;
