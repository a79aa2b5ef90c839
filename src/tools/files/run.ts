/** The common frame of file tools: authorises the caller, finds its folders, reports refused paths. */
import type { ToolContext, ToolResult } from '../../core/tool.js';
import { authorise } from '../authorise.js';
import { failed } from '../results.js';
import { PathRefusal } from './paths.js';
import { type FileRoots, rootsFor, rootsOfSkills, type ToolFolders } from './roots.js';

type Work = (allowed: FileRoots) => Promise<ToolResult>;

/** `only`: a caller whose only files are those of skills. */
export async function inRoots(
  folders: ToolFolders,
  context: ToolContext,
  work: Work,
  only?: 'skills',
): Promise<ToolResult> {
  const asked = await authorise(context, {}, 'agents too');
  if (!asked.ok) return failed(asked.reason);
  if (context.signal.aborted) return failed('Stopped: nothing was done.');
  try {
    const isTainted = context.isTainted === true;
    return await work(
      only === 'skills' ? await rootsOfSkills(folders) : await rootsFor(folders, asked.caller, isTainted),
    );
  } catch (error) {
    if (error instanceof PathRefusal) return failed(error.message);
    throw error;
  }
}

/** The same for a tool that writes. `mayBringWords`: it may bring in words from outside. */
export function writingInRoots(
  folders: ToolFolders,
  context: ToolContext,
  work: Work,
  mayBringWords = false,
): Promise<ToolResult> {
  return inRoots(folders, context, (allowed) => {
    if (allowed.kind === 'persona' || (!mayBringWords && context.isTainted !== true)) return work(allowed);
    const { agent, chatId } = context.authorisation ?? {};
    const whose = agent && chatId !== undefined ? { id: agent.id, chatId } : null;
    return folders.promptFiles.watched(whose, () => work(allowed));
  });
}
