/** The interface of a chat command. To add one, add a file and a line in `list.ts`. */
import type { OfferedOption, Permission } from '../../core/access.js';
import type { CommandDescription, CommandVerb, Greeting, OutgoingFile } from '../../core/channel.js';
import type { ChatRecord } from '../../core/chat-record.js';
import type { ChatId, RoomId } from '../../core/ids.js';
import type { MemoryOwner } from '../../core/memory.js';
import type { Persona } from '../../core/persona.js';
import type { StoredCommand } from '../../core/receipt.js';
import type { CommandEffect } from '../../core/store.js';
import type { Actor, Rights } from '../rights.js';
import type { BaseServices, Services } from '../services.js';
import { verbAndRest } from './parse.js';

export interface ChatCommand extends CommandDescription {
  /** Whether it changes something; in groups, that is reserved to owners and administrators. */
  changes(argument: string): boolean;
  ownersOnly?: true;
  /** It concerns the whole chat, even if it was sent to one persona's account. */
  ofChat?: true;
  /** Audit detail of a changing command, without people's text. Absent: none; null: it writes its own entry. */
  audited?: ((argument: string) => string) | null;
  /** Whether this person may take it from buttons for everybody, if that is not up to `changes`. */
  mayTake?(services: BaseServices, by: { room: RoomId; actor: Actor; rights: Rights }): Promise<boolean>;
  run(call: CommandCall): Promise<CommandAnswer>;
}

export const NOT_CHECKED =
  'I could not check whether you are an administrator of this group. Please try again in a minute.';

/** One run of a command, with the services. */
export interface CommandCall extends Services {
  command: StoredCommand;
  commands: readonly ChatCommand[];
  isOwner: boolean;
  /** Whether the sender may change things here; may ask the platform, which may not answer. */
  mayChange(): Promise<Permission>;
  /** Aborts the chat's running turns; they write nothing afterwards, and resume later as after a crash. */
  interruptTurns(): Promise<void>;
}

export interface CommandAnswer {
  text: string;
  /** Changes in the store, in one transaction with the answer. */
  effects?: CommandEffect[];
  /** The text if an effect is refused, because things changed meanwhile. */
  refused?: string;
  /** At most 25 options, one of which may be chosen, once, by the person who asked. An `ask` effect asks the same. */
  choices?: { options: OfferedOption[]; forMs: number };
  /** Other chats that got a message. */
  wakes?: ChatId[];
  /** A room whose turn resumes. */
  resumes?: RoomId;
  /** Sent after the text, one by one. */
  files?: OutgoingFile[];
  /** Shown as an answer to this message in a group. Absent: to the command. */
  replyTo?: string;
  /** The text is its greeting. */
  greets?: Persona;
  /** A persona that joins, and its greeting, sent in its own name after the rest. */
  appears?: { chat: ChatRecord; persona: Persona; greeting: Greeting };
}

/** A command that changes nothing, unless `more` says so. */
export function commandOf(
  name: string,
  description: string,
  run: ChatCommand['run'],
  more: Partial<ChatCommand> = {},
): ChatCommand {
  return { name, aliases: [], description, changes: () => false, ...more, run };
}

/** The first word of a command's argument; the first verb is the default. */
export interface RunnableVerb extends CommandVerb {
  changes: boolean;
  /** Not listed; reached only through a button or an answer. */
  isHidden?: true;
  run(call: CommandCall, rest: string): Promise<CommandAnswer>;
}

export function reading(
  name: string,
  description: string,
  run: RunnableVerb['run'],
  rest?: RunnableVerb['rest'],
): RunnableVerb {
  return { name, description, changes: false, run, ...(rest && { rest }) };
}

export function changing(
  name: string,
  description: string,
  run: RunnableVerb['run'],
  rest?: RunnableVerb['rest'],
): RunnableVerb {
  return { ...reading(name, description, run, rest), changes: true };
}

/** A command with verbs. An unknown verb, or a missing required text, gets the usage. */
export function withVerbs(
  command: Omit<ChatCommand, 'verbs' | 'changes' | 'run'>,
  verbs: readonly RunnableVerb[],
): ChatCommand {
  const listed = verbs.filter(({ isHidden }) => !isHidden);
  const usage = listed.map(({ name, description, rest }, n) => {
    const text = rest?.name.toUpperCase() ?? '';
    const words = [`/${command.name}`, n === 0 ? '' : name, rest?.required || !text ? text : `[${text}]`];
    return `${words.filter((word) => word !== '').join(' ')} — ${description}`;
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
    async run(call) {
      const { argument } = call.command;
      const verb = called(argument);
      if (verb === undefined) return { text: ['Usage:', ...usage].join('\n') };
      return verb.run(call, verbAndRest(argument).rest);
    },
  };
}

/** The active persona: the default owner of memory in commands. */
export function activeHere({ chat }: StoredCommand): MemoryOwner {
  return { chatId: chat.id, personaId: chat.activePersona };
}

/** The first lines of a list, and a line that counts the others. */
export function firstOf(lines: string[], most: number, rest: (left: number) => string): string[] {
  const left = lines.length - most;
  return left > 0 ? [...lines.slice(0, most), rest(left)] : lines;
}
