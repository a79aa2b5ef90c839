/**
 * Describes a channel before its library is loaded, with types for options. Errors never quote a value, which
 * may be secret. Each type gets its checks at once: zod's methods copy the schema at each start.
 */
import * as z from 'zod';
import type { ApprovedKind } from '../../core/access.js';
import type { Channel, ChannelHost } from '../../core/channel.js';

/** Converts one level of `snake_case` keys, as in config.yaml, to `camelCase`, as in the code. */
export type Camel<Section> = {
  [Key in keyof Section as Key extends string ? CamelWord<Key> : Key]: Section[Key];
};
type CamelWord<Word extends string> = Word extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<CamelWord<Tail>>}`
  : Word;

/** The options of a channel's section as its code sees them, including those common to all channels. */
export type OptionsOf<Schema extends z.ZodObject> = Camel<z.output<Schema>> & {
  access: { groups: 'listed' | 'open' | 'closed' };
  streaming: Streaming;
  /** Whether the platform may fetch links in sent messages. */
  linkPreviews: boolean;
};

/** How a growing reply is shown: by editing a message, or by the platform's own drafts. */
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

/** `true` and `false` are the former values. */
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
  // zod's int is already limited to safe integers.
  const end = most === Number.MAX_SAFE_INTEGER ? [] : [z.lte(most, words)];
  return number(z.int(words).check(z.gte(least, words), ...end));
}

export function amount(what: string, least: number, most = Number.MAX_VALUE) {
  const words = expected(what);
  return number(z.number(words).check(z.gte(least, words), z.lte(most, words)));
}

export function rate() {
  const words = expected('a number of messages above 0');
  return number(z.number(words).positive(words));
}

/** Values from the environment are always text, so a number may be given as text. */
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

/** Base URL of an API: no trailing slash. */
export function apiAddress(what: string, standard: string) {
  return webAddress(`${what}, like ${standard}`)
    .transform((root) => root.replace(/(?<!\/)\/+$/, ''))
    .default(standard);
}

export interface ChannelDescriptor<Name extends string = string, Schema extends z.ZodObject = z.ZodObject> {
  /** Letters only: the key below `channels` in config.yaml, and the first part of the channel's ids. */
  name: Name;
  label: string;
  /** Keys of this channel only. If there is a key `enabled`, the section alone configures nothing. */
  options: Schema;
  /** Options, in camel case, that are never logged; for a record, all its values. */
  secrets: readonly (keyof Camel<z.output<Schema>> & string)[];
  /** Ways to show replies as they are written; the first is the default. */
  streaming: readonly [Streaming, ...Streaming[]];
  ids: IdForms;
  /** Replaces the common section `access` for this channel. */
  access?: { direct: 'open' | 'closed' | 'pairing'; groups: 'open' | 'closed' | 'listed' };
  /** Loads the platform's library, but does not connect yet. */
  create(host: ChannelHost<OptionsOf<Schema>>): Promise<Channel>;
}

/** Information in the form of a platform's ids, even of one never seen before. Pure. */
export interface IdForms {
  /** `address`: an id without the channel's name and the `_`. null: not an id of the platform. */
  kindOf(address: string): ApprovedKind | null;
  /** Examples, for an operator. */
  expected: string;
}
