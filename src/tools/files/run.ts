/** What every file tool does first and last: who asks, in which folders, and what a refused path becomes. */
import type { ToolContext, ToolResult } from '../../core/tool.js';
import { authorise } from '../authorise.js';
import { failed } from '../results.js';
import { PathRefusal } from './paths.js';
import { type Folders, type Places, placesOf, placesOfSkills } from './roots.js';

type Work = (places: Places) => Promise<ToolResult>;

export async function inPlaces(folders: Folders, context: ToolContext, work: Work): Promise<ToolResult> {
  const allowed = await authorise(context, {}, 'agents too');
  if (!allowed.ok) return failed(allowed.reason);
  return inThem(context, () => placesOf(folders, allowed.caller, context.isTainted === true), work);
}

/** Of skills alone. */
export async function inSkills(folders: Folders, context: ToolContext, work: Work): Promise<ToolResult> {
  const allowed = await authorise(context, {}, 'agents too');
  if (!allowed.ok) return failed(allowed.reason);
  return inThem(context, () => placesOfSkills(folders), work);
}

async function inThem(
  { signal }: ToolContext,
  places: () => Promise<Places>,
  work: Work,
): Promise<ToolResult> {
  if (signal.aborted) return failed('Stopped: nothing was done.');
  try {
    return await work(await places());
  } catch (error) {
    if (error instanceof PathRefusal) return failed(error.message);
    throw error;
  }
}

/** The same for what writes. `brings`: it may bring words from outside, whatever was in sight before. */
export function writingInPlaces(
  folders: Folders,
  context: ToolContext,
  work: Work,
  { brings }: { brings: boolean },
): Promise<ToolResult> {
  return inPlaces(folders, context, (places) => {
    if (places.kind === 'persona' || (!brings && context.isTainted !== true)) return work(places);
    const { agent, chatId } = context.authorisation ?? {};
    const whose = agent && chatId !== undefined ? { id: agent.id, chatId } : null;
    return folders.promptFiles.watched(whose, () => work(places));
  });
}
