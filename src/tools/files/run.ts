/** The frame of file tools: finds the caller's folders, reports refused paths, notes words from outside in prompts. */
import type { ToolContext, ToolResult } from '../../core/tool.js';
import { defineTool, type OwnTool } from '../authorise.js';
import { failed } from '../results.js';
import { PathRefusal } from './paths.js';
import { type FileRoots, rootsFor, rootsOfSkills, type ToolFolders } from './roots.js';

interface FileTool<Given> extends Omit<OwnTool<Given>, 'execute' | 'forAgents' | 'usesFiles'> {
  /** For callers whose only files are those of skills. */
  ofSkills?: true;
  execute(given: Given, roots: FileRoots, context: ToolContext): Promise<ToolResult>;
}

export function fileTool<Given>(folders: ToolFolders, { ofSkills, execute, ...tool }: FileTool<Given>) {
  return defineTool<Given>({
    ...tool,
    forAgents: true,
    async execute(given, context, { caller }) {
      if (context.signal.aborted) return failed('Stopped: nothing was done.');
      const isTainted = context.isTainted === true;
      try {
        const roots = ofSkills ? await rootsOfSkills(folders) : await rootsFor(folders, caller, isTainted);
        // A command may bring in words from outside; files get them only from a model that has seen some.
        const mayBringWords = tool.risk === 'high' || (tool.risk === 'medium' && isTainted);
        if (roots.kind === 'persona' || !mayBringWords) return await execute(given, roots, context);
        const whose = caller.agent === undefined ? null : { id: caller.agent.id, chatId: caller.chatId };
        return await folders.promptFiles.watched(whose, () => execute(given, roots, context));
      } catch (error) {
        if (error instanceof PathRefusal) return failed(error.message);
        throw error;
      }
    },
  });
}
