/**
 * Step 5, inside the model client: names and ids of calls in the one form that every server takes back, letters, digits, `_`
 * and `-`, at most 64 (OpenAI; Anthropic, Mistral and vLLM check it as well). A model may write anything there, and one name that
 * does not fit makes a server refuse every later request of its conversation. Pure.
 */
import { createHash } from 'node:crypto';

const FITS = /^[A-Za-z0-9_-]{1,64}$/;
const LONGEST_NAME = 64;
/** Characters of a longer name that are looked at. */
const MOST_READ = 400;

/** What models write around a name: Kimi's and OpenAI's namespaces, Gemini's; Kimi's number of the call. */
const NAMESPACE = /^(?:functions?|tools?|default_api|multi_tool_use|namespace)[.:/]/;
const CALL_NUMBER = /:\d{1,4}$/;

export function fits(nameOrId: string): boolean {
  return FITS.test(nameOrId);
}

/**
 * The offered tool that a name means: itself, or without the control tokens, quotes and namespaces that models write around
 * it. Any other name is made to fit.
 */
export function calledName(name: string, offered: ReadonlySet<string>): string {
  if (offered.has(name)) return name;
  const [beforeToken = ''] = name.slice(0, MOST_READ).split(/<[|｜]/u, 1);
  const plain = beforeToken.replace(/^[\s"'`]+/, '').replace(/(?<!["'`\s])["'`\s]+$/, '');
  const bare = plain.replace(NAMESPACE, '');
  const unnumbered = bare.replace(CALL_NUMBER, '');
  const found = [plain, bare, unnumbered].find((each) => offered.has(each));
  return found ?? sentName(unnumbered === '' ? name : unnumbered);
}

/** A name as it goes to a server. The same name always becomes the same one. */
export function sentName(name: string): string {
  if (fits(name)) return name;
  const plain = name
    .slice(0, MOST_READ)
    .trim()
    .replace(/[^A-Za-z0-9_-]+/gu, '_')
    .slice(0, LONGEST_NAME);
  return plain === '' ? '_' : plain;
}

/**
 * An id as it goes to a server, for a call and for its result. One that does not fit becomes nine letters and digits, the
 * form that Mistral wants.
 */
export function sentId(id: string): string {
  if (fits(id)) return id;
  const digest = createHash('sha256').update(id).digest('hex');
  return BigInt(`0x${digest}`).toString(36).slice(0, 9);
}
