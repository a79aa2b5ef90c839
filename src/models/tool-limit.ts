/** How many tools a server takes in one request, recognised by the words with which it refuses more. Pure. */
import type { ChatRequest } from './request.js';
import type { ServerErrorDetails } from './server-error.js';

/** It is about tools as a whole; `tools` may also be the parameter that the server names. */
const ABOUT_TOOLS = /\b(?:tools|functions|function declarations|tool (?:count|limit))\b/i;
/** One of them is refused, or what stands in it, or something else that may be too much. */
const ABOUT_ELSE =
  /\btools?['"`]?(?:\[|\.\d)|\b(?:names?|descriptions?|characters?|strings?|tokens?|schemas?|propert(?:y|ies)|parameters|enum|calls?|requests per|minutes?|seconds?|images?|messages)\b/i;
/**
 * OpenAI: "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 383 instead."
 * (julep-ai/julep#330); what validators say of a list: "should have at most 64 items", "maximum number of items is 64"; and
 * plain words.
 */
const MOST =
  /(?:\b(?:max(?:imum|items)?|limit(?:ed)?|at most|up to|more than|only|exceed(?:s|ed)?|greater than|longer than|less than or equal to)\b|<=|>)[^\d]{0,40}\b(\d{1,4})\b/gi;
const TOO_MANY = /\btoo many (?:tools|functions)\b(?! (?:were |are )?(?:call|us|invok|execut|run))/i;
/** Where it does not say how many, that is not the reason if so few are too many. */
const LEAST_GUESSED = 8;

/** null: it refuses something else. Where it does not say how many it takes, half of what it was sent. */
export function toolLimitIn(
  sent: ChatRequest,
  { status, words, param = '', code = '' }: ServerErrorDetails,
): number | null {
  if (status !== undefined && status !== 400 && status !== 413 && status !== 422) return null;
  const isNamed = param === 'tools' || param === 'functions';
  if ((!isNamed && !ABOUT_TOOLS.test(words)) || ABOUT_ELSE.test(words)) return null;
  const said = [...words.matchAll(MOST)].map(([, most]) => Number(most));
  const isTooMany = TOO_MANY.test(words) || (isNamed && code === 'array_above_max_length');
  if (said.length === 0 && isTooMany) {
    const half = Math.floor(sent.tools.length / 2);
    return half < LEAST_GUESSED ? null : half;
  }
  return said.find((most) => most > 0 && most < sent.tools.length) ?? null;
}
