/** What is wrong with what somebody sent, in words: of all that a schema finds, the first, and where it stands. */
import type { z } from 'zod';

type Issue = z.core.$ZodIssue;

export interface Complaint {
  error: string;
  path?: string;
}

export function complaintOf(error: z.ZodError): Complaint {
  const { words, path } = worded(error.issues[0], []);
  return path.length === 0
    ? { error: words }
    : { error: `${path.join('.')}: ${words}`, path: path.join('.') };
}

function worded(issue: Issue | undefined, above: PropertyKey[]): { words: string; path: string[] } {
  if (issue === undefined) return { words: 'not as it has to be', path: above.map(String) };
  const path = [...above, ...issue.path];
  if (issue.code === 'unrecognized_keys') {
    return { words: 'is not known here', path: [...path, issue.keys[0] ?? ''].map(String) };
  }
  // Of several ways to write something, the one that went furthest was meant.
  if (issue.code === 'invalid_union') {
    const deepest = issue.errors
      .map((branch) => branch[0])
      .filter((each) => each !== undefined)
      .sort((one, other) => depth(other) - depth(one))[0];
    if (deepest !== undefined && depth(deepest) > 0) return worded(deepest, path);
  }
  const isMissing = issue.code === 'invalid_type' && issue.message.endsWith('received undefined');
  return { words: isMissing ? 'is missing' : issue.message, path: path.map(String) };
}

function depth(issue: Issue): number {
  return issue.path.length + (issue.code === 'unrecognized_keys' ? 1 : 0);
}
