/** The interface of a chat command. To add one, add a file and a line in `list.ts`. */
import type { OfferedOption, Permission } from '../../core/access.js';
import type { CommandDescription, CommandVerb, Greeting, OutgoingFile } from '../../core/channel.js';
import type { ChatRecord } from '../../core/chat-record.js';
import type { ChatId, RoomId } from '../../core/ids.js';
import type { MemoryOwner } from '../../core/memory.js';
import type { Persona } from '../../core/persona.js';
import type { StoredCommand } from '../../core/receipt.js';
import type { CommandEffect } from '../../core/store.js';
import type { Services } from '../services.js';
import { verbAndRest } from './parse.js';

export interface ChatCommand extends CommandDescription {
  /** Whether it changes something: in groups, only owners and the group's administrators may then use it. */
  changes(argument: string): boolean;
  /** Only owners may use it, wherever they are. */
  ownersOnly?: true;
  /** It concerns the chat and all its personas, even if it was sent to the account of one. */
  ofChat?: true;
  /**
   * What the audit log says of it behind its name, where it changes something; no text that people wrote. Left out:
   * nothing; null: it enters by itself what is done.
   */
  audited?: ((argument: string) => string) | null;
  run(call: CommandCall, services: CommandServices): Promise<CommandAnswer>;
}

export const NOT_CHECKED =
  'I could not check whether you are an administrator of this group. Please try again in a minute.';

export interface CommandCall {
  command: StoredCommand;
  isOwner: boolean;
  /** Whether the sender may change things here; asks the platform if necessary, which may not answer. */
  mayChange(): Promise<Permission>;
  /**
   * Cuts off the running turns of this chat; once this resolves, they write nothing more. As after a crash, each later
   * resumes from its last stored step, with a fresh prompt.
   */
  interruptTurns(): Promise<void>;
}

export interface CommandAnswer {
  /** Markdown. */
  text: string;
  /** Changes in the store, in one transaction with the answer. */
  effects?: CommandEffect[];
  /**
   * Of which one may be chosen, once: by buttons below the text, or numbers. A question among the effects asks the same.
   * At most 25.
   */
  choices?: {
    options: OfferedOption[];
    /** Anybody who may give the commands may choose, not only the person who asked. */
    forAnybody?: true;
    forMs: number;
  };
  /** Other chats to which something was posted. */
  wakes?: ChatId[];
  /** A room whose turn goes on by it. */
  resumes?: RoomId;
  /** Sent after the text, one by one. */
  files?: OutgoingFile[];
  /** A persona that joins, and its greeting: sent in its own name after the rest. */
  appears?: { chat: ChatRecord; persona: Persona; greeting: Greeting };
}

/** What commands may use. */
export interface CommandServices extends Services {
  commands: readonly ChatCommand[];
}

export const changesNothing = () => false;
export const changesAlways = () => true;

/** A word that a command's argument may start with; the first one is the default. */
export interface Verb extends CommandVerb {
  changes: boolean;
  /** Not listed: only a button or an answer leads to it. */
  isHidden?: true;
  run(call: CommandCall, services: CommandServices, rest: string): Promise<CommandAnswer>;
}

/** A command of verbs. An unknown verb, or one without the text that it needs, gets the usage. */
export function withVerbs(
  command: Omit<ChatCommand, 'verbs' | 'changes' | 'run'>,
  verbs: readonly Verb[],
): ChatCommand {
  const listed = verbs.filter(({ isHidden }) => !isHidden);
  const usage = listed.map(({ name, description, rest }, n) => {
    const text =
      rest === undefined ? '' : rest.required ? rest.name.toUpperCase() : `[${rest.name.toUpperCase()}]`;
    const words = [`/${command.name}`, n === 0 ? '' : name, text].filter((word) => word !== '');
    return `${words.join(' ')} — ${description}`;
  });
  const called = (argument: string) => {
    const { verb, rest } = verbAndRest(argument);
    const found = verb === '' ? verbs[0] : verbs.find(({ name }) => name === verb);
    return found?.rest?.required && rest === '' ? undefined : found;
  };
  return {
    ...command,
    verbs: listed,
    changes: (argument) => called(argument)?.changes ?? false,
    async run(call, services) {
      const { argument } = call.command;
      const verb = called(argument);
      if (verb === undefined) return { text: ['Usage:', ...usage].join('\n') };
      return verb.run(call, services, verbAndRest(argument).rest);
    },
  };
}

/** The active persona, whose memory a command means when it names none. */
export function activeHere({ chat }: StoredCommand): MemoryOwner {
  return { chatId: chat.id, personaId: chat.activePersona };
}
