/** The description of the interface, made from the operations and their schemas: OpenAPI 3.1. */
import * as z from 'zod';
import { type AnswerKind, answersOf, type Operation, operation, refusal } from './operation.js';
import { SOCKET_ANSWERS, StopMessage, SubmitMessage, TellMessage } from './task-schemas.js';

/** Adds the operation that gives the description, which describes itself, too. */
export function described(operations: readonly Operation[]): Operation[] {
  let text: string | null = null;
  const all: Operation[] = [
    ...operations,
    operation({
      ...{ method: 'GET', path: '/api/openapi.json', says: 'This description.' },
      answers: { 200: { says: 'OpenAPI 3.1.', json: z.looseObject({ openapi: z.string() }) } },
      async run() {
        text ??= JSON.stringify(documentOf(all));
        return { status: 200, content: text, headers: { 'Content-Type': 'application/json' } };
      },
    }),
  ];
  return all;
}

/** What begins a socket; the rest of it is no HTTP. */
export function socketOperation(): Operation {
  return operation({
    ...{ method: 'GET', path: '/ws' },
    says: 'Tasks over a WebSocket: see the schemas SocketMessage (sent) and SocketAnswer (received).',
    answers: {
      101: { says: 'The socket is open.' },
      426: refusal('It was asked for without `Upgrade: websocket`.', { Upgrade: '`websocket`' }),
      429: refusal('As many sockets are open as may be, and all of them have tasks.', {
        'Retry-After': 'In how many seconds to try again.',
      }),
    },
    run: async () => ({
      ...{ status: 426, json: { error: 'This is a WebSocket.' } },
      headers: { Upgrade: 'websocket' },
    }),
  });
}

function documentOf(operations: readonly Operation[]): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const each of operations) {
    paths[each.path] = { ...paths[each.path], [each.method.toLowerCase()]: operationObject(each) };
  }
  return {
    openapi: '3.1.0',
    info: {
      ...{ title: 'coterie', version: '1' },
      description: 'Tasks for agents, the workspace and artifacts. Errors are JSON.',
    },
    security: [{ token: [] }, {}],
    paths,
    components: {
      securitySchemes: {
        token: { type: 'http', scheme: 'bearer', description: '`board.token`, where there is one.' },
      },
      schemas: {
        SocketMessage: schemaOf(z.union([SubmitMessage, StopMessage, TellMessage]), 'input'),
        SocketAnswer: schemaOf(z.union(SOCKET_ANSWERS), 'output'),
      },
    },
  };
}

function operationObject(each: Operation): object {
  const { says, method, path, isOpen, parameters, query, headers, body } = each;
  const described = [
    ...parametersOf('path', parameters),
    ...parametersOf('query', query),
    ...Object.entries(headers).map(([name, description]) => ({
      ...{ name, in: 'header', description, required: false, schema: { type: 'string' } },
    })),
  ];
  return {
    summary: says,
    operationId: `${method.toLowerCase()}${path.replace(/(?<![^A-Za-z0-9])[^A-Za-z0-9]+(\w)/g, (_, letter: string) => letter.toUpperCase()).replace(/\W/g, '')}`,
    ...(isOpen && { security: [] }),
    ...(described.length > 0 && { parameters: described }),
    ...(body && {
      requestBody: {
        required: !body.isOptional,
        content: { 'application/json': { schema: schemaOf(body.schema, 'input') } },
      },
    }),
    responses: Object.fromEntries(
      Object.entries(answersOf(each)).map(([status, answer]) => [status, responseOf(answer)]),
    ),
  };
}

function parametersOf(place: 'path' | 'query', object: z.ZodObject): object[] {
  return Object.entries(object.shape).map(([name, schema]) => ({
    ...{ name, in: place, required: place === 'path', schema: schemaOf(schema as z.ZodType, 'input') },
  }));
}

function responseOf({ says, json, media, headers = {} }: AnswerKind): object {
  const content =
    json !== undefined
      ? { 'application/json': { schema: schemaOf(json, 'output') } }
      : media !== undefined && { [media]: { schema: { type: 'string' } } };
  return {
    description: says,
    ...(content && { content }),
    ...(Object.keys(headers).length > 0 && {
      headers: Object.fromEntries(
        Object.entries(headers).map(([name, description]) => [
          name,
          { description, schema: { type: 'string' } },
        ]),
      ),
    }),
  };
}

function schemaOf(schema: z.ZodType, io: 'input' | 'output'): object {
  const { $schema: _, '~standard': __, ...rest } = z.toJSONSchema(schema, { io }) as Record<string, unknown>;
  return rest;
}
