/** What a client of the Bot API posts: JSON, a form, or a form with files. */
import type { IncomingMessage } from 'node:http';
import { parseForm } from './telegram-form.js';

export type Payload = Record<string, unknown>;

export async function readPayload(request: IncomingMessage): Promise<Payload> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const body = Buffer.concat(chunks);
  const type = request.headers['content-type'] ?? '';
  if (type.includes('application/json')) return body.length === 0 ? {} : JSON.parse(body.toString('utf8'));
  if (type.includes('x-www-form-urlencoded')) {
    return Object.fromEntries(
      [...new URLSearchParams(body.toString('utf8'))].map(([key, text]) => [key, formValue(key, text)]),
    );
  }
  return type.includes('multipart/form-data') ? payloadOf(parseForm(type, body)) : {};
}

/** A file stands under its field's name, also where the field says which part of the form it is. */
function payloadOf({ fields, files }: ReturnType<typeof parseForm>): Payload {
  const payload: Payload = Object.fromEntries(files);
  for (const [name, text] of fields) {
    const attached = text.startsWith('attach://') ? text.slice('attach://'.length) : null;
    payload[name] = attached === null ? formValue(name, text) : files.get(attached);
    if (attached !== null) delete payload[attached];
  }
  return payload;
}

const TEXTS = new Set(['text', 'caption']);

/** Values that are not strings are JSON in a form. */
function formValue(name: string, text: string): unknown {
  if (TEXTS.has(name)) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
