/** The folders of the tools that work with files, below a `data` folder. */
import { join } from 'node:path';
import type { ToolFolders } from '../../src/tools/files/roots.js';

export function foldersIn(data: string, more: Partial<ToolFolders> = {}): ToolFolders {
  return {
    workFolder: join(data, 'work'),
    mediaFolder: join(data, 'media'),
    workspaceFolder: join(data, 'workspace'),
    skillsFolder: join(data, 'skills'),
    skills: null,
    hidden: [],
    promptFiles: { watched: (_agent, write) => write() },
    ...more,
  };
}
