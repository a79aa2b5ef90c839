/**
 * The HTTP client under grammY: Node's own, with connections kept open. It tells apart what no platform library
 * tells (was the server reached when it broke?), and costs less than `fetch` at the start and for each call.
 */
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';

/** No usable answer. The message never holds the address, for that holds the token. */
export class TransportError extends Error {
  override readonly name = 'TransportError';

  constructor(
    message: string,
    /** The request may have been taken: the connection stood when it broke. */
    readonly reached: boolean,
    /** What the server, or a proxy before it, answered instead of the Bot API's JSON. */
    readonly status: number | null,
  ) {
    super(message);
  }
}

export interface Transport {
  /** As much of `fetch` as grammY uses for calls without files. */
  fetch: typeof fetch;
  close(): void;
}

/** Shorter than servers keep an unused connection: one that the server just closed must not be used again. */
const IDLE_MS = 15_000;

interface Call {
  method?: string;
  headers?: Record<string, string>;
  body?: unknown;
  signal?: AbortSignal;
}

export function createTransport(apiRoot: string): Transport {
  const secure = apiRoot.startsWith('https:');
  const options = { keepAlive: true, timeout: IDLE_MS };
  const agent = secure ? new HttpsAgent(options) : new HttpAgent(options);
  const request = secure ? httpsRequest : httpRequest;

  function call(
    url: string,
    { method = 'GET', headers = {}, body, signal }: Call,
  ): Promise<{ json(): unknown }> {
    return new Promise((resolve, reject) => {
      if (body !== undefined && typeof body !== 'string') {
        throw new TransportError('only JSON can be sent', false, null);
      }
      let reached = false;
      let status: number | null = null;
      const broken = (error: NodeJS.ErrnoException) =>
        reject(new TransportError(wordsFor(error, signal), reached, status));

      const sent = request(url, {
        method,
        agent,
        headers: { ...headers, 'content-length': Buffer.byteLength(body ?? '') },
        ...(signal === undefined ? {} : { signal }),
      });
      sent.on('error', broken);
      sent.on('socket', (socket) => {
        if (!socket.connecting) reached = true;
        else socket.once(secure ? 'secureConnect' : 'connect', () => (reached = true));
      });
      sent.on('response', (response) => {
        status = response.statusCode ?? null;
        textOf(response).then((text) => resolve({ json: () => parsed(text, status) }), broken);
      });
      sent.end(body);
    });
  }

  return {
    // grammY asks a response for nothing but its JSON.
    fetch: call as unknown as typeof fetch,
    close: () => agent.destroy(),
  };
}

function textOf(response: IncomingMessage): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    response.setEncoding('utf8');
    response.on('data', (chunk: string) => {
      text += chunk;
    });
    response.on('error', reject);
    response.on('end', () => resolve(text));
  });
}

function parsed(text: string, status: number | null): unknown {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && 'ok' in value) return value;
  } catch {
    // Told below: it makes no difference what it was instead.
  }
  throw new TransportError(`the answer (HTTP ${status}) is not one of the Bot API`, true, status);
}

function wordsFor(error: NodeJS.ErrnoException, signal: AbortSignal | undefined): string {
  if (signal?.aborted) return 'there was no answer in time, or it was not waited for';
  return error.code ?? 'the connection broke';
}
