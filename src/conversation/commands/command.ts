/** What a chat command is. Adding one is adding a file and a line in `list.ts`. */
import type { Channel } from '../../core/channel.js';
import type { Clock } from '../../core/clock.js';
import type { Zone } from '../../core/dates.js';
import type { Personas } from '../../core/persona.js';
import type {
  ChatStore,
  CommandEffect,
  Store,
  StoredCommand,
  TranscriptStore,
  UsageStore,
} from '../../core/store.js';
import type { AccessRules } from '../access.js';

export interface Command {
  name: string;
  aliases: string[];
  /** One line, for `/help` and for the platform's own menu. */
  description: string;
  /** In groups, only owners and administrators of the group may do what changes something. */
  changes(argument: string): boolean;
  run(call: CommandCall, parts: CommandParts): Promise<CommandAnswer>;
}

export interface CommandCall {
  command: StoredCommand;
  isOwner: boolean;
  /** Whether the sender may change things here; asks the platform where it must. */
  mayChange(): Promise<boolean>;
}

export interface CommandAnswer {
  /** Markdown. */
  text: string;
  /** What changes in the store, in one transaction with the answer. */
  effects?: CommandEffect[];
}

/** What commands may touch. */
export interface CommandParts {
  store: ChatStore & UsageStore & TranscriptStore & Pick<Store, 'census'>;
  personas: Personas;
  channels: ReadonlyMap<string, Channel>;
  commands: readonly Command[];
  zone: Zone;
  clock: Clock;
  rulesFor(channel: string): AccessRules;
  /** What is running, for `/status`. */
  facts: { version: string; model: string; startedAt: number };
}

export const changesNothing = () => false;
export const changesAlways = () => true;
