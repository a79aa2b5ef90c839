/**
 * What can go wrong between us and a model server: in one shape, read from the many in which servers say it; which fault it is, how an
 * operator reads it, whether to ask again and when.
 */
import { describe, Fault, type FaultCode } from '../core/errors.js';
import { rootCause } from '../core/network.js';
import { backoff } from '../core/retry.js';
import { parse, record, word } from './json.js';

export interface ServerErrorDetails {
  /**
   * answered: the server said so itself. unreachable: no connection, or it broke before an answer. broken: the
   * answer is not one (cut, HTML, nothing). silent: nothing came for `timeout_seconds`. endless: more came than an
   * answer may hold.
   */
  kind: 'answered' | 'unreachable' | 'broken' | 'silent' | 'endless';
  words: string;
  status?: number | undefined;
  code?: string | undefined;
  /** The parameter of the request that the server names as the reason. */
  param?: string | undefined;
  /** The most tokens that the model takes, where the server gives it beside its words (llama.cpp). */
  window?: number | undefined;
  /** It was refused without a word. */
  isBodyEmpty?: boolean | undefined;
  /** How long the server asks to wait. */
  retryAfterMs?: number | undefined;
  /** `x-should-retry`. */
  shouldRetry?: boolean | undefined;
}

/** The codes of `ServerErrorDetails` for ends that are no answer; `classify` says what each means. */
export const FILTERED = 'content_filter';
export const WINDOW_EXCEEDED = 'context_window_exceeded';
export const MALFORMED_CALL = 'malformed_function_call';

/** Used inside this folder only; `openai.ts` turns it into a Fault. */
export class ServerError extends Error {
  override readonly name = 'ServerError';

  constructor(readonly details: ServerErrorDetails) {
    super(details.words);
  }
}

/** Where no response came. */
export function connectionError(error: unknown): ServerError {
  const words = describe(rootCause(error));
  // The system's own limit for a connection.
  return /ETIMEDOUT/.test(words)
    ? new ServerError({ kind: 'silent', words: 'could not be connected to in time' })
    : new ServerError({ kind: 'unreachable', words });
}

/** What a response without success says. Some servers repeat the whole request in it, so no more than `mostBytes` are read. */
export async function refusal(response: Response, now: number, mostBytes: number): Promise<ServerError> {
  return refusalOf(response, await textOf(response, mostBytes), now);
}

export function refusalOf(
  { status, headers }: { status: number; headers: Headers },
  text: string,
  now: number,
): ServerError {
  const shouldRetry = headers.get('x-should-retry');
  return new ServerError({
    kind: 'answered',
    ...errorBody(parse(text) ?? text),
    // A status below 400 that is no success counts as a request that was wrong.
    status: Math.max(status, 400),
    isBodyEmpty: text.trim() === '',
    retryAfterMs: retryAfter(headers, now),
    shouldRetry: shouldRetry === 'true' ? true : shouldRetry === 'false' ? false : undefined,
  });
}

/** What the server says in the middle of an answer. */
export function errorInAnswer(chunk: unknown): ServerError {
  return new ServerError({ kind: 'answered', ...errorBody(chunk) });
}

/** What came of it, also where it is cut or breaks off. */
async function textOf({ body }: Response, mostBytes: number): Promise<string> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  try {
    for await (const piece of (body ?? []) as AsyncIterable<Uint8Array>) {
      pieces.push(piece);
      bytes += piece.length;
      if (bytes > mostBytes) break;
    }
  } catch {
    // Its status says enough, and what had come may say more.
  }
  return Buffer.concat(pieces).toString('utf8');
}

/**
 * Finds the words in the shapes that servers really use: `{error: {…}}`, `{error: "…"}`, `{message}`, `{detail: "…"}`, FastAPI's
 * `{detail: [{loc, msg}]}`, an array of one (Gemini) and plain text. What a validator echoes of the request (`input`) is left
 * out: it may be somebody's words.
 */
function errorBody(
  body: unknown,
): Pick<ServerErrorDetails, 'words' | 'code' | 'param' | 'status' | 'window'> {
  if (typeof body === 'string') return { words: plainWords(body) };
  const outer = record(Array.isArray(body) ? body[0] : body) ?? {};
  const source = record(outer.error) ?? outer;
  const { code, n_ctx: window } = source;
  const faults = (Array.isArray(outer.detail) ? outer.detail : []).map((fault) => {
    const loc = record(fault)?.loc;
    const place = (Array.isArray(loc) ? loc : []).filter((part) => part !== 'body').join('.');
    return { place, words: word(record(fault)?.msg) ?? 'invalid' };
  });
  const words = Array.isArray(outer.detail)
    ? faults.map((fault) => `${fault.place}: ${fault.words}`).join('; ')
    : (word(source.message) ?? word(outer.error) ?? word(outer.detail) ?? word(source.msg));
  const isStatus = typeof code === 'number' && code >= 400 && code < 600;
  const named = typeof code === 'number' && !isStatus ? String(code) : (word(code) ?? word(source.type));
  return {
    words: (words ?? 'no reason given').slice(0, 1000),
    code: named ?? undefined,
    param: word(source.param) ?? word(faults[0]?.place) ?? undefined,
    // A numeric code, as OpenRouter's, is a status.
    status: isStatus ? code : undefined,
    window: typeof window === 'number' && window > 0 ? window : undefined,
  };
}

