/**
 * Reads payloads of platforms. Their form changes, and strangers fill in their fields: a field of another form than
 * expected counts as absent, and only where an essential one is missing is the payload passed over.
 */
import * as z from 'zod';

type Fields = Record<string, z.ZodType>;

export const text = z.string();
export const flag = z.boolean();
export const whole = z.int();
export const decimal = z.number();
/** An object of any form. */
export const nested = z.custom<object>((value) => typeof value === 'object' && value !== null);

/** What in the list has another form is left out. */
export function list<Each extends z.ZodType>(each: Each) {
  return z
    .array(each.optional().catch(undefined))
    .transform((items) => items.filter((item) => item !== undefined) as z.output<Each>[]);
}

/** The needed fields, and others, which may be missing. */
export function record<Needed extends Fields, Other extends Fields>(needed: Needed, other: Other) {
  const lenient = Object.entries(other).map(([key, field]) => [key, field.optional().catch(undefined)]);
  return z.object({
    ...needed,
    ...(Object.fromEntries(lenient) as { [Key in keyof Other]: z.ZodCatch<z.ZodOptional<Other[Key]>> }),
  });
}

/** Adds `holds`: the names of all fields with something in them, also of those that we do not know. */
export function naming<Schema extends z.ZodType>(schema: Schema) {
  return z.preprocess((value) => {
    if (typeof value !== 'object' || value === null) return value;
    const held = Object.entries(value).filter(([, each]) => typeof each === 'object' && each !== null);
    return { ...value, holds: held.map(([name]) => name) };
  }, schema);
}

/** Undefined for what has another form. Never throws. */
export function reader<Schema extends z.ZodType>(schema: Schema) {
  return (value: unknown): z.output<Schema> | undefined => schema.safeParse(value).data;
}
