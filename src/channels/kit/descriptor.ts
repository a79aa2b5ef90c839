/**
 * What describes a channel before its library is loaded, and types of options. An error never quotes the value, which may be
 * a secret. Each type has its checks at once, because every method of zod copies the schema at each start.
 */
import * as z from 'zod';
import type { ApprovedKind } from '../../core/access.js';
import type { Channel, ChannelHost } from '../../core/channel.js';

/** `snake_case` keys of one level as `camelCase`: the options of config.yaml as the code has them. */
export type Camel<Section> = {
  [Key in keyof Section as Key extends string ? CamelWord<Key> : Key]: Section[Key];
};
type CamelWord<Word extends string> = Word extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<CamelWord<Tail>>}`
  : Word;

/** The options of a channel's section as its code has them, with those of every channel. */
export type OptionsOf<Schema extends z.ZodObject> = Camel<z.output<Schema>> & {
  access: { groups: 'listed' | 'open' | 'closed' };
  streaming: Streaming;
  /** Whether the platform may fetch the links in what is sent. */
  linkPreviews: boolean;
};

/**
 * How a reply is seen growing: in a message that is edited, or in what the platform itself has for words that are no
 * message yet.
 */
export type Streaming = 'edit' | 'draft' | 'off';

export function expected(what: string) {
  return {
    error: (issue: { input?: unknown }) =>
      `expected ${what}${issue.input === undefined ? ', but it is missing' : ''}`,
  };
}

export function text(what: string) {
  const words = expected(what);
  return z.string(words).check(z.trim(), z.minLength(1, words));
}

export function choice<const Values extends readonly [string, ...string[]]>(...values: Values) {
  return z.enum(values, expected(`one of ${values.join(', ')}`));
}

export function truth() {
  return z.preprocess(
    (value) => (value === 'true' ? true : value === 'false' ? false : value),
    z.boolean(expected('true or false')),
  );
}

/** `true` and `false` are what it was before there were several ways. */
export function streaming([usual, ...others]: readonly [Streaming, ...Streaming[]]) {
  const named = new Map<unknown, Streaming>([
    [true, 'edit'],
    ['true', 'edit'],
    [false, 'off'],
    ['false', 'off'],
  ]);
  const ways = choice(usual, ...others);
  return z.preprocess((value) => named.get(value) ?? value, ways).default(usual);
}

export function whole(least: number, most = Number.MAX_SAFE_INTEGER) {
  const range = most === Number.MAX_SAFE_INTEGER ? `of ${least} or more` : `from ${least} to ${most}`;
  const words = expected(`a whole number ${range}`);
  // An int of zod is one that a number can hold, anyway.
  const end = most === Number.MAX_SAFE_INTEGER ? [] : [z.lte(most, words)];
  return number(z.int(words).check(z.gte(least, words), ...end));
}

export function amount(what: string, least: number) {
  const words = expected(what);
  return number(z.number(words).min(least, words));
}

/** Messages a second, or at once. */
export function rate() {
  const words = expected('a number of messages above 0');
  return number(z.number(words).positive(words));
}

/** A value from the environment is always text, so a number may stand there as text. */
function number(schema: z.ZodNumber) {
  return z.preprocess(
    (value) => (typeof value === 'string' && /^-?\d+(\.\d+)?$/.test(value) ? Number(value) : value),
    schema,
  );
}

export function webAddress(what = 'an address that begins with http:// or https://') {
  return address(what, /^https?$/);
}

export function address(what: string, protocol: RegExp) {
  return z.url({ protocol, ...expected(what) });
}

/** The address of an API, to which paths are added: without a slash at its end. */
export function apiAddress(what: string, standard: string) {
  return webAddress(`${what}, like ${standard}`)
    .transform((root) => root.replace(/(?<!\/)\/+$/, ''))
    .default(standard);
}

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
  /** Replaces the common section `access` for this channel. */
  access?: { direct: 'open' | 'closed' | 'pairing'; groups: 'open' | 'closed' | 'listed' };
  /** Loads the platform's library. Connects to nothing yet. */
  create(host: ChannelHost<OptionsOf<Schema>>): Promise<Channel>;
}

/** What the platform's own ids tell by their form, before anything was heard under them. Pure. */
export interface IdForms {
  /** `address`: an id without the channel's name and the `_`. null: not an id of the platform. */
  kindOf(address: string): ApprovedKind | null;
  /** Examples, for an operator. */
  expected: string;
}

/** The descriptor itself; its types are inferred. */
export function describeChannel<const Name extends string, Schema extends z.ZodObject>(
  descriptor: ChannelDescriptor<Name, Schema>,
): ChannelDescriptor<Name, Schema> {
  return descriptor;
}
