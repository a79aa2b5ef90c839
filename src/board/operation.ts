/**
 * What the interface for programs consists of: operations, each with its schemas. From a list of them come the routes
 * (routes.ts), what is refused before anything is done, and the description (openapi.ts).
 */
import * as z from 'zod';
import type { Pieces } from './stream.js';

export interface Operation {
  method: 'GET' | 'POST' | 'PUT';
  /** `/api/tasks/{id}` */
  path: string;
  /** One sentence for the description. */
  says: string;
  /** Needs no token. */
  isOpen?: boolean;
  parameters: z.ZodObject;
  query: z.ZodObject;
  /** Headers that it reads, in lower case, and what for. */
  headers: Record<string, string>;
  /** `isOptional`: nothing at all stands for `{}`. */
  body: { schema: z.ZodType; isOptional: boolean } | null;
  /** By status, those that it gives itself; what others give is added (`answersOf`). */
  answers: Record<number, AnswerKind>;
  run(asked: Asked<Record<string, unknown>, Record<string, unknown>, unknown>): Promise<Answer>;
}

export interface AnswerKind {
  says: string;
  /** Of the JSON that it consists of. */
  json?: z.ZodType;
  /** What it consists of where that is no JSON. */
  media?: string;
  headers?: Record<string, string>;
}

export interface Asked<Parameters, Query, Body> {
  parameters: Parameters;
  query: Query;
  body: Body;
  header(name: string): string | undefined;
  /** The request had the token, or needs none. */
  isTrusted: boolean;
}

export interface Answer {
  status: number;
  json?: object;
  content?: string | Pieces;
  headers?: Record<string, string>;
}

const NOTHING = z.object({});

/** `run` gets what the schemas let through. */
export function operation<
  Parameters extends z.ZodObject = typeof NOTHING,
  Query extends z.ZodObject = typeof NOTHING,
  Body extends z.ZodType = z.ZodNull,
>(described: {
  method: Operation['method'];
  path: string;
  says: string;
  isOpen?: boolean;
  parameters?: Parameters;
  query?: Query;
  headers?: Record<string, string>;
  body?: Body;
  isBodyOptional?: boolean;
  answers: Record<number, AnswerKind>;
  run(asked: Asked<z.output<Parameters>, z.output<Query>, z.output<Body>>): Promise<Answer>;
}): Operation {
  const { body, isBodyOptional = false, parameters = NOTHING, query = NOTHING, headers = {} } = described;
  return {
    ...described,
    ...{ parameters, query, headers },
    body: body === undefined ? null : { schema: body, isOptional: isBodyOptional },
    run: (asked) => described.run(asked as Asked<z.output<Parameters>, z.output<Query>, z.output<Body>>),
  };
}

export const Refused = z.strictObject({
  error: z.string().meta({ description: 'What was wrong, in a sentence.' }),
  path: z
    .string()
    .optional()
    .meta({ description: 'Where in the body or the parameters, like `messages.0.role`.' }),
});

export function refused(
  status: number,
  error: string,
  more: { path?: string; headers?: Record<string, string> } = {},
): Answer {
  const { path, headers } = more;
  return { status, json: path === undefined ? { error } : { error, path }, ...(headers && { headers }) };
}

export function refusal(says: string, headers?: Record<string, string>): AnswerKind {
  return { says, json: Refused, ...(headers && { headers }) };
}

/** All that an operation may be answered with: by itself, at the door, and where something is wrong with the gateway. */
export function answersOf({
  answers,
  body,
  isOpen,
  parameters,
  query,
}: Operation): Record<number, AnswerKind> {
  const takes = [parameters, query].some(({ shape }) => Object.keys(shape).length > 0);
  return {
    400: refusal(
      body === null && !takes
        ? 'A body came where none is expected.'
        : 'Something in the request is not as it has to be.',
    ),
    ...(isOpen ? {} : { 401: refusal('The token is missing or wrong.', { 'WWW-Authenticate': '`Bearer`' }) }),
    403: refusal('It came from the page of another site, or under a foreign `Host`.'),
    ...(body === null
      ? {}
      : {
          413: refusal('The body has more than 2 MB.'),
          415: refusal('The body is compressed.'),
        }),
    500: refusal('A fault of the gateway; its log says which.'),
    503: refusal('The disk or the database cannot be reached just now.'),
    ...answers,
  };
}