/** Of a page or a text, more than this is not looked at for its words. */
const MOST_PAGE_CHARS = 10_000;

/** One line of a page or a plain text, without its tags. */
export function plainWords(text: string): string {
  const plain = text
    .slice(0, MOST_PAGE_CHARS)
    .replace(/<(script|style)\b[\s\S]*?(?:<\/\1>|$)/gi, ' ')
    .replace(/<[^<>]*>/g, ' ')
    .replace(/\s+/g, ' ')
    .trim();
  return plain.slice(0, 300) || 'an empty body';
}

/** How long the server asks to wait, ms. */
function retryAfter(headers: Headers, now: number): number | undefined {
  const milliseconds = Number.parseFloat(headers.get('retry-after-ms') ?? '');
  if (milliseconds >= 0) return milliseconds;
  const after = headers.get('retry-after') ?? '';
  const seconds = Number(after);
  if (after.trim() !== '' && seconds >= 0) return seconds * 1000;
  const date = Date.parse(after);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}

/**
 * Beside the code `context_length_exceeded`, the words of OpenAI, vLLM, SGLang, llama.cpp, Ollama, LM Studio,
 * OpenRouter, Gemini, Mistral, Moonshot, DashScope, Z.ai and others.
 */
const TOO_LONG = [
  /context_(length|window)_exceeded|exceed_context_size/i,
  /maximum (context|prompt|model|input) length/i,
  /(context|model'?s context) (length|size|window|limit)\b.*\b(exceed|only|reduce|overflow)/i,
  /\b(exceed|larger|longer|greater|overflow)\w*\b.{0,200}\bcontext[ _-]?(length|size|window|limit)\b/i,
  /\b(prompt|input|messages?)\b.{0,40}\b(is|are) too (long|large)\b/i,
  /\bprompt too long\b/i,
  /\binput token count\b.*\bexceeds\b/i,
  /\breduce the length of (the|your) (messages|prompt|input)/i,
  /\bmax_new_tokens\b.*must be <=/i,
  /\bcontext shift is disabled\b/i,
  /\bexceeded model token limit\b/i,
  /\brange of input length should be\b/i,
  /\bprompt exceeds max(imum)? length\b/i,
];

/** Z.ai gives numbers; this one is its code for such a prompt. */
const TOO_LONG_CODE = '1261';

/** Where the most tokens stand in the words. */
const WINDOWS = [
  /maximum (?:context|prompt|model|input) length (?:is|of) (?:only )?([\d,_]+)/i,
  /(?<![\d,_])([\d,_]+) maximum context length/i,
  /context (?:length|size|window)(?: is| of)? only ([\d,_]+)/i,
  /available context size \(?([\d,_]+)/i,
  /model'?s context length \(?([\d,_]+)/i,
  /exceeded model token limit: ([\d,_]+)/i,
  /range of input length should be \[\d+, ?([\d,_]+)\]/i,
  /prompt is too long: [\d,_]+ tokens > ([\d,_]+)/i,
  /maximum number of tokens allowed \(?([\d,_]+)/i,
  /max_new_tokens\b.*must be <= ([\d,_]+)/i,
];

/** Requests of fewer tokens, by our estimate, are refused without a word for other reasons than their length. */
const LONG = 4_000;

/** Whether it seems to be about the length, so that a shorter request may do. `estimated`: of the request, in tokens. */
export function isTooLong(error: ServerErrorDetails, estimated: number): boolean {
  if (saysTooLong(error)) return true;
  // A proxy before the server may refuse any size, and Cerebras says nothing at all.
  const isMute = error.status === 413 || (error.status === 400 && error.isBodyEmpty === true);
  return isMute && estimated >= LONG;
}

/** Whether the server itself says that a request does not fit the model. A proxy's 413 does not. */
export function saysTooLong({ status, code = '', words }: ServerErrorDetails): boolean {
  if (status === 429) return false;
  return code === TOO_LONG_CODE || TOO_LONG.some((wording) => wording.test(`${code} ${words}`));
}

/** The most tokens that the server takes, if it says so. */
export function windowSaid({ window, words }: ServerErrorDetails): number | null {
  const said = WINDOWS.map((pattern) => Number(pattern.exec(words)?.[1]?.replaceAll(/[,_]/g, '') ?? 0));
  return window ?? said.find((tokens) => tokens > 0) ?? null;
}

/** A server that asks for a longer wait is not asked again: a fallback, or the person asking later, is quicker. */
const LONGEST_WAIT_MS = 60_000;
const FIRST_WAIT_MS = 500;
const LONGEST_BACK_OFF_MS = 8_000;

/** Groq says 413 where one request has more tokens than the account may send in a minute. */
const ACCOUNT_LIMIT = /tokens per minute|\bTPM\b/i;

/** The model was offered tools and wrote nonsense: sampling, which may end better the next time (Groq, Gemini). */
const BAD_CALLS: readonly string[] = ['tool_use_failed', MALFORMED_CALL];
const BAD_CALL =
  /\btool call validation failed\b|\bfailed to call a function\b|\bfailed_generation\b|\bmodel called a tool\b|\bparameters for tool\b[^.]*\bdid not match\b|\btool[ _-](?:call )?arguments\b|\barguments (?:of|for) (?:the )?(?:tool|function)\b/i;

/** What OpenAI says of a prompt that its filter took for something else; the same prompt mostly passes the next time. */
const FLAGGED = /\binvalid_prompt\b|\b(was|were|been) flagged\b/i;

export function isBadCall({ code = '', words }: ServerErrorDetails): boolean {
  return BAD_CALLS.includes(code) || BAD_CALL.test(words);
}

/** `estimated`: our estimate of the request in tokens. `retry`: whether the same server is asked again. */
export function classify(
  error: ServerErrorDetails,
  estimated: number,
): { code: FaultCode; retry: boolean | 'once' } {
  if (error.kind === 'silent') return { code: 'model_silent', retry: false };
  if (error.kind === 'endless') return { code: 'model_endless', retry: false };
  if (error.kind !== 'answered') return { code: 'model_unreachable', retry: true };

  const { status, code = '', words } = error;
  const isFinal = code === 'insufficient_quota' || code === FILTERED;
  if (isFinal) return { code: 'model_refused', retry: false };
  if (isBadCall(error)) return { code: 'model_refused', retry: 'once' };
  if (status === 400 && FLAGGED.test(`${code} ${words}`)) return { code: 'model_refused', retry: 'once' };
  if (status === 413 && ACCOUNT_LIMIT.test(words)) return { code: 'model_refused', retry: false };
  if (isTooLong(error, estimated)) return { code: 'context_too_long', retry: false };
  // Without a status it is an error in the middle of an answer.
  const isPassing = status === undefined || status >= 500 || [408, 409, 429].includes(status);
  if (!isPassing) return { code: 'model_refused', retry: false };
  const isTooFar = (error.retryAfterMs ?? 0) > LONGEST_WAIT_MS;
  return { code: 'model_unreachable', retry: !isTooFar && error.shouldRetry !== false };
}

/** How long to wait before the next try: what the server asks for, else longer each time, up to a quarter less. */
export function retryDelay(failures: number, error: ServerErrorDetails, random: () => number): number {
  const asked = error.retryAfterMs ?? 0;
  // One that asks for no time at all would be asked without a pause.
  if (asked >= FIRST_WAIT_MS) return asked;
  return backoff(failures, FIRST_WAIT_MS, LONGEST_BACK_OFF_MS, random);
}

/** `place` is the address as it may be shown. */
export function serverTitle(place: string, model: string): string {
  return `The model server at ${place} (model "${model}")`;
}

/** The words of the details hold no secret any more. */
export function failedRequest(
  code: FaultCode,
  title: string,
  error: ServerErrorDetails,
  attempts: number,
): Fault {
  const times = attempts > 1 ? ` (asked ${attempts} times)` : '';
  return new Fault(code, `${title} ${whatHappened(error)}${times}.${advice(code, error)}`);
}

export function emptyAnswer(title: string): Fault {
  return new Fault('model_empty', `${title} gave an empty answer twice.`);
}

/** It filled its limit without a word; `outputTokens` is what it was given at first. */
export function wordlessAnswer(title: string, outputTokens: number): Fault {
  return new Fault(
    'model_empty',
    `${title} reached its limit of ${outputTokens} tokens before it said anything, mostly by thinking, and more room did not help: raise model.max_output_tokens, or let it think less.`,
  );
}

/** A long request brought an end without a word or a count: LM Studio says so where it does not fit. */
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

function advice(code: FaultCode, error: ServerErrorDetails): string {
  if (code === 'context_too_long')
    return ' The conversation is made shorter; model.context_tokens says how much the model takes.';
  if (ACCOUNT_LIMIT.test(error.words)) {
    return ' Raise the limit of the account, or set model.context_tokens below it.';
  }
  if (error.status === 401 || error.status === 403) return ' Check model.api_key.';
  if (error.status === 404) return ' Check model.name and model.base_url.';
  if (error.code === 'insufficient_quota' || error.status === 402) return ' The account needs credit.';
  if (error.kind === 'silent') return ' It may be overloaded, or model.timeout_seconds too short for it.';
  if (error.kind === 'unreachable') return ' Check model.base_url and that the server runs.';
  return '';
}
