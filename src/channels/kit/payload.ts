/**
 * Reads payloads of platforms. Their form changes, and strangers fill in their fields: a field of another form than
 * expected counts as absent, and only where an essential one is missing is the payload passed over.
 *
 * Functions, not a schema library: one update of Telegram's has some seventy fields that it may have and five that it
 * has, and is read for every message (docs/decisions/0019).
 */

import { boundedText } from './incoming.js';

/** What a value says, read as one form; undefined where it has another. Never throws. */
export type Reader<T> = (value: unknown) => T | undefined;
/** What a reader reads. */
export type Read<R> = R extends Reader<infer T> ? T : never;

type Fields = Record<string, Reader<unknown>>;
type Payload<Needed extends Fields, Other extends Fields> = { [Key in keyof Needed]: Read<Needed[Key]> } & {
  [Key in keyof Other]?: Read<Other[Key]> | undefined;
};

/** No longer than what is read of a message. */
export const text: Reader<string> = (value) => (typeof value === 'string' ? boundedText(value) : undefined);
export const flag: Reader<boolean> = (value) => (typeof value === 'boolean' ? value : undefined);
export const whole: Reader<number> = (value) => (Number.isSafeInteger(value) ? (value as number) : undefined);
export const decimal: Reader<number> = (value) => (Number.isFinite(value) ? (value as number) : undefined);
/** An object of any form. */
export const nested: Reader<object> = (value) =>
  typeof value === 'object' && value !== null ? value : undefined;
export const anything: Reader<unknown> = (value) => value;

export function matching(form: RegExp): Reader<string> {
  return (value) => (typeof value === 'string' && form.test(value) ? value : undefined);
}

export function oneOf<Word extends string>(...words: Word[]): Reader<Word> {
  return (value) => words.find((word) => word === value);
}

/** What in the list has another form is left out. */
export function list<Each>(read: Reader<Each>): Reader<Each[]> {
  return (value) =>
    Array.isArray(value) ? value.map(read).filter((item): item is Each => item !== undefined) : undefined;
}

/** The needed fields, and others, which may be missing. */
export function record<Needed extends Fields, Other extends Fields>(
  needed: Needed,
  other: Other,
): Reader<Payload<Needed, Other>> {
  const all = Object.entries({ ...needed, ...other });
  const essential = Object.keys(needed);
  return (value) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
    const found: Record<string, unknown> = {};
    for (const [name, read] of all) {
      const given = (value as Record<string, unknown>)[name];
      const field = given === undefined || given === null ? undefined : read(given);
      if (field !== undefined) found[name] = field;
    }
    return essential.every((name) => name in found) ? (found as Payload<Needed, Other>) : undefined;
  };
}

/** Sets `holds`: the names of all fields with something in them, also of those that we do not know. */
export function naming<T extends { holds?: string[] | undefined }>(read: Reader<T>): Reader<T> {
  return (value) => {
    const found = read(value);
    if (found === undefined) return undefined;
    const held = Object.entries(value as object).filter(
      ([, each]) => typeof each === 'object' && each !== null,
    );
    return { ...found, holds: held.map(([name]) => name) };
  };
}
