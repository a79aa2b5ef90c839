/** What a model is told that would have written a secret into a file. Nobody, and no log, gets the secret itself. */
import type { ToolContext, ToolResult } from '../core/tool.js';
import { failed } from './results.js';

/** null when the content holds no secret that is not in `known`, the text it replaces. */
export async function refuseSecret(
  name: string,
  content: string,
  known: string,
  context: ToolContext,
  place = 'memory',
): Promise<ToolResult | null> {
  // Its many expressions are made at the first write, not at the start of the gateway.
  const { secretIn } = await import('./secrets.js');
  const secret = secretIn(content, known);
  if (secret === null) return null;
  const { kind, line } = secret;
  context.log.info({ tool: name, kind, line }, `a secret was kept out of ${place}`);
  return failed(
    `Nothing was written, for line ${line} of the content holds ${kind}, and ${place} keeps no secrets. ` +
      'Write it again without it; where it is kept may be said, the secret itself may not.',
  );
}
