/** How servers say that a request is too long for a model, and how much it takes. Pure. */
import type { ServerErrorDetails } from './server-error.js';

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
const TOO_LONG_CODES = new Set(['1261']);

/** Where the most tokens stand in the words. */
const NUMBERS = [
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

/** Whether it says that a request does not fit the model, and not what else stands between us and it (a proxy's 413). */
export function saysTooLong({ status, code = '', words }: ServerErrorDetails): boolean {
  if (status === 429) return false;
  return TOO_LONG_CODES.has(code) || TOO_LONG.some((wording) => wording.test(`${code} ${words}`));
}

/** The most tokens that the server takes, if it says so. */
export function windowSaid({ window, words }: ServerErrorDetails): number | null {
  if (window !== undefined) return window;
  for (const pattern of NUMBERS) {
    const digits = pattern.exec(words)?.[1]?.replaceAll(/[,_]/g, '') ?? '';
    if (Number(digits) > 0) return Number(digits);
  }
  return null;
}
