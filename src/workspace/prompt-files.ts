/** Marks what tools write into files that prompts show: of the workspace, and of the spaces of the agent that writes. */
import type { Agents } from '../core/agents.js';
import { addedLines, type Origins, type PromptFiles } from '../core/origin.js';
import type { Workspace } from '../core/workspace.js';

export interface PromptFilesParts {
  workspace: Pick<Workspace, 'shownFiles'>;
  agents: Pick<Agents, 'shownOf'>;
  origins: Pick<Origins, 'markOutside'>;
}

export function createPromptFiles({ workspace, agents, origins }: PromptFilesParts): PromptFiles {
  return {
    async watched(agent, write) {
      const texts = async () => {
        const spaces = agent === null ? [] : [null, agent.chatId];
        const found = await Promise.all([
          workspace.shownFiles(),
          ...spaces.map((chatId) => agents.shownOf({ agent: agent?.id ?? '', chatId })),
        ]);
        return new Map(found.flatMap((files) => [...files]));
      };
      const before = await texts();
      try {
        return await write();
      } finally {
        // Also what a call has written that then failed, or was ended.
        for (const [file, text] of await texts()) {
          const lines = addedLines(before.get(file) ?? '', text);
          if (lines.length > 0) await origins.markOutside(file, lines);
        }
      }
    },
  };
}
