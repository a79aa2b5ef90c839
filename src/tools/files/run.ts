/** What every file tool does first and last: who asks, in which folders, and what a refused path becomes. */
import type { ToolContext, ToolResult } from '../../core/tool.js';
import { authorise } from '../authorise.js';
import { failed } from '../results.js';
import { type Folders, PathRefusal, type Places, placesOf } from './paths.js';

export async function inPlaces(
  folders: Folders,
  context: ToolContext,
  work: (places: Places) => Promise<ToolResult>,
): Promise<ToolResult> {
  const allowed = await authorise(context, {});
  if (!allowed.ok) return failed(allowed.reason);
  if (context.signal.aborted) return failed('Stopped: nothing was done.');
  try {
    return await work(await placesOf(folders, allowed.target));
  } catch (error) {
    if (error instanceof PathRefusal) return failed(error.message);
    throw error;
  }
}
