/** The part of the fake model server that listens: a form with a recording, answered with what was said in it. */
import type { IncomingMessage, ServerResponse } from 'node:http';

export interface Recording {
  model: string;
  name: string;
  type: string;
  bytes: Buffer;
  authorization: string | undefined;
}

/** What is heard, or what happens instead. */
export type TranscriptScript =
  | string
  /** An answer of its own: JSON from an object, else as it is. */
  | { status?: number; body: unknown }
  /** The connection breaks before an answer. */
  | { drop: true }
  /** No answer, for ever. */
  | { stall: true };

export async function readRecording(request: IncomingMessage, body: Buffer): Promise<Recording> {
  const headers = { 'content-type': request.headers['content-type'] ?? '' };
  const form = await new Response(new Uint8Array(body), { headers }).formData();
  const file = form.get('file');
  if (!(file instanceof File)) throw new Error('the form holds no file');
  return {
    model: String(form.get('model')),
    name: file.name,
    type: file.type,
    bytes: Buffer.from(await file.arrayBuffer()),
    authorization: request.headers.authorization,
  };
}

export function answerRecording(script: TranscriptScript, response: ServerResponse): void {
  if (typeof script === 'object' && 'stall' in script) return;
  if (typeof script === 'object' && 'drop' in script) {
    response.socket?.destroy();
    return;
  }
  const { status = 200, body } = typeof script === 'string' ? { body: { text: script } } : script;
  const json = typeof body !== 'string';
  response.writeHead(status, { 'content-type': json ? 'application/json' : 'text/html' });
  response.end(json ? JSON.stringify(body) : body);
}
