/** Errors of model servers: one shape for all, their fault code, whether and when to retry, and the message for operators. */
import { describe, Fault, type FaultCode } from '../core/errors.js';
import { rootCause, type ServerResponse } from '../core/network.js';
import { backoff } from '../core/retry.js';
import { parse, record, word } from './json.js';

export interface ServerErrorDetails {
  /**
   * answered: the server reported it. unreachable: no connection, or it broke before an answer. broken: the answer is unreadable
   * (cut, HTML, empty). silent: nothing came for `timeout_seconds`. endless: the answer exceeded its size limit.
   */
  kind: 'answered' | 'unreachable' | 'broken' | 'silent' | 'endless';
  words: string;
  status?: number | undefined;
  code?: string | undefined;
  param?: string | undefined;
  /** The context window in tokens, if the server sends it in a field (llama.cpp). */
  window?: number | undefined;
  isBodyEmpty?: boolean | undefined;
  retryAfterMs?: number | undefined;
  shouldRetry?: boolean | undefined;
}

/** Used only inside this folder; `retries.ts` turns it into a Fault. */
export class ServerError extends Error {
  override readonly name = 'ServerError';

  constructor(readonly details: ServerErrorDetails) {
    super(details.words);
  }
}

export function broken(words: string): ServerError {
  return new ServerError({ kind: 'broken', words });
}

export function endless(words: string): ServerError {
  return new ServerError({ kind: 'endless', words });
}

export function connectionError(error: unknown): ServerError {
  const words = describe(rootCause(error));
  // The operating system's connect time-out.
  return /ETIMEDOUT/.test(words)
    ? new ServerError({ kind: 'silent', words: 'could not be connected to in time' })
    : new ServerError({ kind: 'unreachable', words });
}

/** Codes of `ServerErrorDetails` for streams that ended without an answer; see `classify`. */
const FILTERED = 'content_filter';
const MALFORMED_CALL = 'malformed_function_call';

/** Finish reasons. The first match counts: GLM has `sensitive`, `network_error` and `model_context_window_exceeded`. */
const FAILED: [RegExp, code: string | null, what: string][] = [
  [
    /context_window_exceeded|context_length_exceeded/i,
    'context_window_exceeded',
    'the context window was exceeded',
  ],
  [
    /content_?filter|sensitive|safety|prohibited|blocklist|recitation|spii|guardrail|^refusal$/i,
    FILTERED,
    'its content filter stopped the answer',
  ],
  [/malformed_function_call/i, MALFORMED_CALL, 'the model wrote a tool call that cannot be read'],
  [/error|abort|insufficient_system_resource/i, null, 'its answer failed on the way'],
];

/** Throws what a finish reason means, except after a normal end, a token limit or an unknown reason. */
export function throwIfFailed(finish: string | null): void {
  if (finish === null) throw broken('broke off its answer without saying that it was finished');
  const [, code, what] = FAILED.find(([wording]) => wording.test(finish)) ?? [];
  if (code === undefined) return;
  const words = `${what} (it ended with "${finish.slice(0, 60)}")`;
  throw code === null ? broken(words) : new ServerError({ kind: 'answered', words, code });
}

/** Reads an unsuccessful response as far as it comes. Some servers repeat the whole request in it, so at most `mostBytes` are read. */
export async function refusal(
  response: ServerResponse,
  now: number,
  mostBytes: number,
): Promise<ServerError> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  try {
    for await (const piece of response.body) {
      pieces.push(piece);
      bytes += piece.length;
      if (bytes > mostBytes) break;
    }
  } catch {
    // The status suffices; keep what came.
  }
  return refusalOf(response, Buffer.concat(pieces).toString('utf8'), now);
}

export function refusalOf(
  { status, headers }: Omit<ServerResponse, 'body'>,
  text: string,
  now: number,
): ServerError {
  return new ServerError({
    kind: 'answered',
    ...errorBody(parse(text) ?? text),
    // A status below 400 that is not a success counts as a bad request.
    status: Math.max(status, 400),
    isBodyEmpty: text.trim() === '',
    retryAfterMs: retryAfter(headers, now),
    shouldRetry: headers['x-should-retry'] !== 'false',
  });
}

export function errorInAnswer(chunk: unknown): ServerError {
  return new ServerError({ kind: 'answered', ...errorBody(chunk) });
}

/**
 * Reads the shapes that servers use: `{error: {…}}`, `{error: "…"}`, `{message}`, `{detail: "…"}`, FastAPI's `{detail: [{loc,
 * msg}]}`, an array of one (Gemini) and plain text. Omits a validator's echo of the request (`input`), which may contain people's
 * words.
 */
