/**
 * The page's own routes, below `/api/board/`: not described in OpenAPI, because only the page of the same version asks
 * them. Requests are checked against schemas all the same.
 */
import type { HttpBindings } from '@hono/node-server';
import type { Context } from 'hono';
import { HTTPException } from 'hono/http-exception';
import { z } from 'zod';
import { bodyOf, parsed, reply } from './api.js';
import { MOST_BODY_BYTES } from './guard.js';
import { complaintOf } from './schemas.js';

export type Asked = Context<{ Bindings: HttpBindings }>;

export const Room = z.string().regex(/^[a-z]+_[^\s\\\0]{1,300}$/, 'a conversation');

/** Path and query, in one. Throws the answer 400 with the path of the first fault. */
export function fieldsIn<Schema extends z.ZodType>(context: Asked, schema: Schema): z.output<Schema> {
  return checked(schema, { ...context.req.query(), ...context.req.param() });
}

/** The body, from JSON. Throws the answers 400 and 413. */
export async function bodyIn<Schema extends z.ZodType>(
  context: Asked,
  schema: Schema,
  most = MOST_BODY_BYTES,
): Promise<z.output<Schema>> {
  const bytes = await bodyOf(context.env.incoming, most);
  if (bytes === 'too large') throw refused(413, { error: `The body has more than ${most / 1_000} kB.` });
  return checked(schema, parsed(bytes));
}

/** To be thrown: an answer whose error is a sentence for people. */
export function refused(
  status: 400 | 404 | 409 | 413 | 415 | 422 | 429 | 502 | 503,
  body: { error: string; [field: string]: unknown },
  headers?: Record<string, string>,
): HTTPException {
  return new HTTPException(status, { res: reply(status, body, headers) });
}

function checked<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const { success, data, error } = schema.safeParse(value);
  if (!success) throw refused(400, complaintOf(error));
  return data;
}
