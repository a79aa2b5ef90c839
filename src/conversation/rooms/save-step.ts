/** Step 5 of the route: stores a step of a turn, and with a call that needs a person's yes the question to people. */
import type { Step } from '../../core/transcript.js';
import type { StepExtras } from '../turn/steps.js';
import { questionOf } from './question.js';
import type { RoomServices, Turn } from './room-services.js';

/** False when the claim is lost. */
export async function saveStep(
  services: RoomServices,
  work: Turn,
  step: Step,
  { entries = [], asked }: StepExtras = {},
): Promise<boolean> {
  const { store, clock, deliver } = services;
  const { claim, turn } = work;
  if (step.kind !== 'waiting') return store.addStep(claim, turn.id, step, entries);
  const question = asked && (await questionOf(services, work, asked));
  const more = { entries, ...(question && { question }) };
  const isStored = await store.suspend(claim, turn.id, step, clock.now(), more);
  if (isStored) for (const { chatId } of question?.posts ?? []) deliver.wake(chatId);
  return isStored;
}