function errorBody(body: unknown): Omit<ServerErrorDetails, 'kind'> {
  if (typeof body === 'string') return { words: plainWords(body) };
  const outer = record(Array.isArray(body) ? body[0] : body) ?? {};
  const source = record(outer.error) ?? outer;
  const { code, n_ctx: window } = source;
  const faults = Array.isArray(outer.detail) ? outer.detail.map(record) : null;
  const places = faults?.map((fault) => (Array.isArray(fault?.loc) ? fault.loc : []));
  const named = places?.map((place) => place.filter((part) => part !== 'body').join('.')) ?? [];
  const words = faults
    ? faults.map((fault, n) => `${named[n]}: ${word(fault?.msg) ?? 'invalid'}`).join('; ')
    : (word(source.message) ?? word(outer.error) ?? word(outer.detail) ?? word(source.msg));
  // OpenRouter sends the status as a numeric code.
  const status = typeof code === 'number' && code >= 400 && code < 600 ? code : undefined;
  const number = typeof code === 'number' && status === undefined ? String(code) : null;
  return {
    words: (words ?? 'no reason given').slice(0, 1000),
    code: number ?? word(code) ?? word(source.type) ?? undefined,
    param: word(source.param) ?? word(named[0]) ?? undefined,
    status,
    window: typeof window === 'number' && window > 0 ? window : undefined,
  };
}

/** Maximum part of a page or text that is searched for its words, in characters. */
const MOST_PAGE_CHARS = 10_000;

/** One line of a page or plain text, without tags. */
export function plainWords(text: string): string {
  const plain = text
    .slice(0, MOST_PAGE_CHARS)
    .replace(/<(script|style)\b[\s\S]*?(?:<\/\1>|$)/gi, ' ')
    .replace(/<[^<>]*>/g, ' ')
    .replace(/\s+/g, ' ')
    .trim();
  return plain.slice(0, 300) || 'an empty body';
}

/** In ms. */
function retryAfter(headers: ServerResponse['headers'], now: number): number | undefined {
  const milliseconds = Number.parseFloat(String(headers['retry-after-ms']));
  if (milliseconds >= 0) return milliseconds;
  const after = headers['retry-after'] ?? '';
  const seconds = Number(after);
  if (after.trim() !== '' && seconds >= 0) return seconds * 1000;
  const date = Date.parse(after);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}

/**
 * Besides the code: OpenAI, vLLM, SGLang, llama.cpp, Ollama, LM Studio, OpenRouter, Gemini, Mistral, Moonshot, DashScope, Z.ai. A
 * group holds the window; the first found counts.
 */
