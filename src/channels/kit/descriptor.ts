/** A channel as the rest of the gateway knows it, without loading its platform's library. */
import type * as z from 'zod';
import type { ApprovedKind } from '../../core/access.js';
import type { Channel } from '../../core/channel.js';
import type { ChannelHost } from '../../core/channel-host.js';
import type { Camel, OptionsOf, Streaming } from './options.js';

export interface ChannelDescriptor<Name extends string = string, Schema extends z.ZodObject = z.ZodObject> {
  /** Letters only: the key below `channels` in config.yaml, and the first part of every id of this channel. */
  name: Name;
  /** As people read it. */
  label: string;
  /**
   * The keys of its section that only this channel has; `access`, `streaming` and `link_previews` are there for every
   * channel. With a key `enabled`, the section alone does not configure the channel.
   */
  options: Schema;
  /** Which of the options, in camel case, are never shown in a log; of a record, all its values. */
  secrets: readonly (keyof Camel<z.output<Schema>> & string)[];
  /** The ways in which replies can be shown while they are written; the first stands where the section says nothing. */
  streaming: readonly [Streaming, ...Streaming[]];
  ids: IdForms;
  /** Rules that stand for this channel in the place of the common section `access`. */
  access?: { direct: 'open' | 'closed' | 'pairing'; groups: 'open' | 'closed' | 'listed' };
  /** Loads the platform's library. Connects to nothing yet. */
  create(host: ChannelHost<OptionsOf<Schema>>): Promise<Channel>;
}

/** What the platform's own ids tell by their form, before anything was heard under them. Pure. */
export interface IdForms {
  /** What stands in an id behind the channel's name and the `_`; null for what is no id of the platform. */
  kindOf(address: string): ApprovedKind | null;
  /** As an operator is told what is expected. */
  expected: string;
}

/** The descriptor itself; its types are inferred. */
export function describeChannel<const Name extends string, Schema extends z.ZodObject>(
  descriptor: ChannelDescriptor<Name, Schema>,
): ChannelDescriptor<Name, Schema> {
  return descriptor;
}
