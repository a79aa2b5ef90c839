/** Step 5 of the route: the arguments of a call as a model wrote them, read without trusting them. Pure. */
import { isNestedDeeper } from '../../core/network.js';

export type GivenArguments =
  | { kind: 'object'; given: Record<string, unknown> }
  /** They are JSON, but nothing that goes through them level by level could take them. */
  | { kind: 'too deep' }
  /** They are no JSON object. */
  | { kind: 'unreadable' };

export function argumentsOf(written: string): GivenArguments {
  let parsed: unknown;
  try {
    parsed = JSON.parse(written.trim() || '{}');
  } catch {
    return { kind: 'unreadable' };
  }
  if (isNestedDeeper(parsed)) return { kind: 'too deep' };
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) return { kind: 'unreadable' };
  return { kind: 'object', given: parsed as Record<string, unknown> };
}
