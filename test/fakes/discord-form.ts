/** What a client of the API posts: JSON, or a form with files whose JSON is the part `payload_json`. */
import type { IncomingMessage } from 'node:http';
import type { Payload } from './discord-words.js';

export interface UploadedFile {
  /** The number in `files[0]`; `attachments` of the JSON speak of it. */
  id: string;
  name: string;
  type: string;
  bytes: Buffer;
}

export interface Body {
  json: unknown;
  files: UploadedFile[];
}

/** Neither JSON nor a form; the server answers 400. */
export class MalformedBody extends Error {
  override readonly name = 'MalformedBody';
}

export async function readBody(request: IncomingMessage): Promise<Body> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const body = Buffer.concat(chunks);
  const type = request.headers['content-type'] ?? '';
  if (body.length === 0) return { json: {}, files: [] };
  if (!type.includes('multipart/form-data')) return { json: parse(body.toString('utf8')), files: [] };
  const form = await new Response(body, { headers: { 'content-type': type } })
    .formData()
    .catch((error: unknown) => {
      throw new MalformedBody(`not a form: ${String(error)}`);
    });
  const files: UploadedFile[] = [];
  let json: unknown = {};
  for (const [name, value] of form) {
    if (name === 'payload_json' && typeof value === 'string') json = parse(value);
    const id = /^files\[(\d+)\]$/.exec(name)?.[1];
    if (id !== undefined && typeof value !== 'string') {
      files.push({
        id,
        name: value.name,
        type: value.type,
        bytes: Buffer.from(await value.arrayBuffer()),
      });
    }
  }
  return { json, files };
}

export function isPayload(value: unknown): value is Payload {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new MalformedBody('not JSON');
  }
}
