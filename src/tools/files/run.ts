/** What every file tool does first and last: who asks, in which folders, and what a refused path becomes. */
import type { ToolContext, ToolResult } from '../../core/tool.js';
import { authorise } from '../authorise.js';
import { failed } from '../results.js';
import { PathRefusal } from './paths.js';
import { type Folders, type Places, placesOf } from './places.js';

export async function inPlaces(
  folders: Folders,
  context: ToolContext,
  work: (places: Places) => Promise<ToolResult>,
): Promise<ToolResult> {
  const allowed = await authorise(context, {}, 'agents too');
  if (!allowed.ok) return failed(allowed.reason);
  if (context.signal.aborted) return failed('Stopped: nothing was done.');
  try {
    return await work(await placesOf(folders, allowed.caller));
  } catch (error) {
    if (error instanceof PathRefusal) return failed(error.message);
    throw error;
  }
}