const TOO_LONG = [
  /context_(?:length|window)_exceeded|exceed_context_size/i,
  /maximum (?:context|prompt|model|input) length(?: (?:is|of) (?:only )?([\d,_]+))?/i,
  /(?<![\d,_])([\d,_]+) maximum context length/i,
  /context (?:length|size|window)(?: is| of)? only ([\d,_]+)/i,
  /available context size \(?([\d,_]+)/i,
  /model'?s context length \(?([\d,_]+)/i,
  /\bexceeded model token limit\b(?:: ([\d,_]+))?/i,
  /\brange of input length should be\b(?: \[\d+, ?([\d,_]+)\])?/i,
  /\b(?:prompt|input|messages?)\b.{0,40}\b(?:is|are) too (?:long|large)\b(?:: [\d,_]+ tokens > ([\d,_]+))?/i,
  /maximum number of tokens allowed \(?([\d,_]+)/i,
  /\bmax_new_tokens\b.*must be <=(?: ([\d,_]+))?/i,
  /context (?:length|size|window|limit)\b.*\b(?:exceed|only|reduce|overflow)/i,
  /\b(?:exceed|larger|longer|greater|overflow)\w*\b.{0,200}\bcontext[ _-]?(?:length|size|window|limit)\b/i,
  /\bprompt too long\b/i,
  /\binput token count\b.*\bexceeds\b/i,
  /\breduce the length of (?:the|your) (?:messages|prompt|input)/i,
  /\bcontext shift is disabled\b/i,
  /\bprompt exceeds max(?:imum)? length\b/i,
];

/** Z.ai's numeric code for a prompt that is too long. */
const TOO_LONG_CODE = '1261';

/** Requests below this estimate, in tokens, are refused without words for reasons other than length. */
const LONG = 4_000;

/** Whether a shorter request may succeed. `estimated`: size of the request in tokens. */
export function isTooLong(error: ServerErrorDetails, estimated: number): boolean {
  if (saysTooLong(error)) return true;
  // A proxy may refuse any size, and Cerebras sends an empty body.
  const isMute = error.status === 413 || (error.status === 400 && error.isBodyEmpty === true);
  return isMute && estimated >= LONG;
}

/** Whether the server itself says that the request is too long. A proxy's 413 does not count. */
export function saysTooLong({ status, code = '', words }: ServerErrorDetails): boolean {
  if (status === 429) return false;
  return code === TOO_LONG_CODE || TOO_LONG.some((wording) => wording.test(`${code} ${words}`));
}

/** The maximum number of tokens, if the server gives it. */
export function windowSaid({ window, words }: ServerErrorDetails): number | null {
  const said = TOO_LONG.map((pattern) => Number(pattern.exec(words)?.[1]?.replaceAll(/[,_]/g, '') ?? 0));
  return window ?? said.find((tokens) => tokens > 0) ?? null;
}

/** No retry if the server asks for a longer wait: a fallback, or the person asking again, is quicker. */
const LONGEST_WAIT_MS = 60_000;
const FIRST_WAIT_MS = 500;
const LONGEST_BACK_OFF_MS = 8_000;

/** Groq sends 413 if one request exceeds the account's tokens per minute. */
const ACCOUNT_LIMIT = /tokens per minute|\bTPM\b/i;

/** The model wrote a malformed call; sampling may do better next time (Groq, Gemini). */
const BAD_CALLS: readonly string[] = ['tool_use_failed', MALFORMED_CALL];
const BAD_CALL =
  /\btool call validation failed\b|\bfailed to call a function\b|\bfailed_generation\b|\bmodel called a tool\b|\bparameters for tool\b[^.]*\bdid not match\b|\btool[ _-](?:call )?arguments\b|\barguments (?:of|for) (?:the )?(?:tool|function)\b/i;

/** OpenAI's filter misjudged the prompt; the same prompt usually passes the next time. */
const FLAGGED = /\binvalid_prompt\b|\b(was|were|been) flagged\b/i;

export function isBadCall({ code = '', words }: ServerErrorDetails): boolean {
  return BAD_CALLS.includes(code) || BAD_CALL.test(words);
}

/** `estimated`: our estimate of the request in tokens. `retry`: whether to ask the same server again. */
export function classify(
  error: ServerErrorDetails,
  estimated: number,
): { code: FaultCode; retry: boolean | 'once' } {
  const { kind, status, code = '', words } = error;
  if (kind === 'silent' || kind === 'endless') return { code: `model_${kind}`, retry: false };
  if (kind !== 'answered') return { code: 'model_unreachable', retry: true };

  const isFinal = code === 'insufficient_quota' || code === FILTERED;
  const isAccounts = status === 413 && ACCOUNT_LIMIT.test(words);
  if (isFinal || isAccounts) return { code: 'model_refused', retry: false };
  const isFlagged = status === 400 && FLAGGED.test(`${code} ${words}`);
  if (isFlagged || isBadCall(error)) return { code: 'model_refused', retry: 'once' };
  if (isTooLong(error, estimated)) return { code: 'context_too_long', retry: false };
  // No status: an error in the middle of an answer.
  const isPassing = status === undefined || status >= 500 || [408, 409, 429].includes(status);
  if (!isPassing) return { code: 'model_refused', retry: false };
  const isTooFar = (error.retryAfterMs ?? 0) > LONGEST_WAIT_MS;
  return { code: 'model_unreachable', retry: !isTooFar && error.shouldRetry !== false };
}

/** The wait before the next try, in ms: as the server asks, else exponential back-off with jitter. */
export function retryDelay(failures: number, error: ServerErrorDetails, random: () => number): number {
  const asked = error.retryAfterMs ?? 0;
  // A shorter request (such as 0) would mean retrying without a pause.
  if (asked >= FIRST_WAIT_MS) return asked;
  return backoff(failures, FIRST_WAIT_MS, LONGEST_BACK_OFF_MS, random);
}

/** `place`: the address without secrets. */
export function serverTitle(place: string, model: string): string {
  return `The model server at ${place} (model "${model}")`;
}

/** The words in `error` must already be redacted. */
export function failedRequest(
  code: FaultCode,
  title: string,
  error: ServerErrorDetails,
  attempts: number,
): Fault {
  const times = attempts > 1 ? ` (asked ${attempts} times)` : '';
  return new Fault(code, `${title} ${whatHappened(error)}${times}.${advice(code, error)}`);
}

/** A long request ended without text or usage: LM Studio does this if the request does not fit. */
export function overflow(title: string): Fault {
  return new Fault(
    'context_too_long',
    `${title} gave nothing at all to a long request: it seems not to fit its context window. Raise the context length it loads the model with, or set model.context_tokens to it.`,
  );
}

export function stoppedRequest(title: string): Fault {
  return new Fault('model_unreachable', `${title} was not waited for: the request was stopped.`);
}

function whatHappened(error: ServerErrorDetails): string {
  const words = error.words.replace(/(?<![.\s])[.\s]+$/, '');
  if (error.kind === 'unreachable') return `could not be reached: ${words}`;
  if (error.kind !== 'answered') return words;
  return error.status === undefined ? `answered: ${words}` : `answered with ${error.status}: ${words}`;
}

function advice(code: FaultCode, { words, status, kind, code: its }: ServerErrorDetails): string {
  if (code === 'context_too_long')
    return ' The conversation is made shorter; model.context_tokens says how much the model takes.';
  if (ACCOUNT_LIMIT.test(words))
    return ' Raise the limit of the account, or set model.context_tokens below it.';
  if (status === 401 || status === 403) return ' Check model.api_key.';
  if (status === 404) return ' Check model.name and model.base_url.';
  if (its === 'insufficient_quota' || status === 402) return ' The account needs credit.';
  if (kind === 'silent') return ' It may be overloaded, or model.timeout_seconds too short for it.';
  return kind === 'unreachable' ? ' Check model.base_url and that the server runs.' : '';
}
