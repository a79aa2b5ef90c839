/**
 * Reading payloads that come from outside, for `update.ts`. A schema library would say the same, and cost the
 * start 25 ms.
 */

/** The value in the wanted form; undefined when it has another. */
export type Read<T> = (value: unknown) => T | undefined;
type Fields = Record<string, Read<unknown>>;
type Value<Reader> = Reader extends Read<infer T> ? T : never;

export const text: Read<string> = (value) => (typeof value === 'string' ? value : undefined);
export const flag: Read<boolean> = (value) => (typeof value === 'boolean' ? value : undefined);
export const whole: Read<number> = (value) => (Number.isSafeInteger(value) ? (value as number) : undefined);
export const present: Read<true> = (value) =>
  typeof value === 'object' && value !== null ? true : undefined;

export function oneOf<const T extends string>(...words: T[]): Read<T> {
  return (value) => words.find((word) => word === value);
}

/** What in the list has another form is left out. */
export function list<T>(each: Read<T>): Read<T[]> {
  return (value) => (Array.isArray(value) ? value.map(each).filter((item) => item !== undefined) : undefined);
}

/** Undefined when one of the needed fields is missing; other fields may be. */
export function record<Needed extends Fields, Other extends Fields>(needed: Needed, other: Other) {
  type Read = { [Key in keyof Needed]: Value<Needed[Key]> } & {
    [Key in keyof Other]: Value<Other[Key]> | undefined;
  };
  return (value: unknown): Read | undefined => {
    if (typeof value !== 'object' || value === null) return undefined;
    const read: Record<string, unknown> = {};
    for (const [key, field] of Object.entries(needed)) {
      read[key] = field((value as Record<string, unknown>)[key]);
      if (read[key] === undefined) return undefined;
    }
    for (const [key, field] of Object.entries(other)) {
      const found = field((value as Record<string, unknown>)[key]);
      if (found !== undefined) read[key] = found;
    }
    return read as Read;
  };
}
