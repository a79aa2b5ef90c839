/**
 * `write_artifact`: something made for people, as a file of its own. What a persona makes is sent into its chat; what an
 * agent makes on a task is referred to by its result.
 */
import { createHash } from 'node:crypto';
import * as z from 'zod';
import type { Artifacts, NewArtifact } from '../core/artifacts.js';
import type { Authorisation, Tool, ToolContext, ToolResult } from '../core/tool.js';
import { authorise } from './authorise.js';
import { done, failed, runTool, unsaved } from './results.js';
import { refuseSecret } from './secret-refusal.js';
import type { SendMessageParts } from './send-message.js';

export interface WriteArtifactParts {
  artifacts: Pick<Artifacts, 'write'>;
  /** Puts the file into the outbox; what has this key already is passed over. */
  post: SendMessageParts['post'];
}

const NAME = 'write_artifact';

const parameters = z.object({
  id: z
    .string()
    .describe(
      'Its name without an extension: 1 to 64 letters, digits, dots, _ and -. The same id replaces it.',
    ),
  content: z.string().describe('The whole text.'),
  title: z.string().optional().describe('What it is, in a few words.'),
  type: z.string().optional().describe('A MIME type, like text/csv. Left out: text/markdown.'),
});

type Parameters = z.infer<typeof parameters>;

/** For personas in their chats. */
export function writeArtifact({ artifacts, post }: WriteArtifactParts): Tool<Parameters> {
  return {
    ...about(
      'Writes a document of its own and sends it to this chat as a file: a report, a table, a page, code.',
    ),
    hint: 'write a document and send it as a file',
    isSend: true,
    execute: (given, context) =>
      writing(given, context, 'personas', async (artifact, { chatId, personaId }) => {
        const { turnId, callId, room, signal } = context;
        if (context.cause.turnId === null)
          return failed('Artifacts can only be made while somebody is being answered.');
        const written = await artifacts.write({ ...artifact, taskId: turnId, chatId }, signal);
        if (!written.ok) return notWritten(written.reason);
        if (signal.aborted) return failed('Stopped: nothing was sent.');
        const { ref, file } = written;
        const key = createHash('sha256').update(`${turnId} ${callId}`).digest('hex').slice(0, 24);
        const outcome = await post({ chatId, personaId, turnId, room, key, text: '', file });
        return outcome === 'posted'
          ? done(`The file ${file?.name ?? ref.id} is on its way; it is kept as ${ref.ref}.`)
          : failed(`${ref.ref} was written, but not sent: this chat is not known.`);
      }),
  };
}

/** For agents: who gave the task fetches it. */
export function keepArtifact({ artifacts }: Pick<WriteArtifactParts, 'artifacts'>): Tool<Parameters> {
  return {
    ...about('Writes a document of its own, which your result refers to: a report, a table, a page, code.'),
    hint: 'write a document for whoever gave you the task',
    execute: (given, context) =>
      writing(given, context, 'agents too', async (artifact, { agent }) => {
        const taskId = agent?.taskId ?? context.turnId;
        const written = await artifacts.write({ ...artifact, taskId }, context.signal);
        return written.ok ? done(`Written: ${written.ref.ref}`) : notWritten(written.reason);
      }),
  };
}

function about(description: string) {
  return { name: NAME, description, parameters, risk: 'medium' as const };
}

function notWritten(reason: string): ToolResult {
  return failed(`Nothing was written: ${reason}`);
}

async function writing(
  { id, content, title, type }: Parameters,
  context: ToolContext,
  whose: 'personas' | 'agents too',
  work: (artifact: Omit<NewArtifact, 'taskId'>, caller: Authorisation) => Promise<ToolResult>,
): Promise<ToolResult> {
  const allowed = await authorise(context, {}, whose);
  if (!allowed.ok) return failed(allowed.reason);
  const secret = await refuseSecret(NAME, content, '', context, 'an artifact');
  if (secret !== null) return secret;
  const artifact = { id, content, title: title ?? null, type: type ?? null };
  return runTool(NAME, context, () => work(artifact, allowed.caller), unsaved);
}
