/**
 * The HTTP client under grammY: Node's own, with connections kept open. Unlike any library it tells whether the server
 * had all of a request when the connection broke, and it costs less than `fetch`, at the start and for each call.
 */
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { pipeline } from 'node:stream/promises';
import { ReadableStream } from 'node:stream/web';

/** No usable answer. The message never holds the address, which holds the token. */
export class TransportError extends Error {
  override readonly name = 'TransportError';

  constructor(
    message: string,
    /** The request may have been taken: the connection stood, and all of it was on its way. */
    readonly reached: boolean,
    /** What the server, or a proxy before it, answered instead of the Bot API's JSON. */
    readonly status: number | null,
  ) {
    super(message);
  }
}

export interface Transport {
  /** As much of `fetch` as grammY uses: JSON, and forms with files. */
  fetch: typeof fetch;
  close(): void;
}

/** Shorter than servers keep an unused connection, so that none is used that the server has just closed. */
const IDLE_MS = 15_000;
/** How much is encrypted in one go: a large file must not block the event loop. */
const PIECE_BYTES = 65_536;

interface Call {
  method?: string;
  headers?: Record<string, string>;
  body?: unknown;
  signal?: AbortSignal;
}

interface Answer {
  json(): unknown;
}

type Piece = string | Uint8Array;

export function createTransport(apiRoot: string): Transport {
  const secure = apiRoot.startsWith('https:');
  const options = { keepAlive: true, timeout: IDLE_MS };
  const agent = secure ? new HttpsAgent(options) : new HttpAgent(options);
  const request = secure ? httpsRequest : httpRequest;

  async function call(url: string, { body = '', ...rest }: Call): Promise<Answer> {
    if (typeof body === 'string') return exchange(url, [body], rest);
    if (body instanceof ReadableStream) return exchange(url, await piecesOf(body), rest);
    throw new TransportError('only JSON and forms can be sent', false, null);
  }

  function exchange(
    url: string,
    pieces: Piece[],
    { method = 'GET', headers = {}, signal }: Omit<Call, 'body'>,
  ): Promise<Answer> {
    return new Promise((resolve, reject) => {
      let connected = false;
      let whole = false;
      let status: number | null = null;
      const broken = (error: NodeJS.ErrnoException) => {
        const where = connected && !whole ? ', in the middle of an upload' : '';
        reject(new TransportError(`${wordsFor(error, signal)}${where}`, connected && whole, status));
      };

      const sent = request(url, {
        method,
        agent,
        headers: { ...headers, 'content-length': sizeOf(pieces) },
        ...(signal === undefined ? {} : { signal }),
      });
      sent.on('error', broken);
      sent.on('socket', (socket) => {
        if (!socket.connecting) connected = true;
        else socket.once(secure ? 'secureConnect' : 'connect', () => (connected = true));
      });
      sent.on('response', (response) => {
        status = response.statusCode ?? null;
        textOf(response).then((text) => {
          // The server answered before it had read all of it, and does not want the rest.
          if (!whole) sent.destroy();
          resolve({ json: () => parsed(text, status) });
        }, broken);
      });
      const [only] = pieces;
      if (pieces.length === 1) {
        whole = true;
        sent.end(only);
      } else {
        const upload = inTurn(pieces, () => {
          whole = true;
        });
        pipeline(upload, sent).catch(broken);
      }
    });
  }

  return {
    // grammY uses nothing of a response but its JSON.
    fetch: call as unknown as typeof fetch,
    close: () => agent.destroy(),
  };
}

/** The form as grammY makes it. A file in it is in memory already; it is not copied, but goes in small pieces. */
async function piecesOf(form: ReadableStream): Promise<Uint8Array[]> {
  const pieces: Uint8Array[] = [];
  for await (const part of form as ReadableStream<Uint8Array>) {
    for (let at = 0; at < part.length; at += PIECE_BYTES) pieces.push(part.subarray(at, at + PIECE_BYTES));
  }
  return pieces;
}

function sizeOf(pieces: Piece[]): number {
  let size = 0;
  for (const piece of pieces) size += Buffer.byteLength(piece);
  return size;
}

/** Each piece when the connection has room for it. Before the last one the server cannot have taken the request. */
function* inTurn(pieces: Piece[], onLast: () => void): Generator<Piece> {
  for (const [index, piece] of pieces.entries()) {
    if (index === pieces.length - 1) onLast();
    yield piece;
  }
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
    // Reported below: it makes no difference what it was instead.
  }
  throw new TransportError(`the answer (HTTP ${status}) is not one of the Bot API`, true, status);
}

function wordsFor(error: NodeJS.ErrnoException, signal: AbortSignal | undefined): string {
  if (signal?.aborted) return 'there was no answer in time, or it was not waited for';
  return error.code ?? 'the connection broke';
}
