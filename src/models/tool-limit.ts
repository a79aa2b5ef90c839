/** How many tools a server takes in one request, recognised by the words with which it refuses more. Pure. */
import type { ChatRequest } from './request.js';
import type { ServerErrorDetails } from './server-error.js';

/**
 * OpenAI: "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 383 instead."
 * (julep-ai/julep#330); what pydantic says of a list, behind vLLM and others; and plain words.
 */
const SAID = [
  /\btools\b[^.]{0,40}\barray too long\b.{0,60}\bmaximum length (?:of )?(\d{1,4})\b/is,
  /\btools\b.{0,60}\b(?:should have|must have|has|have|contain) at most (\d{1,4}) (?:items|elements|tools|entries)\b/is,
  /\b(?:at most|maximum (?:number )?(?:of|is)|max(?:imum)?:?|up to|no more than|limit (?:of|is)) (\d{1,4}) (?:tools|functions|function declarations)\b/i,
  /\b(?:too many|number of) (?:tools|functions|function declarations)\b.{0,80}?\b(?:max(?:imum)?|limit|at most|up to|exceeds?(?: the)?(?: maximum| limit)?)\b[^\d]{0,30}(\d{1,4})\b/is,
];

/** null: it refuses something else, or does not say how many it takes. */
export function toolLimitIn(
  sent: ChatRequest,
  { status, words, param = '' }: ServerErrorDetails,
): number | null {
  if (status !== 400 && status !== 413 && status !== 422) return null;
  const said = param === 'tools' && !/\btools\b/i.test(words) ? `tools: ${words}` : words;
  for (const wording of SAID) {
    const most = Number(wording.exec(said)?.[1]);
    if (most > 0 && most < sent.tools.length) return most;
  }
  return null;
}
