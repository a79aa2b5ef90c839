/** What a client of the Bot API posts: JSON, a form, or a form with files. */
import type { IncomingMessage } from 'node:http';

export type Payload = Record<string, unknown>;

export async function readPayload(request: IncomingMessage): Promise<Payload> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const body = Buffer.concat(chunks);
  const type = request.headers['content-type'] ?? '';
  if (type.includes('application/json')) return body.length === 0 ? {} : JSON.parse(body.toString('utf8'));
  if (type.includes('x-www-form-urlencoded')) {
    return Object.fromEntries(
      [...new URLSearchParams(body.toString('utf8'))].map(([key, text]) => [key, formValue(text)]),
    );
  }
  const boundary = /boundary="?([^";]+)"?/.exec(type)?.[1];
  return boundary === undefined ? {} : multipart(body.toString('latin1'), boundary);
}

/** Values that are not strings are JSON in a form. */
function formValue(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Read as Latin-1, so that the bytes of files survive; names may stand without quotes. */
function multipart(body: string, boundary: string): Payload {
  const payload: Payload = {};
  for (const section of body.split(`--${boundary}`)) {
    const split = section.indexOf('\r\n\r\n');
    if (split < 0) continue;
    const head = section.slice(0, split);
    const content = section.slice(split + 4).replace(/\r\n$/, '');
    const name = /name="?([^";\r\n]+)"?/.exec(head)?.[1];
    if (name === undefined) continue;
    const bytes = Buffer.from(content, 'latin1');
    const file = /filename="?([^";\r\n]+)"?/.exec(head)?.[1];
    payload[name] = file === undefined ? formValue(bytes.toString('utf8')) : { file, bytes: bytes.length };
  }
  return payload;
}
